"""The batches of the running tick, before they are written.

Rule 1. An offset is given when a record is added, and never again to another one.
Rule 2. A batch is closed only between commands, so that a command is on the disk whole or not at all: at the end of the
        command that took it to `batch_bytes_target`, or before one that would take it past `batch_bytes_max`. A command
        that comes to `batch_bytes_target` by itself goes on in another batch, where its caller ends a part of it.
Rule 3. Bodies are referenced, never copied; they must not change until they are written and dropped from the hot cache.

A run of records is packed without a line of Python a record: the columns in which they differ come from `map`, and
those in which they are alike are the separator that joins them.
"""

from collections.abc import Sequence
from itertools import repeat

from ambermq.log.buffer import Buffer
from ambermq.log.config import LogConfig
from ambermq.log.format.batch import BATCH_ALIGNMENT, BATCH_HEADER_BYTES, DraftBatch
from ambermq.log.format.record import RECORD, RECORD_HEAD, RECORD_TAIL

__all__ = ["Draft"]

_pack = RECORD.pack
_pack_head = RECORD_HEAD.pack
_pack_tail = RECORD_TAIL.pack
_RECORD_BYTES = RECORD.size


class Draft:
    """What the commands of this tick have added and nobody has written yet."""

    __slots__ = (
        "_bytes_max",
        "_bytes_target",
        "_closed",
        "_ended_bytes",
        "_ended_offset",
        "_open",
        "_opened_bytes",
        "byte_count",
        "next_offset",
    )

    def __init__(self, config: LogConfig, *, next_offset: int) -> None:
        """Begin empty; the first record gets `next_offset`."""
        self._bytes_target = config.batch_bytes_target
        self._bytes_max = config.batch_bytes_max
        self._closed: list[DraftBatch] = []
        self._open = DraftBatch(next_offset)
        self._opened_bytes = 0
        """`byte_count` where the open batch began, before its header."""
        self._ended_offset = self.next_offset = next_offset
        """The offset that the next record gets."""
        self.byte_count = self._ended_bytes = BATCH_HEADER_BYTES
        """Bytes that what is not yet written will take in the log, about."""

    @property
    def record_count(self) -> int:
        """Records added and not yet written."""
        first = self._closed[0] if self._closed else self._open
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
        """Add one record and return its offset; widths are those of record.py (struct.error where a value is wider)."""
        batch, offset = self._open, self.next_offset
        delta = offset - batch.base_offset
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
        """Add one record a body, alike but for body length and id hash, and return the first one's offset.

        `id_hashes` is as long as `bodies`, which has at least one; `meta` is stored with each of them.
        """
        batch, offset, length = self._open, self.next_offset, len(bodies)
        assert length == len(id_hashes) > 0
        delta = offset - batch.base_offset
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
        """End the records of one command, which stay together; asserts that they fit into one batch."""
        size = self.byte_count - self._opened_bytes
        if size >= self._bytes_target:
            if size > self._bytes_max - BATCH_ALIGNMENT:
                self._split()
            self._close()
        self._ended_offset, self._ended_bytes = self.next_offset, self.byte_count

    def end_part(self) -> None:
        """End a part of a command that may be more than a batch holds: once it is too large, the rest stands apart.

        A part is what stays together in any case; asserts that it fits into one batch.
        """
        if self.byte_count - self._ended_bytes >= self._bytes_target:
            self.end_command()

    def take(self) -> list[DraftBatch]:
        """Hand over what was added since the last time, in order, and begin anew."""
        if self.next_offset > self._open.base_offset:
            self._close()
        closed, self._closed = self._closed, []
        self._opened_bytes = 0
        self.byte_count = self._ended_bytes = BATCH_HEADER_BYTES
        return closed

    def _close(self) -> None:
        batch, end = self._open, self.next_offset
        batch.count = end - batch.base_offset
        size = self.byte_count - self._opened_bytes
        batch.size = size + -size % BATCH_ALIGNMENT
        self._closed.append(batch)
        self._open = DraftBatch(end)
        self._opened_bytes = self.byte_count
        self.byte_count += BATCH_HEADER_BYTES

    def _split(self) -> None:
        """Close the batch at its last command and move the running one, which made it too large, into a new one."""
        batch, next_offset, byte_count = self._open, self.next_offset, self.byte_count
        if self._ended_offset > batch.base_offset:
            self._open, rest = _cut(batch, self._ended_offset - batch.base_offset)
            self.next_offset, self.byte_count = self._ended_offset, self._ended_bytes
            self._close()
            self._open = rest
            self.next_offset = next_offset
            self.byte_count += byte_count - self._ended_bytes
        size = self.byte_count - self._opened_bytes
        assert size <= self._bytes_max - BATCH_ALIGNMENT, f"one command of {size} bytes"


def _cut(batch: DraftBatch, count: int) -> tuple[DraftBatch, DraftBatch]:
    """Return the first `count` records of a batch, where a command ends, and the others as a batch of their own."""
    parts = whole, rest = DraftBatch(batch.base_offset), DraftBatch(batch.base_offset + count)
    records, meta = b"".join(batch.records), b"".join(batch.meta)
    records_at = count * _RECORD_BYTES
    meta_at = sum(meta_length for _, _, meta_length, *_ in RECORD.iter_unpack(records[:records_at]))
    whole.records, rest.records = [records[:records_at]], _rebased(records[records_at:], count)
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


def _rebased(records: bytes, count: int) -> list[bytes]:
    """Pack the same records for a batch that begins `count` offsets later."""
    return [_pack(delta - count, *columns) for delta, *columns in RECORD.iter_unpack(records)]
