"""The positions of the batches of one segment: a sparse table in memory, one entry per 16 KiB of the segment.

A lookup returns a batch at or before the wanted offset; the reader walks on from there. An entry has 16 bytes, so a
full segment needs 64 KiB, for ten batches as for a million.
"""

from array import array
from bisect import bisect_right
from typing import Final

__all__ = ["SPACING_BYTES", "SparsePositions"]

SPACING_BYTES: Final = 16 << 10
"""A batch that begins nearer than this to the last entry gets no entry."""

_NO_END: Final = 1 << 62


class SparsePositions:
    """The sparse table of one segment. It grows only at its end."""

    __slots__ = ("_bases", "_positions", "end", "next_position", "salt_crc")

    def __init__(self, salt_crc: int, *, end: int = _NO_END) -> None:
        self.salt_crc = salt_crc
        """The CRC from which the head CRCs of the segment's batches continue."""
        self.end = end
        """A batch that begins here or later does not count: a recovery may have ignored it."""
        self._bases = array("q")
        self._positions = array("q")
        self.next_position = 0
        """A batch that begins before this position gets no entry."""

    def add(self, base_offset: int, position: int) -> None:
        """Add the batch at `position` to the table if it is far enough from the last entry."""
        if position >= self.next_position:
            # The base offset is appended last: a reader in another thread then always finds its position too.
            self._positions.append(position)
            self._bases.append(base_offset)
            self.next_position = position + SPACING_BYTES

    def locate(self, offset: int) -> int | None:
        """Return the position of a batch at or before `offset`, or None if the first batch is after it.

        A batch without records shares its base offset with the next one, so the entry before an equal one is right too.
        """
        index = bisect_right(self._bases, offset) - 1
        return self._positions[index] if index >= 0 else None

    def locate_next(self, offset: int) -> int | None:
        """Return the position of the first entry whose batch begins after `offset`, or None if there is none."""
        index = bisect_right(self._bases, offset)
        return self._positions[index] if index < len(self._bases) else None

    def __len__(self) -> int:
        return len(self._bases)
