"""The timers of consumers with a rate: when their credit goes on.

Rule 1. A consumer has a timer while its rate holds back all of its credit. Its time is that of the next message, or of
        the messages of 10 ms, so that a high rate costs no tick for each message.
Rule 2. All of it is volatile, and ends with its consumer.
"""

from typing import final

from ambermq.engine.dispatch.demand import Want
from ambermq.engine.loop.timers.timer_heap import TimerHeap

__all__ = ["RateTimers"]


@final
class RateTimers:
    """The timers of the consumers of one virtual host, by elapsed time."""

    __slots__ = ("_timers",)

    def __init__(self) -> None:
        self._timers = TimerHeap()

    @property
    def next_us(self) -> int:
        """The time of the next timer; FOREVER_US without one."""
        return self._timers.next_us

    def watch(self, want: Want) -> None:
        """Set the timer of a consumer, if its rate holds back all of its credit."""
        if want.rate is not None and want.throttled and not want.credit and want.consumer not in self._timers:
            self._timers.add(want.consumer, want.rate.due_us(want.throttled))

    def take(self, now_us: int, count_max: int) -> list[int]:
        """Return the consumers whose time has come, at most `count_max`; the timers of the others are due still."""
        found: list[int] = []
        while len(found) < count_max and (consumer := self._timers.pop_due(now_us)) is not None:
            found.append(consumer)
        return found

    def forget(self, consumer: int) -> None:
        """Remove the timer of a consumer that has ended."""
        self._timers.remove(consumer)
