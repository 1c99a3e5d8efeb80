"""The youngest messages that nobody asked to be durable: their deliveries do not wait for the sync."""

from collections import deque
from collections.abc import Iterable
from typing import final

__all__ = ["VolatileRanges"]


@final
class VolatileRanges:
    """Ranges of offsets above the durable end, in order; forgotten as the durable end passes them."""

    __slots__ = ("_ranges",)

    def __init__(self) -> None:
        self._ranges: deque[tuple[int, int]] = deque()

    def __bool__(self) -> bool:
        return bool(self._ranges)

    def add(self, first: int, count: int) -> None:
        """Note `count` records from the offset `first`."""
        self._ranges.append((first, first + count))

    def forget_below(self, durable_end: int) -> None:
        """Forget what has become durable meanwhile."""
        while self._ranges and self._ranges[0][1] <= durable_end:
            self._ranges.popleft()

    def covers(self, offsets: Iterable[int]) -> bool:
        """Return whether every offset lies in one of the ranges."""
        return all(any(first <= offset < end for first, end in self._ranges) for offset in offsets)
