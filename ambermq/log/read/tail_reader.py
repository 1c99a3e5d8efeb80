"""Batches of a running log read again beside its loop, heads alone: a stretch of one segment at a time.

Rule 1. The loop says where to read (`Log.stretch`), which costs no file access; another thread reads.
Rule 2. What is read was written before the stretch was made; `end` keeps it to what is durable.
Rule 3. A read is of bounded size: a stretch longer than that is read again from where the last read ended.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from ambermq.log.errors import DamageError
from ambermq.log.format.batch import Batch
from ambermq.log.format.segment import SEGMENT_HEADER_BYTES, Segment, SegmentHeader
from ambermq.log.format.sparse_positions import SparsePositions
from ambermq.log.index.segment_index import load_positions
from ambermq.log.segments.segment_reader import SegmentReader
from ambermq.log.storage.interface import File, Storage

__all__ = ["TailReader"]

_PIECE_BYTES = 256 << 10


@dataclass(frozen=True, slots=True)
class TailReader:
    """Where the batches from an offset on lie."""

    storage: Storage
    path: str
    """The segment's file."""
    segment: Segment | None
    """As it was sealed; None of one that this process began."""
    positions: SparsePositions | None
    """Where its batches lie; None where nobody has looked yet."""
    first: int
    """The offset wanted; that of the first batch may be lower."""
    end: int
    """Batches that begin here or beyond are left out: they are not durable yet, or lie in the next segment."""
    size: int
    """Bytes of the segment that count."""
    batch_bytes_max: int

    def batches(self) -> Iterator[Batch]:
        """Yield batches in order, without bodies; at least one where there is any, and not all of a long stretch.

        Raises DamageError, ForeignError or OSError where they cannot be read.
        """
        file = self.storage.open(self.path)
        try:
            yield from self._batches(file)
        finally:
            file.close()

    def _batches(self, file: File) -> Iterator[Batch]:
        header = SegmentHeader.decode(file.read(SEGMENT_HEADER_BYTES, 0), self.path)
        if header is None:
            raise DamageError(self.path, 0, "a segment header", "zeros")
        part = SegmentReader(self.path, file, header, self.batch_bytes_max, self.size)
        start = self._start(file)
        is_found = False
        for length in (_PIECE_BYTES, 2 * self.batch_bytes_max):
            walk = part.walk(start, end=min(self.size, start + length))
            for found in walk:
                if found.base_offset >= self.end:
                    return
                if walk.next_offset() > self.first:
                    is_found = True
                    yield walk.batch()
            if is_found:
                return
            # Heads larger than a piece, or many that end before the offset wanted.
            start = walk.position
        if start < self.size and walk.mismatch is not None:
            raise DamageError(self.path, start, walk.mismatch.expected, walk.mismatch.found)

    def _start(self, file: File) -> int:
        positions = self.positions
        if positions is None:
            positions = load_positions(file, self.path, self.segment, batch_bytes_max=self.batch_bytes_max)
        return positions.locate(self.first) or SEGMENT_HEADER_BYTES
