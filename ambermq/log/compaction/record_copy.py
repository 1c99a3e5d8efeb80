"""Copying some records of a segment into batches of their own: what a backup keeps, and a compaction.

    records in   [ 100 101 102 103 ] [ 104 105 ]           of sealed segments, batch by batch
    kept           101     103         105                 offsets, rising
    batches out  [ 101 103 105 ]                           offsets as they were, with holes between

Rule 1. A picked record is what it was: offset, time, columns, meta, body. Only the deltas begin anew, and the batch is
marked KEPT: what was between its records is gone, so nobody may fold it.
Rule 2. A batch ends as soon as it holds 256 KiB, or before a record would take it past the bound of all batches, or
where the epoch changes: small enough to read for one message, large enough to be read for many.
Rule 3. Bodies are checked before they are copied, and every offset asked for must be there: else it is damage.
Rule 4. Pure, and alike to the last byte for the same input: a copy can be made again anywhere and compared.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from ambermq.log.buffer import Buffer
from ambermq.log.compaction.record_selection import Columns, RecordSelection, rebased
from ambermq.log.errors import DamageError
from ambermq.log.format.batch import (
    BATCH_ALIGNMENT,
    BATCH_HEADER_BYTES,
    COMPRESSED,
    KEPT,
    BatchHeader,
    DraftBatch,
    Mismatch,
    encode_batch,
)
from ambermq.log.format.compression import Compressor, plain_bodies
from ambermq.log.segments.batch_walk import BatchWalk

__all__ = ["bodies_of_walk", "copy_records"]

_BATCH_BYTES_TARGET: Final = 256 << 10
_DELTA_END: Final = 1 << 32
_HEAD_BYTES: Final = BATCH_HEADER_BYTES + BATCH_ALIGNMENT


class _Gathering:
    """The batch that is gathered."""

    __slots__ = ("_batch", "_size", "durable_end", "epoch")

    def __init__(self, epoch: int, base_offset: int, base_time_us: int) -> None:
        self.epoch = epoch
        self.durable_end = 0
        self._batch = DraftBatch(base_offset, base_time_us, flags=KEPT)
        self._size = _HEAD_BYTES

    def room(self, picked: RecordSelection, first: int, base_offset: int, *, batch_bytes_max: int) -> int:
        """Return how far the records from `first` on, of a batch at `base_offset`, go in here: the end of those."""
        ends, before = picked.ends, self._size - picked.ends[first]
        # The record that takes it to the target is the last one; none may take it past the bound.
        end = bisect_left(ends, _BATCH_BYTES_TARGET - before, first)
        end = min(end, bisect_right(ends, batch_bytes_max - before, first) - 1)
        end = min(end, bisect_left(picked.deltas, self._batch.base_offset + _DELTA_END - base_offset, first))
        return min(end, len(picked))

    def add(self, picked: RecordSelection, first: int, end: int, base_offset: int, base_time_us: int) -> None:
        """Take the records [first, end) of a batch that began at `base_offset` and `base_time_us`."""
        batch = self._batch
        records = rebased(
            picked.records(first, end),
            offset_shift=base_offset - batch.base_offset,
            time_shift_us=base_time_us - batch.base_timestamp_us,
        )
        batch.records.append(records)
        batch.meta.append(picked.meta(first, end))
        batch.bodies.append(picked.bodies(first, end))
        batch.count += end - first
        self._size += picked.ends[end] - picked.ends[first]

    def encode(self, salt_crc: int, compressor: Compressor | None) -> list[Buffer]:
        batch = self._batch
        batch.body_bytes = sum(map(len, batch.bodies))
        frame = compressor.compress(batch.bodies) if compressor else None
        if frame is not None:
            batch.flags |= COMPRESSED
            batch.plain_bytes = batch.body_bytes
            batch.bodies, batch.body_bytes = [frame], len(frame)
        return encode_batch(batch, salt_crc=salt_crc, durable_end=self.durable_end, epoch=self.epoch)


def copy_records(
    walks: Iterable[BatchWalk], kept: Sequence[int], *, path: str, salt_crc: int, compressor: Compressor | None = None
) -> Iterator[list[Buffer]]:
    """Yield batches, as buffers to be written one after the other, of the records of one segment that are in `kept`.

    `walks` stand on each batch of the segment at `path`, `kept` are rising offsets that it must hold, and `salt_crc` is
    that of the segment that the batches are for. Bodies are compressed where there is a `compressor`; those that were
    compressed before are plain without one. Raises DamageError where bodies are not what was written, or a record
    is not there.
    """
    gathering: _Gathering | None = None
    index = 0
    for walk in walks:
        header = walk.header
        assert header is not None
        end = bisect_left(kept, walk.next_offset(), index)
        if index == end:
            continue
        picked, first = _picked(walk, kept[index:end], path), 0
        while first < len(picked):
            last = first
            if gathering is not None and gathering.epoch == header.epoch:
                last = gathering.room(picked, first, header.base_offset, batch_bytes_max=walk.batch_bytes_max)
            if gathering is None or last == first:
                if gathering is not None:
                    yield gathering.encode(salt_crc, compressor)
                gathering = _begun(header, picked, first)
                last = max(
                    first + 1, gathering.room(picked, first, header.base_offset, batch_bytes_max=walk.batch_bytes_max)
                )
            gathering.add(picked, first, last, header.base_offset, header.base_timestamp_us)
            gathering.durable_end = max(gathering.durable_end, header.durable_end)
            first = last
        index = end
    if index < len(kept):
        raise DamageError(path, 0, f"a record at offset {kept[index]}", "none")
    if gathering is not None:
        yield gathering.encode(salt_crc, compressor)


def _begun(header: BatchHeader, picked: RecordSelection, first: int) -> _Gathering:
    base_time_us = header.base_timestamp_us + picked.time_delta(first)
    return _Gathering(header.epoch, header.base_offset + picked.deltas[first], base_time_us)


def _picked(walk: BatchWalk, kept: Sequence[int], path: str) -> RecordSelection:
    """Return the records of a walk's batch that are in `kept`, all of which it must hold."""
    batch, bodies = walk.batch(), bodies_of_walk(walk, path)
    base_offset, columns = batch.header.base_offset, Columns(batch.records)
    indexes, missing = columns.find([offset - base_offset for offset in kept])
    if missing:
        raise DamageError(path, batch.position, f"a record at offset {base_offset + missing[0]}", "none")
    return columns.cut(indexes, batch.meta, bodies)


def bodies_of_walk(walk: BatchWalk, path: str) -> memoryview:
    """Return the plain bodies of the batch that `walk` stands on; raise DamageError where they are not as written."""
    header = walk.header
    assert header is not None
    bodies = plain_bodies(header, walk.bodies())
    if isinstance(bodies, Mismatch):
        raise DamageError(path, walk.position + header.head_bytes, bodies.expected, bodies.found)
    return memoryview(bodies)
