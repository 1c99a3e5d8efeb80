"""Where the batches of one segment lie: a sparse table in memory, one entry per 16 KiB of the segment.

A look-up yields a batch at or before the offset wanted; whoever reads walks on from there. 16 bytes an entry, so 64
KiB for a full segment, whether it holds ten batches or a million.
"""

from array import array
from bisect import bisect_right
from typing import Final

__all__ = ["SPACING_BYTES", "SparsePositions"]

SPACING_BYTES: Final = 16 << 10
"""Batches that begin nearer than this to the last entry get none of their own."""

_NO_END: Final = 1 << 62


class SparsePositions:
    """The sparse table of one segment; grows at the end only."""

    __slots__ = ("_bases", "_positions", "end", "next_position", "salt_crc")

    def __init__(self, salt_crc: int, *, end: int = _NO_END) -> None:
        self.salt_crc = salt_crc
        """What the head CRCs of the segment's batches continue from."""
        self.end = end
        """No batch that begins here or beyond counts: it may be one that a recovery ignored."""
        self._bases = array("q")
        self._positions = array("q")
        self.next_position = 0
        """What lies before needs no `note`."""

    def note(self, base_offset: int, position: int) -> None:
        """Take the batch at `position` into the table, where it is far enough from the last one."""
        if position >= self.next_position:
            # The base goes last: a reader in another thread finds a batch only when its position is there.
            self._positions.append(position)
            self._bases.append(base_offset)
            self.next_position = position + SPACING_BYTES

    def locate(self, offset: int) -> int | None:
        """Return the position of a batch at or before `offset`, None where the first is beyond it.

        Batches of no records share their base offset with the next one, so the entry before an equal one is as right.
        """
        index = bisect_right(self._bases, offset) - 1
        return self._positions[index] if index >= 0 else None

    def following(self, offset: int) -> int | None:
        """Return the position of the first batch noted that begins beyond `offset`, None where there is none."""
        index = bisect_right(self._bases, offset)
        return self._positions[index] if index < len(self._bases) else None

    def __len__(self) -> int:
        return len(self._bases)
