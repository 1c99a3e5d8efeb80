"""The batches of the running tick, before they are written.

Rule 1. An offset is given when a record is added, and never again to another one.
Rule 2. A batch is closed only between commands, so that a command is on the disk whole or not at all: at the end of the
        command that took it to `batch_bytes_target`, or before one that would take it past `batch_bytes_max`.
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
    """Bytes on the disk, padding included; set when it is closed."""

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
        self.size = 0


class Draft:
    """What the commands of this tick have added and nobody has written yet."""

    __slots__ = (
        "_bytes_max",
        "_bytes_target",
        "_closed",
        "_closed_bytes",
        "_closed_count",
        "_mark",
        "_meta_bytes",
        "_open",
    )

    def __init__(self, config: LogConfig, *, next_offset: int) -> None:
        """Begin empty; the first record gets `next_offset`."""
        self._bytes_target = config.batch_bytes_target
        self._bytes_max = config.batch_bytes_max
        self._closed: list[DraftBatch] = []
        self._closed_bytes = 0
        self._closed_count = 0
        self._open = DraftBatch(next_offset)
        self._meta_bytes = 0
        self._mark = (0, 0, 0, 0, 0, 0)

    @property
    def next_offset(self) -> int:
        """The offset that the next record gets."""
        return self._open.base_offset + self._open.count

    @property
    def record_count(self) -> int:
        """Records added and not yet written."""
        return self._closed_count + self._open.count

    @property
    def byte_count(self) -> int:
        """Bytes that they will take in the log, about."""
        return self._closed_bytes + self._size()

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
            self._meta_bytes += meta_length
        if body_length:
            batch.bodies.append(body)
            batch.body_bytes += body_length
            batch.runs.append((offset, (body,)))
        batch.count = delta + 1
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
        heads = map(_pack_head, range(delta, delta + length), body_lengths, repeat(len(meta)), id_hashes)
        batch.records.append(tail.join(heads))
        batch.records.append(tail)
        if meta:
            batch.meta.append(meta * length)
            self._meta_bytes += len(meta) * length
        batch.bodies += bodies
        batch.body_bytes += sum(body_lengths)
        offset = batch.base_offset + delta
        batch.runs.append((offset, bodies))
        batch.count = delta + length
        return offset

    def end_command(self) -> None:
        """End the records of one command, which stay together; asserts that they fit into one batch."""
        batch = self._open
        size = BATCH_HEADER_BYTES + _RECORD_BYTES * batch.count + self._meta_bytes + batch.body_bytes
        if size < self._bytes_target:
            self._mark = (
                batch.count, len(batch.records), len(batch.meta), len(batch.bodies), len(batch.runs), self._meta_bytes,
            )  # fmt: skip
            return
        if size > self._bytes_max - BATCH_ALIGNMENT:
            self._split()
        self._close()

    def take(self) -> list[DraftBatch]:
        """Hand over what was added since the last time, in order, and begin anew."""
        if self._open.count:
            self._close()
        closed, self._closed = self._closed, []
        self._closed_bytes = self._closed_count = 0
        return closed

    def _size(self) -> int:
        batch = self._open
        return BATCH_HEADER_BYTES + _RECORD_BYTES * batch.count + self._meta_bytes + batch.body_bytes

    def _close(self) -> None:
        batch = self._open
        size = BATCH_HEADER_BYTES + _RECORD_BYTES * batch.count + self._meta_bytes + batch.body_bytes
        batch.size = size + -size % BATCH_ALIGNMENT
        self._closed.append(batch)
        self._closed_bytes += size
        self._closed_count += batch.count
        self._open = DraftBatch(batch.base_offset + batch.count)
        self._meta_bytes = 0
        self._mark = (0, 0, 0, 0, 0, 0)

    def _split(self) -> None:
        """Close the batch at its last command and move the running one, which made it too large, into a new one."""
        count, records_at, meta_at, bodies_at, runs_at, meta_bytes = self._mark
        whole, rest = self._open, DraftBatch(self._open.base_offset + count)
        rest.base_timestamp_us = whole.base_timestamp_us
        rest.count, whole.count = whole.count - count, count
        rest.records, whole.records[records_at:] = _rebased(whole.records[records_at:], count), []
        rest.meta, whole.meta[meta_at:] = whole.meta[meta_at:], []
        rest.bodies, whole.bodies[bodies_at:] = whole.bodies[bodies_at:], []
        rest.runs, whole.runs[runs_at:] = whole.runs[runs_at:], []
        rest.body_bytes = sum(map(len, rest.bodies))
        whole.body_bytes -= rest.body_bytes
        rest_meta_bytes = self._meta_bytes - meta_bytes
        if whole.count:
            self._meta_bytes = meta_bytes
            self._close()
        self._open, self._meta_bytes = rest, rest_meta_bytes
        assert self._size() <= self._bytes_max - BATCH_ALIGNMENT, f"one command of {self._size()} bytes"


def _rebased(records: list[bytes], count: int) -> list[bytes]:
    """Pack the same records for a batch that begins `count` offsets later."""
    return [_pack(delta - count, *columns) for delta, *columns in RECORD.iter_unpack(b"".join(records))]
