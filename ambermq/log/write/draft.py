"""The batches of the current tick, before they are written.

Rule 1. A record gets its offset when it is added. No other record ever gets that offset.
Rule 2. A batch is closed only between commands, so that a command is on the disk as a whole or not at all. It is closed
        at the end of the command that reaches `batch_bytes_target`, or before a command that would exceed
        `batch_bytes_max`. A command that reaches `batch_bytes_target` alone continues in another batch, if its caller
        ends a part of it there.
Rule 3. Bodies are referenced and never copied. They must not change until they are written and have left the hot cache.

A run of records is packed without Python code for each record: `map` packs the columns that differ, and the equal
columns are the separator that joins them.
"""

from collections.abc import Sequence
from itertools import repeat

from ambermq.log.buffer import Buffer
from ambermq.log.config import LogConfig
from ambermq.log.format.batch import BATCH_ALIGNMENT, BATCH_HEADER_BYTES, DraftBatch
from ambermq.log.format.record import RECORD, RECORD_HEAD, RECORD_TAIL
from ambermq.log.format.time_range import TIME_MAX_US

__all__ = ["Draft"]

_pack = RECORD.pack
_pack_head = RECORD_HEAD.pack
_pack_tail = RECORD_TAIL.pack
_RECORD_BYTES = RECORD.size


