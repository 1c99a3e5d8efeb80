"""Reads of batches from segments for their bodies.

Rule 1. A batch is read and checked once and as a whole: its head CRC, then its body CRC. A body that fails is the
marker DAMAGED and never bytes. So is an offset that no batch has, because a caller asks only for offsets that must
exist.
Rule 2. `read_batches` does not know the source of its bytes. The loop gives it a read that never waits and raises
ReadWouldWait; the reader thread gives it one that waits. Decompression counts as waiting: only the thread does it, once
for each batch that is read.
Rule 3. Of a batch only the decompressed bodies and their starts stay in memory, not records and metas.
"""

from array import array
from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import accumulate
from struct import Struct
from typing import Final

from ambermq.log.buffer import Buffer
from ambermq.log.format.batch import (
    BATCH_HEADER_BYTES,
    COMPRESSED,
    BatchHeader,
    Mismatch,
    check,
    check_bounds,
    decode_header,
)
from ambermq.log.format.compression import plain_bodies
from ambermq.log.format.record import RECORD
from ambermq.log.format.sparse_positions import SparsePositions

__all__ = ["DAMAGED", "ReadBatch", "ReadWouldWait", "damaged_at", "read_batches"]

DAMAGED: Final = memoryview(b"")
"""The marker for a damaged body. Compare it by identity."""

_WINDOW_BYTES: Final = 64 << 10
_OVERHEAD_BYTES: Final = 400
_DELTA_AND_LENGTH: Final = Struct("<II40x")


class ReadWouldWait(Exception):
    """The bytes are not in the page cache or are compressed, so that the reader thread must read them."""


class ReadBatch:
    """The bodies of one batch."""

    __slots__ = ("_data", "_deltas", "_starts", "base_offset", "cost_bytes", "next_offset")

    def __init__(
        self, base_offset: int, next_offset: int, deltas: "array[int]", starts: "array[int]", data: bytes
    ) -> None:
        """Store what was read. `starts` has one entry more than `deltas`; both are empty for a damaged batch."""
        self.base_offset = base_offset
        self.next_offset = next_offset
        self._deltas = deltas
        self._starts = starts
        self._data = data
        self.cost_bytes = len(data) + 8 * len(starts) + _OVERHEAD_BYTES
        """The memory that the object takes, overhead included."""

    def body(self, offset: int) -> Buffer:
        """Return the body of one record, or DAMAGED."""
        return self.run((offset,))[0]

    def run(self, offsets: Sequence[int]) -> list[Buffer]:
        """Return the bodies of several records, all of them within [base_offset, next_offset)."""
        base, starts, data, deltas = self.base_offset, self._starts, self._data, self._deltas
        if len(deltas) == self.next_offset - base:
            return [data[starts[offset - base] : starts[offset - base + 1]] for offset in offsets]
        return [self._body_at(offset) for offset in offsets]

    def _body_at(self, offset: int) -> Buffer:
        delta = offset - self.base_offset
        index = bisect_left(self._deltas, delta)
        if index == len(self._deltas) or self._deltas[index] != delta:
            return DAMAGED
        return self._data[self._starts[index] : self._starts[index + 1]]


def damaged_at(offset: int, next_offset: int | None = None) -> ReadBatch:
    """Return a batch whose bodies in [offset, next_offset) are DAMAGED; without `next_offset` only the one body."""
    return ReadBatch(offset, offset + 1 if next_offset is None else next_offset, array("I"), array("I"), b"")


class _Window:
    """A piece of a segment, read on demand and at least 64 KiB at a time."""

    __slots__ = ("_data", "_read", "_start")

    def __init__(self, read: Callable[[int, int], bytes]) -> None:
        self._read = read
        self._start = 0
        self._data = memoryview(b"")

    def take(self, position: int, length: int) -> memoryview:
        """Return `length` bytes, fewer only at the end of the file."""
        at = position - self._start
        if at + length > len(self._data):
            self._data = memoryview(self._read(max(length, _WINDOW_BYTES), position))
            self._start, at = position, 0
        return self._data[at : at + length]


def read_batches(
    read: Callable[[int, int], bytes],
    positions: SparsePositions,
    offset: int,
    *,
    batch_bytes_max: int,
    decompresses: bool = True,
) -> list[ReadBatch]:
    """Return the batch of `offset` and, as a read-ahead, the next batch or all that begin within 64 KiB.

    `read(length, position)` reads from the segment of `positions`, and may raise ReadWouldWait. Without `decompresses`
    a compressed batch raises it too. The range of the first batch in the result has `offset`; it may be DAMAGED.
    """
    position = positions.locate(offset)
    window, batches, ahead_bytes = _Window(read), list[ReadBatch](), 0
    while position is not None and position < positions.end and (len(batches) < 2 or ahead_bytes < _WINDOW_BYTES):
        header = _valid_header(window, position, positions.salt_crc, batch_bytes_max)
        if header is None or (not batches and header.base_offset > offset):
            break
        next_offset = _next_offset(window, position, header)
        if batches or next_offset > offset:
            if header.flags & COMPRESSED and not decompresses:
                raise ReadWouldWait
            # The decompressed size counts: 64 KiB on the disk may be very large in memory.
            ahead_bytes += header.head_bytes + header.bodies_bytes
            batches.append(_read_batch(window, position, header, next_offset))
        position += header.length
    return batches or [damaged_at(offset)]


def _valid_header(window: _Window, position: int, salt_crc: int, batch_bytes_max: int) -> BatchHeader | None:
    start = window.take(position, BATCH_HEADER_BYTES)
    if len(start) < BATCH_HEADER_BYTES:
        return None
    header = decode_header(start)
    if check_bounds(header, batch_bytes_max=batch_bytes_max):
        return None
    head = window.take(position, header.head_bytes)
    return None if check(salt_crc, head, batch_bytes_max=batch_bytes_max) else header


def _next_offset(window: _Window, position: int, header: BatchHeader) -> int:
    if not header.count:
        return header.base_offset
    last = position + BATCH_HEADER_BYTES + (header.count - 1) * RECORD.size
    return header.base_offset + int.from_bytes(window.take(last, 4), "little") + 1


def _read_batch(window: _Window, position: int, header: BatchHeader, next_offset: int) -> ReadBatch:
    data = window.take(position, header.length)
    bodies = plain_bodies(header, data[header.head_bytes :])
    if isinstance(bodies, Mismatch):
        return damaged_at(header.base_offset, next_offset)
    records = data[BATCH_HEADER_BYTES : BATCH_HEADER_BYTES + header.count * RECORD.size]
    columns = array("I", [column for pair in _DELTA_AND_LENGTH.iter_unpack(records) for column in pair])
    starts = array("I", accumulate(columns[1::2], initial=0))
    return ReadBatch(header.base_offset, next_offset, columns[::2], starts, bytes(bodies))
