"""The two tasks of a compaction: counting what of a segment is kept, and rewriting a group of segments into one.

    count_kept      every CRC of one sealed segment, bodies included; how many of its records are kept, and their bytes
    rewrite_group   the kept records of neighbouring segments -> one new segment file, synced

Rule 1. A task is a value that can be sent to another process: segments as their files' paths, what is kept as packed
u64 offsets, rising. Its answer is one too. Nothing else is shared, and nothing is known of queues.
Rule 2. The same task writes the same bytes, wherever and however often it runs: the salt is drawn from what the group
is made of. Only the name of the file differs from attempt to attempt, so that none disturbs another. What is
compressed is so too, by the same version of zstandard (see compression.py).
Rule 3. The new segment answers for all offsets of its group, most of which are holes, and says file id 0: it gets one
when it is adopted (adoption.py). One that keeps nothing holds an empty batch, which says that something was there.
Rule 4. What is kept and is not there was lost before, by a repair: it is told, and no reason to stop. Any other fault
is a DamageError.
"""

import secrets
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from struct import Struct
from typing import Final

from ambermq.log.buffer import Buffer
from ambermq.log.compaction.record_copy import bodies_of_walk, copy_records
from ambermq.log.compaction.record_selection import Columns, runs_of
from ambermq.log.errors import DamageError
from ambermq.log.format.batch import BATCH_HEADER_BYTES, KEPT, BatchHeader, DraftBatch, encode_batch
from ambermq.log.format.checksum import crc32c
from ambermq.log.format.compression import Compressor
from ambermq.log.format.segment import COMPRESSIBLE_VERSION, PLAIN_VERSION, SEGMENT_HEADER_BYTES, Segment, SegmentHeader
from ambermq.log.segments.batch_walk import BatchWalk
from ambermq.log.segments.segment_reader import SegmentReader, walk_whole
from ambermq.log.storage.interface import File, Storage

__all__ = ["CountTask", "GroupTask", "Rewritten", "SegmentCount", "count_kept", "pack_offsets", "rewrite_group"]

_SYNC_BYTES: Final = 8 << 20
_IDENTITY: Final = Struct("<16sqqq")
_FILE_ID: Final = Struct("<Q")
_COMPRESSED: Final = b"compressed"

Pause = Callable[[int], None]
"""Hears the bytes just read or written, and may rest as long as it likes."""


@dataclass(frozen=True, slots=True)
class CountTask:
    """One sealed segment to be counted."""

    segment: Segment
    """Where it lies and what it answers for."""
    log_id: bytes
    """The log's: 16 bytes that its header must repeat."""
    kept: bytes
    """The offsets of its records that are kept, as by `pack_offsets`."""
    batch_bytes_max: int
    """No batch is larger."""


@dataclass(frozen=True, slots=True)
class SegmentCount:
    """What a segment holds of what is kept."""

    file_id: int
    """Which segment."""
    record_count: int
    """Records in it."""
    kept_count: int
    """Of those, what is kept."""
    kept_bytes: int
    """Bytes of the kept records, their metas and bodies, uncompressed."""
    missing: bytes = b""
    """Packed offsets that should be kept and are not there."""
    is_compressible: bool = False
    """Whether it was written to be compressed."""
    saved_bytes: int = 0
    """What compression takes off `kept_bytes` where they lie now: their share of what it takes off their batches."""

    @property
    def stored_bytes(self) -> int:
        """Bytes that the kept records take where they lie."""
        return self.kept_bytes - self.saved_bytes


@dataclass(frozen=True, slots=True)
class GroupTask:
    """Neighbouring segments to be written as one."""

    segments: tuple[Segment, ...]
    """In order of their offsets, each beginning where the one before ends."""
    log_id: bytes
    """The log's."""
    kept: tuple[bytes, ...]
    """For each segment the packed offsets of its records that are kept; all of them must be there."""
    directory: str
    """Where the new file is written."""
    batch_bytes_max: int
    """No batch is larger."""
    compresses: bool = False
    """Whether bodies are compressed; else they are plain, whatever they were."""

    @property
    def base_offset(self) -> int:
        """The first offset that the new segment answers for."""
        return self.segments[0].base_offset

    @property
    def next_offset(self) -> int:
        """The first that it does not."""
        return self.segments[-1].next_offset


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A new segment that lies in the job's directory, synced, and waits to be adopted."""

    name: str
    """Of the file in that directory."""
    base_offset: int
    """The first offset that it answers for."""
    next_offset: int
    """The first that it does not."""
    size: int
    """Bytes, header included."""
    record_count: int
    """Records in it."""
    crc: int
    """CRC-32C of all that follows the header."""


