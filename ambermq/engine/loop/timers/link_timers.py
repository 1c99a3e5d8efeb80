"""The timers of suspended links: volatile, and built again at a start from what the state has.

Rule: a link may be resumed before its time. Its timer is then of no effect.
"""

from typing import final

from ambermq.engine.loop.timers.timer_heap import TimerHeap
from ambermq.engine.model.state import State

__all__ = ["LinkTimers"]


@final
class LinkTimers:
    """The ends of the suspended links of one virtual host. All times are elapsed times in microseconds."""

    __slots__ = ("_timers",)

    def __init__(self) -> None:
        self._timers = TimerHeap()
        """By link."""

    @property
    def next_us(self) -> int:
        """The time of the next timer; FOREVER_US without one."""
        return self._timers.next_us

    def start(self, state: State) -> None:
        """Set the timers of the suspended links of a state that was recovered."""
        for link in state.suspended.values():
            self.watch(link.id, link.until_us)

    def watch(self, link: int, until_us: int) -> None:
        """Set the timer of a link anew; 0: it has none."""
        self._timers.remove(link)
        if until_us:
            self._timers.add(link, until_us)

    def take(self, now_us: int, count_max: int) -> list[int]:
        """Return links whose time has come, at most `count_max`, and forget their timers."""
        links: list[int] = []
        while len(links) < count_max and (link := self._timers.pop_due(now_us)) is not None:
            links.append(link)
        return links
