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

from log.batch import BATCH_ALIGNMENT, BATCH_HEADER_BYTES
from log.buffer import Buffer
from log.config import LogConfig
from log.record import RECORD, RECORD_HEAD, RECORD_TAIL

__all__ = ["Draft", "DraftBatch"]

_pack = RECORD.pack
_pack_head = RECORD_HEAD.pack
_pack_tail = RECORD_TAIL.pack
_RECORD_BYTES = RECORD.size


class DraftBatch:
    """One batch that is or will be closed; plain columns, for one is made every tick."""

    __slots__ = ("base_offset", "base_timestamp_us", "bodies", "body_bytes", "count", "meta", "records", "runs", "size")

    base_offset: int
    base_timestamp_us: int
    count: int
    records: list[bytes]
    meta: list[bytes]
    bodies: list[Buffer]
    body_bytes: int
    runs: list[tuple[int, Sequence[Buffer]]]
    """(first offset, bodies of consecutive records), for the hot cache."""
    size: int
    """Bytes on the disk so far; padding is included when it is closed."""

    def __init__(self, base_offset: int) -> None:
        """Begin a batch without records."""
        self.base_offset = base_offset
        self.base_timestamp_us = 0
        self.count = 0
        self.records = []
        self.meta = []
        self.bodies = []
        self.body_bytes = 0
        self.runs = []
        self.size = BATCH_HEADER_BYTES


class Draft:
    """What the commands of this tick have added and nobody has written yet."""

    __slots__ = (
        "_bytes_max",
        "_bytes_target",
        "_closed",
        "_closed_bytes",
        "_closed_count",
        "_ended_count",
        "_ended_size",
        "_open",
        "next_offset",
    )

    def __init__(self, config: LogConfig, *, next_offset: int) -> None:
        """Begin empty; the first record gets `next_offset`."""
        self._bytes_target = config.batch_bytes_target
        self._bytes_max = config.batch_bytes_max
        self._closed: list[DraftBatch] = []
        self._closed_bytes = 0
        self._closed_count = 0
        self._open = DraftBatch(next_offset)
        self._ended_count = self._ended_size = 0
        self.next_offset = next_offset
        """The offset that the next record gets."""

    @property
    def record_count(self) -> int:
        """Records added and not yet written."""
        return self._closed_count + self._open.count

    @property
    def byte_count(self) -> int:
        """Bytes that they will take in the log, about."""
        return self._closed_bytes + self._open.size

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
        batch = self._open
        delta = batch.count
        if not delta:
            batch.base_timestamp_us = timestamp_us
        offset = batch.base_offset + delta
        body_length, meta_length = len(body), len(meta)
        time_delta = timestamp_us - batch.base_timestamp_us
        batch.records.append(
            _pack(delta, body_length, meta_length, id_hash, queue, ref, time_delta, count, aux, record_type, flags)
        )
        if meta_length:
            batch.meta.append(meta)
        if body_length:
            batch.bodies.append(body)
            batch.body_bytes += body_length
            batch.runs.append((offset, (body,)))
        batch.count = delta + 1
        self.next_offset = offset + 1
        batch.size += _RECORD_BYTES + meta_length + body_length
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
        length = len(bodies)
        assert length == len(id_hashes) > 0
        batch = self._open
        delta = batch.count
        if not delta:
            batch.base_timestamp_us = timestamp_us
        tail = _pack_tail(queue, ref, timestamp_us - batch.base_timestamp_us, 0, aux, record_type, flags)
        body_lengths = list(map(len, bodies))
        body_bytes = sum(body_lengths)
        heads = map(_pack_head, range(delta, delta + length), body_lengths, repeat(len(meta)), id_hashes)
        batch.records.append(tail.join(heads))
        batch.records.append(tail)
        if meta:
            batch.meta.append(meta * length)
        batch.bodies += bodies
        batch.body_bytes += body_bytes
        offset = batch.base_offset + delta
        batch.runs.append((offset, bodies))
        batch.count = delta + length
        self.next_offset = offset + length
        batch.size += (_RECORD_BYTES + len(meta)) * length + body_bytes
        return offset

    def end_command(self) -> None:
        """End the records of one command, which stay together; asserts that they fit into one batch."""
        batch = self._open
        if batch.size < self._bytes_target:
            self._ended_count, self._ended_size = batch.count, batch.size
            return
        if batch.size > self._bytes_max - BATCH_ALIGNMENT:
            self._split()
        self._close()

    def end_part(self) -> None:
        """End a part of a command that may be more than a batch holds: once it is too large, the rest stands apart.

        A part is what stays together in any case; asserts that it fits into one batch.
        """
        if self._open.size - self._ended_size >= self._bytes_target:
            self.end_command()

    def take(self) -> list[DraftBatch]:
        """Hand over what was added since the last time, in order, and begin anew."""
        if self._open.count:
            self._close()
        closed, self._closed = self._closed, []
        self._closed_bytes = self._closed_count = 0
        return closed

    def _close(self) -> None:
        batch = self._open
        self._closed_bytes += batch.size
        self._closed_count += batch.count
        batch.size += -batch.size % BATCH_ALIGNMENT
        self._closed.append(batch)
        self._open = DraftBatch(batch.base_offset + batch.count)
        self._ended_count = self._ended_size = 0

    def _split(self) -> None:
        """Close the batch at its last command and move the running one, which made it too large, into a new one."""
        self._open, rest = _cut(self._open, self._ended_count)
        if self._open.count:
            self._close()
        self._open = rest
        assert rest.size <= self._bytes_max - BATCH_ALIGNMENT, f"one command of {rest.size} bytes"


def _cut(batch: DraftBatch, count: int) -> tuple[DraftBatch, DraftBatch]:
    """Return the first `count` records of a batch, where a command ends, and the others as a batch of their own."""
    parts = whole, rest = DraftBatch(batch.base_offset), DraftBatch(batch.base_offset + count)
    whole.count, rest.count = count, batch.count - count
    records, meta = b"".join(batch.records), b"".join(batch.meta)
    records_at = count * _RECORD_BYTES
    meta_at = sum(meta_length for _, _, meta_length, *_ in RECORD.iter_unpack(records[:records_at]))
    whole.records, rest.records = [records[:records_at]], _rebased(records[records_at:], count)
    whole.meta, rest.meta = [meta[:meta_at]], [meta[meta_at:]]
    for run in batch.runs:
        part = whole if run[0] < rest.base_offset else rest
        part.runs.append(run)
        part.bodies += run[1]
    for part in parts:
        part.base_timestamp_us = batch.base_timestamp_us
        part.body_bytes = sum(map(len, part.bodies))
        part.size += _RECORD_BYTES * part.count + sum(map(len, part.meta)) + part.body_bytes
    return parts


def _rebased(records: bytes, count: int) -> list[bytes]:
    """Pack the same records for a batch that begins `count` offsets later."""
    return [_pack(delta - count, *columns) for delta, *columns in RECORD.iter_unpack(records)]
