"""The time that matching may take in one tick. It decides when a match goes on, never what it answers."""

from collections.abc import Callable
from typing import final

__all__ = ["TimeBudget", "standing_clock"]


def standing_clock() -> int:
    """Return 0: on this clock no budget is ever spent."""
    return 0


@final
class TimeBudget:
    """A budget of microseconds, by a clock in nanoseconds that is an argument.

    It begins at the first check after `restart`, which is never spent. So each tick makes progress.
    """

    __slots__ = ("_clock_ns", "_duration_ns", "_end_ns")

    def __init__(self, clock_ns: Callable[[], int] = standing_clock, *, duration_us: int = 1) -> None:
        self._clock_ns = clock_ns
        self._duration_ns = duration_us * 1000
        self._end_ns: int | None = None

    def restart(self) -> None:
        """Begin a new budget at the next check."""
        self._end_ns = None

    def is_spent(self) -> bool:
        """Return whether the time is over; never at the first check of a budget."""
        now_ns = self._clock_ns()
        if self._end_ns is None:
            self._end_ns = now_ns + self._duration_ns
            return False
        return now_ns >= self._end_ns
