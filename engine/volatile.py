"""The youngest messages that nobody asked to be durable: their deliveries do not wait for the sync."""

from bisect import bisect_right
from collections.abc import Iterable
from typing import final

__all__ = ["VolatileRanges"]


@final
class VolatileRanges:
    """Ranges of offsets above the durable end, in order; forgotten as the durable end passes them."""

    __slots__ = ("_ends", "_firsts")

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._ends: list[int] = []

    def __bool__(self) -> bool:
        return bool(self._ends)

    def add(self, first: int, count: int) -> None:
        """Note `count` records from the offset `first`, which is above all that was noted before."""
        if self._ends and self._ends[-1] == first:
            self._ends[-1] += count
        else:
            self._firsts.append(first)
            self._ends.append(first + count)

    def forget_below(self, durable_end: int) -> None:
        """Forget what has become durable meanwhile."""
        passed = bisect_right(self._ends, durable_end)
        del self._firsts[:passed], self._ends[:passed]

    def covers(self, offsets: Iterable[int]) -> bool:
        """Return whether every offset lies in one of the ranges."""
        firsts, ends = self._firsts, self._ends
        for offset in offsets:
            index = bisect_right(firsts, offset) - 1
            if index < 0 or offset >= ends[index]:
                return False
        return True
