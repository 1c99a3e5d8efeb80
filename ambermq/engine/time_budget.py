"""The time that matching may take in one tick. It decides when a match goes on, never what it answers."""

from collections.abc import Callable
from typing import final

__all__ = ["MatchUnfinished", "TimeBudget", "standing_clock"]


class MatchUnfinished(Exception):
    """A match whose time is over. The same match in the next tick goes on where this one ended."""


def standing_clock() -> int:
    """Return 0: on this clock no budget is ever spent."""
    return 0


@final
class TimeBudget:
    """A budget of microseconds, by a clock in nanoseconds that is an argument.

    It begins at the first check of a tick, which is never spent. So each tick makes progress.
    """

    __slots__ = ("_clock_ns", "_duration_ns", "end_ns")

    def __init__(self, clock_ns: Callable[[], int] = standing_clock, *, duration_us: int = 1) -> None:
        self._clock_ns = clock_ns
        self._duration_ns = duration_us * 1000
        self.end_ns: int | None = None
        """The end of the budget; None begins a new one at the next check."""

    def is_spent(self) -> bool:
        """Return whether the time is over; never at the first check of a budget."""
        now_ns = self._clock_ns()
        if self.end_ns is None:
            self.end_ns = now_ns + self._duration_ns
            return False
        return now_ns >= self.end_ns

    def check(self) -> None:
        """Raise MatchUnfinished if the time is over."""
        if self.is_spent():
            raise MatchUnfinished
