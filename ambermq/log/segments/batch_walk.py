"""A walk over the batches of one segment, from a position to the first invalid batch.

Rule 1. A walk yields only batches whose head (header, records, meta) is what was written. It ends at the first other
one and keeps the reason.
Rule 2. One read returns many small batches. Large bodies are skipped, because a fold never needs them.
Rule 3. A walk does not decide whether its end is the tail or damage. That depends on the durable end, which recovery
knows.
Rule 4. Valid batches after an invalid one are found by their magic at multiples of 8. Their head CRC alone is the
proof.
"""

from collections.abc import Iterator
from typing import Final

from ambermq.log.buffer import Buffer
from ambermq.log.format.batch import (
    BATCH_ALIGNMENT,
    BATCH_HEADER_BYTES,
    BATCH_MAGIC,
    Batch,
    BatchHeader,
    Mismatch,
    check,
    check_bounds,
    decode_header,
)
from ambermq.log.format.checksum import crc32c
from ambermq.log.format.record import RECORD
from ambermq.log.format.time_range import TimeRange, range_of_records
from ambermq.log.storage.interface import File

__all__ = ["BatchWalk", "find_later", "find_magic", "times_of"]

_PIECE_BYTES_MAX: Final = 4 << 20
_FIRST_PIECE_BYTES: Final = 64 << 10
_PAGE_MASK: Final = 4095
_MAGIC: Final = BATCH_MAGIC.to_bytes(4, "little")


class BatchWalk:
    """An iterator over the headers of valid batches in [position, end) of a segment.

    During the iteration `position`, `batch()`, `parts()`, `next_offset()` and `bodies()` describe the current batch.
    After the end `position` is the end of the walk and `mismatch` the reason: None at `end`, or at unwritten space.
    """

    __slots__ = (
        "_at",
        "_data",
        "_file",
        "_file_id",
        "_piece_bytes_max",
        "_start",
        "batch_bytes_max",
        "end",
        "header",
        "mismatch",
        "position",
        "salt_crc",
    )

    def __init__(
        self,
        file: File,
        file_id: int,
        *,
        salt_crc: int,
        position: int,
        end: int,
        batch_bytes_max: int,
        piece_bytes_max: int = _PIECE_BYTES_MAX,
    ) -> None:
        """Walk [position, end); one read has at most `piece_bytes_max` bytes, or one batch's head."""
        self._file = file
        self._file_id = file_id
        self.salt_crc = salt_crc
        self.position = position
        self.end = end
        self.batch_bytes_max = batch_bytes_max
        self._piece_bytes_max = piece_bytes_max
        self.header: BatchHeader | None = None
        self.mismatch: Mismatch | None = None
        self._data: Buffer = b""
        self._start = position
        self._at = 0

    def __iter__(self) -> Iterator[BatchHeader]:
        # One long loop: recovery runs it for every batch of the log, and one call a batch would halve its speed.
        position, end = self.position, self.end
        salt_crc, batch_bytes_max = self.salt_crc, self.batch_bytes_max
        piece_bytes, piece_bytes_max = _FIRST_PIECE_BYTES, self._piece_bytes_max
        view, start = memoryview(b""), position
        while position < end:
            at = position - start
            if at + BATCH_HEADER_BYTES > len(view):
                view, start, at = self._read(position, piece_bytes), position, 0
            if len(view) - at < BATCH_HEADER_BYTES:
                break
            header = decode_header(view, at)
            if header.magic != BATCH_MAGIC or check_bounds(header, batch_bytes_max=batch_bytes_max):
                break
            head_end = at + BATCH_HEADER_BYTES + header.count * 48 + header.meta_bytes
            if head_end > len(view):
                view = self._read(position, max(piece_bytes, head_end - at))
                start, at, head_end = position, 0, head_end - at
                if head_end > len(view):
                    break
            if crc32c(view[at + 12 : head_end], crc32c(view[at : at + 8], salt_crc)) != header.head_crc:
                break
            self.position, self.header, self._at = position, header, at
            yield header
            position += header.length
            # Before long bodies the next read covers only a head like this one. Otherwise reads grow.
            head_room = (head_end - at) * 2 | _PAGE_MASK
            piece_bytes = head_room + 1 if header.body_bytes > 2 * head_room else min(2 * piece_bytes, piece_bytes_max)
        self.position, self.header = position, None
        self.mismatch = self._explain(position)

    def batch(self) -> Batch:
        """Return the current batch, without its bodies."""
        header = self._current()
        records_end = self._at + BATCH_HEADER_BYTES + header.count * RECORD.size
        records = self._data[self._at + BATCH_HEADER_BYTES : records_end]
        meta = self._data[records_end : records_end + header.meta_bytes]
        return Batch(header, bytes(records), bytes(meta), self._file_id, self.position)

    def parts(self) -> tuple[Buffer, Buffer]:
        """Return records and metas of the current batch without making a Batch."""
        header, data = self._current(), self._data
        start = self._at + BATCH_HEADER_BYTES
        records_end = start + header.count * RECORD.size
        return data[start:records_end], data[records_end : records_end + header.meta_bytes]

    def head(self) -> bytes:
        """Return the current batch's header, records and metas as stored in the file."""
        return bytes(self._data[self._at : self._at + self._current().head_bytes])

    def next_offset(self) -> int:
        """Return the offset after the current batch's last record; its base offset if it has no record."""
        header = self._current()
        if not header.count:
            return header.base_offset
        last = self._at + BATCH_HEADER_BYTES + (header.count - 1) * RECORD.size
        return header.base_offset + int.from_bytes(self._data[last : last + 4], "little") + 1

    def bodies(self) -> bytes:
        """Return the current batch's bodies and padding, fewer if the file ends before. Their CRC is not checked."""
        header = self._current()
        head_bytes = header.head_bytes
        first, last = self._at + head_bytes, self._at + header.length
        if last <= len(self._data):
            return bytes(self._data[first:last])
        return self._file.read(header.length - head_bytes, self.position + head_bytes)

    def _current(self) -> BatchHeader:
        assert self.header is not None
        return self.header

    def _read(self, position: int, length: int) -> memoryview:
        self._data = self._file.read(min(length, self.end - position), position)
        return memoryview(self._data)

    def _explain(self, position: int) -> Mismatch | None:
        left = self.end - position
        if left < BATCH_HEADER_BYTES:
            rest = self._file.read(left, position) if left > 0 else b""
            return Mismatch("a batch header or zeros", f"{left} bytes of neither") if any(rest) else None
        start = self._file.read(BATCH_HEADER_BYTES, position)
        if not any(start):
            return None
        length = min(self.batch_bytes_max, left)
        head = self._file.read(length, position)
        return check(self.salt_crc, head, batch_bytes_max=self.batch_bytes_max) or Mismatch(
            "the same bytes in two reads of a batch", "other bytes"
        )


