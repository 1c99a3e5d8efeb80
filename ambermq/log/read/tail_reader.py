"""A reader of recent batches of a running log, heads only, for another thread than the loop.

Rule 1. The loop makes the reader (`Log.tail_reader`) without access to a file; another thread reads.
Rule 2. The reader reads batches that were written before it was made; `end` limits it to the durable ones.
Rule 3. One reader covers part of one segment, and a read has a bounded size. To read on, the loop makes another reader
at the end of the last read.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from ambermq.log.errors import DamageError
from ambermq.log.format.batch import Batch
from ambermq.log.format.segment import SEGMENT_HEADER_BYTES, Segment
from ambermq.log.format.sparse_positions import SparsePositions
from ambermq.log.index.segment_index import load_positions
from ambermq.log.segments.readable_header import readable_header
from ambermq.log.segments.segment_reader import SegmentReader
from ambermq.log.storage.interface import File, Storage

__all__ = ["TailReader"]

_PIECE_BYTES = 256 << 10


@dataclass(frozen=True, slots=True)
class TailReader:
    """A reader of the batches from an offset on."""

    storage: Storage
    path: str
    """The path of the segment."""
    segment: Segment | None
    """The sealed segment; None for a segment that this process began."""
    positions: SparsePositions | None
    """The positions of its batches; None if they are not loaded yet."""
    first: int
    """The first wanted offset. The first batch may begin below it."""
    end: int
    """Batches that begin here or later are left out: they are not durable yet, or are in the next segment."""
    size: int
    """The valid bytes of the segment."""
    batch_bytes_max: int

    def batches(self) -> Iterator[Batch]:
        """Yield batches in order, without bodies: at least one if there is any, and not all of a long range.

        Raises DamageError, ForeignError or OSError if they cannot be read.
        """
        file = self.storage.open(self.path)
        try:
            yield from self._batches(file)
        finally:
            file.close()

    def _batches(self, file: File) -> Iterator[Batch]:
        header = readable_header(file, self.path, batch_bytes_max=self.batch_bytes_max)
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
            # A head is larger than the piece, or many batches end before the wanted offset.
            start = walk.position
        if start < self.size and walk.mismatch is not None:
            raise DamageError(self.path, start, walk.mismatch.expected, walk.mismatch.found)

    def _start(self, file: File) -> int:
        positions = self.positions
        if positions is None:
            positions = load_positions(file, self.path, self.segment, batch_bytes_max=self.batch_bytes_max)
        return positions.locate(self.first) or SEGMENT_HEADER_BYTES