class Draft:
    """The records that the commands of this tick have added and that are not yet written."""

    __slots__ = (
        "_bytes_max",
        "_bytes_target",
        "_closed_batches",
        "_command_end_bytes",
        "_command_end_offset",
        "_open_batch",
        "_open_start_bytes",
        "byte_count",
        "newer_types",
        "next_offset",
        "time_max_us",
        "time_min_us",
        "time_us",
    )

    def __init__(self, config: LogConfig, *, next_offset: int) -> None:
        """Start empty; the first record gets `next_offset`."""
        self._bytes_target = config.batch_bytes_target
        self._bytes_max = config.batch_bytes_max
        self._closed_batches: list[DraftBatch] = []
        self._open_batch = DraftBatch(next_offset)
        self._open_start_bytes = 0
        """`byte_count` at the start of the open batch, before its header."""
        self._command_end_offset = self.next_offset = next_offset
        """The offset of the next record."""
        self.byte_count = self._command_end_bytes = BATCH_HEADER_BYTES
        """The approximate size in the log of the records that are not yet written."""
        self.newer_types: set[int] = set()
        """The record types that earlier releases cannot read, of the records since the owner has emptied it."""
        self.time_us: int | None = None
        """The time of the last record; None if none was added since `Log.write` took the times."""
        self.time_min_us = TIME_MAX_US
        """The earliest time of the records that were added since then."""
        self.time_max_us = -TIME_MAX_US
        """The latest one."""

    @property
    def record_count(self) -> int:
        """The number of records that are not yet written."""
        first = self._closed_batches[0] if self._closed_batches else self._open_batch
        return self.next_offset - first.base_offset

    def add(
        self,
        record_type: int,
        /,
        *,
        timestamp_us: int,
        flags: int = 0,
        queue: int = 0,
        ref: int = 0,
        count: int = 0,
        aux: int = 0,
        id_hash: int = 0,
        meta: bytes = b"",
        body: Buffer = b"",
    ) -> int:
        """Add one record and return its offset. Raises struct.error if a value does not fit its column (record.py)."""
        batch, offset = self._open_batch, self.next_offset
        delta = offset - batch.base_offset
        if timestamp_us != self.time_us:
            self.time_us = timestamp_us
            self.time_min_us = min(self.time_min_us, timestamp_us)
            self.time_max_us = max(self.time_max_us, timestamp_us)
        if not delta:
            batch.base_timestamp_us = timestamp_us
        body_length, meta_length = len(body), len(meta)
        time_delta = timestamp_us - batch.base_timestamp_us
        batch.records.append(
            _pack(delta, body_length, meta_length, id_hash, queue, ref, time_delta, count, aux, record_type, flags)
        )
        batch.meta.append(meta)
        if body_length:
            batch.bodies.append(body)
            batch.body_bytes += body_length
            batch.runs.append((offset, (body,), body_length))
        self.next_offset = offset + 1
        self.byte_count += _RECORD_BYTES + meta_length + body_length
        return offset

    def add_bodies(
        self,
        record_type: int,
        /,
        *,
        timestamp_us: int,
        queue: int,
        bodies: Sequence[Buffer],
        id_hashes: Sequence[int],
        flags: int = 0,
        ref: int = 0,
        aux: int = 0,
        meta: bytes = b"",
    ) -> int:
        """Add one record for each body and return the first one's offset. Other columns are equal, except the id hash.

        `id_hashes` is as long as `bodies`, which has at least one; each record gets a copy of `meta`.
        """
        batch, offset, length = self._open_batch, self.next_offset, len(bodies)
        assert length == len(id_hashes) > 0
        delta = offset - batch.base_offset
        if timestamp_us != self.time_us:
            self.time_us = timestamp_us
            self.time_min_us = min(self.time_min_us, timestamp_us)
            self.time_max_us = max(self.time_max_us, timestamp_us)
        if not delta:
            batch.base_timestamp_us = timestamp_us
        tail = _pack_tail(queue, ref, timestamp_us - batch.base_timestamp_us, 0, aux, record_type, flags)
        body_lengths, meta_length = list(map(len, bodies)), len(meta)
        body_bytes = sum(body_lengths)
        heads = map(_pack_head, range(delta, delta + length), body_lengths, repeat(meta_length), id_hashes)
        batch.records += (tail.join(heads), tail)
        if meta_length:
            batch.meta.append(meta * length)
        batch.bodies += bodies
        batch.body_bytes += body_bytes
        batch.runs.append((offset, bodies, body_bytes))
        self.next_offset = offset + length
        self.byte_count += (_RECORD_BYTES + meta_length) * length + body_bytes
        return offset

    def end_command(self) -> None:
        """End the records of one command, which go into one batch. Asserts that they fit."""
        size = self.byte_count - self._open_start_bytes
        if size >= self._bytes_target:
            if size > self._bytes_max - BATCH_ALIGNMENT:
                self._split()
            self._close()
        self._command_end_offset, self._command_end_bytes = self.next_offset, self.byte_count

    def end_part(self) -> None:
        """End a part of a command that may not fit into one batch. The next part goes into a new batch if needed.

        The records of a part go into one batch. Asserts that they fit.
        """
        if self.byte_count - self._command_end_bytes >= self._bytes_target:
            self.end_command()

    def take(self) -> list[DraftBatch]:
        """Return the batches of all added records, in order, and start empty again."""
        batch, end = self._open_batch, self.next_offset
        closed, self._closed_batches = self._closed_batches, []
        if end > batch.base_offset:
            size = self.byte_count - self._open_start_bytes
            batch.count, batch.size = end - batch.base_offset, size + -size % BATCH_ALIGNMENT
            closed.append(batch)
            self._open_batch = DraftBatch(end)
        self._open_start_bytes = 0
        self.byte_count = self._command_end_bytes = BATCH_HEADER_BYTES
        return closed

    def _close(self) -> None:
        """End the open batch; the next record begins another one."""
        command_end_bytes, byte_count = self._command_end_bytes, self.byte_count
        self._closed_batches = self.take()
        self._open_start_bytes, self._command_end_bytes = byte_count, command_end_bytes
        self.byte_count = byte_count + BATCH_HEADER_BYTES

    def _split(self) -> None:
        """Close the batch before the current command, which made it too large, and move that into a new batch."""
        batch, next_offset, byte_count = self._open_batch, self.next_offset, self.byte_count
        if self._command_end_offset > batch.base_offset:
            self._open_batch, rest = _split_batch(batch, self._command_end_offset - batch.base_offset)
            self.next_offset, self.byte_count = self._command_end_offset, self._command_end_bytes
            self._close()
            self._open_batch = rest
            self.next_offset = next_offset
            self.byte_count += byte_count - self._command_end_bytes
        size = self.byte_count - self._open_start_bytes
        assert size <= self._bytes_max - BATCH_ALIGNMENT, f"one command of {size} bytes"


def _split_batch(batch: DraftBatch, count: int) -> tuple[DraftBatch, DraftBatch]:
    """Return a batch's first `count` records and the others, as two batches. A command must end between them."""
    parts = whole, rest = DraftBatch(batch.base_offset), DraftBatch(batch.base_offset + count)
    records, meta = b"".join(batch.records), b"".join(batch.meta)
    records_at = count * _RECORD_BYTES
    meta_at = sum(meta_length for _, _, meta_length, *_ in RECORD.iter_unpack(records[:records_at]))
    whole.records, rest.records = [records[:records_at]], _rebase(records[records_at:], count)
    whole.meta, rest.meta = [meta[:meta_at]], [meta[meta_at:]]
    for run in batch.runs:
        first_offset, bodies, body_bytes = run
        part = whole if first_offset < rest.base_offset else rest
        part.runs.append(run)
        part.bodies += bodies
        part.body_bytes += body_bytes
    for part in parts:
        part.base_timestamp_us = batch.base_timestamp_us
    return parts


def _rebase(records: bytes, count: int) -> list[bytes]:
    """Return the same records packed for a batch that begins `count` offsets later."""
    return [_pack(delta - count, *columns) for delta, *columns in RECORD.iter_unpack(records)]