def times_of(walk: BatchWalk) -> TimeRange | None:
    """Return the times of the current batch's records; None if it has none."""
    header = walk.header
    assert header is not None
    return range_of_records(header.base_timestamp_us, walk.parts()[0]) if header.count else None


def find_later(walk: BatchWalk) -> Iterator[BatchWalk]:
    """Yield, for each valid batch after the end of a finished `walk`, a walk whose current batch it is."""
    position = walk.position + BATCH_ALIGNMENT
    while (position := find_magic(walk, position)) < walk.end:
        later = BatchWalk(
            walk._file,  # noqa: SLF001 - the same class's file
            walk._file_id,  # noqa: SLF001
            salt_crc=walk.salt_crc,
            position=position,
            end=walk.end,
            batch_bytes_max=walk.batch_bytes_max,
        )
        for _ in later:
            yield later
        position = max(later.position, position + BATCH_ALIGNMENT)


def find_magic(walk: BatchWalk, position: int) -> int:
    """Return the first multiple of 8 from `position` on that has a batch's magic, or the walk's end."""
    while position < walk.end:
        piece = walk._file.read(min(_PIECE_BYTES_MAX, walk.end - position), position)  # noqa: SLF001
        if not piece:
            break
        at = piece.find(_MAGIC)
        while at >= 0 and at % BATCH_ALIGNMENT:
            at = piece.find(_MAGIC, at + 1)
        if at >= 0:
            return position + at
        position += len(piece)
    return walk.end
