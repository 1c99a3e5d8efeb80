"""A copy of selected records of a segment in new batches. Backups and compactions write these.

    records in   [ 100 101 102 103 ] [ 104 105 ]           of sealed segments, batch by batch
    kept           101     103         105                 rising offsets
    batches out  [ 101 103 105 ]                           the same offsets, with holes

Rule 1. A selected record keeps its offset, time, columns, meta and body. Only the deltas change, and the batch is
marked KEPT: records between are missing, so no fold may read it.
Rule 2. A batch ends when it has 256 KiB, before a record would exceed the limit of a batch, and at a change of epoch.
That is small enough to read for one message, and large enough to read for many.
Rule 3. Bodies are checked before they are copied, and every requested offset must exist. Otherwise it is damage.
Rule 4. The module is pure and deterministic: the same input gives the same bytes, so that a copy can be compared.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from ambermq.log.buffer import Buffer
from ambermq.log.compaction.record_selection import Columns, RecordSelection, rebase
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


class _BatchBuilder:
    """The new batch in progress."""

    __slots__ = ("_batch", "_size", "durable_end", "epoch")

    def __init__(self, epoch: int, base_offset: int, base_time_us: int) -> None:
        self.epoch = epoch
        self.durable_end = 0
        self._batch = DraftBatch(base_offset, base_time_us, flags=KEPT)
        self._size = _HEAD_BYTES

    def room(self, selection: RecordSelection, first: int, base_offset: int, *, batch_bytes_max: int) -> int:
        """Return the end of the records from `first` on, of a batch at `base_offset`, that fit into this batch."""
        ends, size_before = selection.ends, self._size - selection.ends[first]
        # The record that reaches the target is the last one. No record may exceed the limit.
        end = bisect_left(ends, _BATCH_BYTES_TARGET - size_before, first)
        end = min(end, bisect_right(ends, batch_bytes_max - size_before, first) - 1)
        end = min(end, bisect_left(selection.deltas, self._batch.base_offset + _DELTA_END - base_offset, first))
        return min(end, len(selection))

    def add(self, selection: RecordSelection, first: int, end: int, base_offset: int, base_time_us: int) -> None:
        """Add the records [first, end) of a batch whose bases are `base_offset` and `base_time_us`."""
        batch = self._batch
        records = rebase(
            selection.records(first, end),
            offset_shift=base_offset - batch.base_offset,
            time_shift_us=base_time_us - batch.base_timestamp_us,
        )
        batch.records.append(records)
        batch.meta.append(selection.meta(first, end))
        batch.bodies.append(selection.bodies(first, end))
        batch.count += end - first
        self._size += selection.ends[end] - selection.ends[first]

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
    """Yield new batches, as buffers to write one after the other, of one segment's records in `kept`.

    `walks` yields a walk at each batch of the segment at `path`. `kept` are rising offsets that the segment must have.
    `salt_crc` is that of the target segment. Bodies are compressed if there is a `compressor`, else plain, whatever
    they were. Raises DamageError if bodies are not what was written, or if a record is missing.
    """
    builder: _BatchBuilder | None = None
    index = 0
    for walk in walks:
        header = walk.header
        assert header is not None
        end = bisect_left(kept, walk.next_offset(), index)
        if index == end:
            continue
        selection, first = _select(walk, kept[index:end], path), 0
        while first < len(selection):
            last = first
            if builder is not None and builder.epoch == header.epoch:
                last = builder.room(selection, first, header.base_offset, batch_bytes_max=walk.batch_bytes_max)
            if builder is None or last == first:
                if builder is not None:
                    yield builder.encode(salt_crc, compressor)
                builder = _begin_batch(header, selection, first)
                last = max(
                    first + 1, builder.room(selection, first, header.base_offset, batch_bytes_max=walk.batch_bytes_max)
                )
            builder.add(selection, first, last, header.base_offset, header.base_timestamp_us)
            builder.durable_end = max(builder.durable_end, header.durable_end)
            first = last
        index = end
    if index < len(kept):
        raise DamageError(path, 0, f"a record at offset {kept[index]}", "none")
    if builder is not None:
        yield builder.encode(salt_crc, compressor)


def _begin_batch(header: BatchHeader, selection: RecordSelection, first: int) -> _BatchBuilder:
    base_time_us = header.base_timestamp_us + selection.time_delta(first)
    return _BatchBuilder(header.epoch, header.base_offset + selection.deltas[first], base_time_us)


def _select(walk: BatchWalk, kept: Sequence[int], path: str) -> RecordSelection:
    """Return the records of a walk's batch that are in `kept`. The batch must have all of them."""
    batch, bodies = walk.batch(), bodies_of_walk(walk, path)
    base_offset, columns = batch.header.base_offset, Columns(batch.records)
    indexes, missing = columns.find([offset - base_offset for offset in kept])
    if missing:
        raise DamageError(path, batch.position, f"a record at offset {base_offset + missing[0]}", "none")
    return columns.cut(indexes, batch.meta, bodies)


def bodies_of_walk(walk: BatchWalk, path: str) -> memoryview:
    """Return the plain bodies of the current batch of `walk`. Raises DamageError if they are not what was written."""
    header = walk.header
    assert header is not None
    bodies = plain_bodies(header, walk.bodies())
    if isinstance(bodies, Mismatch):
        raise DamageError(path, walk.position + header.head_bytes, bodies.expected, bodies.found)
    return memoryview(bodies)