def pack_offsets(offsets: "array[int]") -> bytes:
    """Return offsets as a task carries them: u64 in this machine's order, for tasks stay on machines alike."""
    assert offsets.typecode == "Q"
    return offsets.tobytes()


def count_kept(storage: Storage, task: CountTask, pause: Pause = lambda _: None) -> SegmentCount:
    """Check every CRC of a segment and count what of it is kept. Raises DamageError, ForeignError and OSError."""
    kept, segment = _unpacked(task.kept), task.segment
    records = kept_count = kept_bytes = saved_bytes = index = 0
    missing = array("Q")
    part = _open(storage, segment, task.log_id, task.batch_bytes_max)
    try:
        for walk in walk_whole(part, base_offset=segment.base_offset, next_offset=segment.next_offset):
            assert walk.header is not None
            bodies_of_walk(walk, segment.path)
            end = bisect_left(kept, walk.next_offset(), index)
            if index < end:
                count, size = _count_batch(walk, kept[index:end], missing)
                kept_count, kept_bytes = kept_count + count, kept_bytes + size
                saved_bytes += _saved_of(walk.header, size)
            records, index = records + walk.header.count, end
            pause(walk.header.length)
        missing.extend(kept[index:])
        part.file.drop_cache(0, 0)
    finally:
        part.file.close()
    is_compressible = part.header.is_compressible
    return SegmentCount(
        segment.file_id, records, kept_count, kept_bytes, missing.tobytes(), is_compressible, saved_bytes
    )


def _saved_of(header: BatchHeader, size: int) -> int:
    """Return the share that `size` bytes of a batch's records have in what compression takes off it."""
    content_bytes = header.head_bytes - BATCH_HEADER_BYTES + header.bodies_bytes
    return size * (header.bodies_bytes - header.body_bytes) // max(content_bytes, 1)


def _count_batch(walk: BatchWalk, kept: "array[int]", missing: "array[int]") -> tuple[int, int]:
    """Return how many of `kept` a batch holds, and their bytes; add the others to `missing`."""
    batch = walk.batch()
    base_offset, columns = batch.header.base_offset, Columns(batch.records)
    indexes, absent = columns.find([offset - base_offset for offset in kept])
    missing.extend([base_offset + delta for delta in absent])
    return len(indexes), columns.size_of(runs_of(indexes))


def rewrite_group(storage: Storage, task: GroupTask, pause: Pause = lambda _: None) -> Rewritten:
    """Write the kept records of a group as one new segment file, synced, its name not yet.

    Raises DamageError and ForeignError where an input is not what was written, and OSError; what was written until
    then stays, for whoever sweeps the job's directory.
    """
    name = f"{task.segments[0].file_id:016x}-{task.segments[-1].file_id:016x}-{secrets.token_hex(8)}.log"
    file = storage.open(f"{task.directory}/{name}", create=True)
    try:
        return _Writer(storage, task, file, pause).write(name)
    finally:
        file.close()


