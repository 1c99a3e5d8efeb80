"""The newest messages that were not published as durable: their deliveries do not wait for the sync."""

from bisect import bisect_right
from collections.abc import Iterable
from typing import final

__all__ = ["VolatileRanges"]


@final
class VolatileRanges:
    """Ranges of offsets above the durable end, in order."""

    __slots__ = ("_firsts", "ends")

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self.ends: list[int] = []
        """The offset after each range; empty without a range."""

    def add(self, first: int, count: int) -> None:
        """Add `count` records from the offset `first`, which is above all added ones."""
        if self.ends and self.ends[-1] == first:
            self.ends[-1] += count
        else:
            self._firsts.append(first)
            self.ends.append(first + count)

    def forget_below(self, durable_end: int) -> None:
        """Remove the ranges below the durable end."""
        passed = bisect_right(self.ends, durable_end)
        del self._firsts[:passed], self.ends[:passed]

    def covers(self, offsets: Iterable[int]) -> bool:
        """Return whether every offset lies in one of the ranges."""
        firsts, ends = self._firsts, self.ends
        for offset in offsets:
            index = bisect_right(firsts, offset) - 1
            if index < 0 or offset >= ends[index]:
                return False
        return True