class _Writer:
    """Writes one new segment."""

    def __init__(self, storage: Storage, task: GroupTask, file: File, pause: Pause) -> None:
        self._storage = storage
        self._task = task
        self._file = file
        self._pause = pause
        self._compressor = Compressor() if task.compresses else None
        version = COMPRESSIBLE_VERSION if task.compresses else PLAIN_VERSION
        self._header = SegmentHeader(_salt_of(task), task.log_id, 0, task.base_offset, 0, version)
        self._position = self._synced = SEGMENT_HEADER_BYTES
        self._crc = 0

    def write(self, name: str) -> Rewritten:
        task, count = self._task, 0
        for segment, packed in zip(task.segments, task.kept, strict=True):
            kept = _unpacked(packed)
            if kept:
                count += len(kept)
                self._copy(segment, kept)
        if not count:
            self._put(self._empty_batch())
        self._file.write([self._header.encode()], 0)
        self._file.sync()
        self._file.drop_cache(0, 0)
        return Rewritten(name, task.base_offset, task.next_offset, self._position, count, self._crc)

    def _copy(self, segment: Segment, kept: "array[int]") -> None:
        part = _open(self._storage, segment, self._task.log_id, self._task.batch_bytes_max)
        try:
            self._header = self._header._replace(epoch=max(self._header.epoch, part.header.epoch))
            walks = walk_whole(part, base_offset=segment.base_offset, next_offset=segment.next_offset)
            for batch in self._picked(walks, kept, segment.path):
                self._put(batch)
            part.file.drop_cache(0, 0)
        finally:
            part.file.close()

    def _picked(self, walks: Iterator[BatchWalk], kept: "array[int]", path: str) -> Iterator[list[Buffer]]:
        paused, salt_crc = self._paused(walks), self._header.salt_crc
        return copy_records(paused, kept, path=path, salt_crc=salt_crc, compressor=self._compressor)

    def _empty_batch(self) -> list[Buffer]:
        """Return a batch of no records, as old as the group's first: times never fall along a log."""
        segment, header = self._task.segments[0], self._header
        part = _open(self._storage, segment, self._task.log_id, self._task.batch_bytes_max)
        try:
            first = next(iter(part.walk()), None)
        finally:
            part.file.close()
        time_us = 0 if first is None else first.base_timestamp_us
        batch = DraftBatch(header.base_offset, time_us, flags=KEPT)
        return encode_batch(batch, salt_crc=header.salt_crc, durable_end=0, epoch=header.epoch)

    def _paused(self, walks: Iterator[BatchWalk]) -> Iterator[BatchWalk]:
        for walk in walks:
            yield walk
            assert walk.header is not None
            self._pause(walk.header.length)

    def _put(self, batch: list[Buffer]) -> None:
        self._file.write(batch, self._position)
        for buffer in batch:
            self._position += len(buffer)
            self._crc = crc32c(buffer, self._crc)
        if self._position - self._synced >= _SYNC_BYTES:
            # Little at a time: a long sync delays those of the log.
            self._file.datasync()
            self._synced = self._position


def _salt_of(task: GroupTask) -> int:
    """Return a salt that no other group has, and this one each time."""
    crc = crc32c(_IDENTITY.pack(task.log_id, task.base_offset, task.next_offset, len(task.segments)))
    for segment, kept in zip(task.segments, task.kept, strict=True):
        crc = crc32c(kept, crc32c(_FILE_ID.pack(segment.file_id), crc))
    return int(crc32c(_COMPRESSED, crc) if task.compresses else crc)


def _open(storage: Storage, segment: Segment, log_id: bytes, batch_bytes_max: int) -> SegmentReader:
    """Open a sealed segment by its path; raise DamageError where it is not the one that is meant."""
    path = segment.path
    try:
        file = storage.open(path)
    except FileNotFoundError as error:
        raise DamageError(path, 0, "a segment that the manifest names", "no file") from error
    try:
        header = _checked_header(file, segment, log_id)
    except BaseException:
        file.close()
        raise
    return SegmentReader(path, file, header, batch_bytes_max, segment.size, segment.size)


def _checked_header(file: File, segment: Segment, log_id: bytes) -> SegmentHeader:
    header = SegmentHeader.decode(file.read(SEGMENT_HEADER_BYTES, 0), segment.path)
    expected = (log_id, segment.file_id, segment.base_offset)
    if header is None or (header.log_id, header.file_id, header.base_offset) != expected:
        text = f"file {segment.file_id:016x} of log {log_id.hex()} from offset {segment.base_offset}"
        raise DamageError(segment.path, 0, text, "zeros" if header is None else str(header))
    return header


def _unpacked(packed: bytes) -> "array[int]":
    offsets = array("Q")
    offsets.frombytes(packed)
    return offsets
