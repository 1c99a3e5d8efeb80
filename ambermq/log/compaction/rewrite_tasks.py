"""The two tasks of a compaction: count the kept records of a segment, and rewrite a group of segments as one.

    count_kept      check every CRC of one sealed segment, bodies included; count its kept records and their bytes
    rewrite_group   write the kept records of neighbouring segments to one new segment file, synced

Rule 1. A task is a value that can be sent to another process: segments as paths of their files, kept offsets as packed
rising u64. Its result is such a value too. The processes share nothing else, and a task knows nothing of queues.
Rule 2. The same task writes the same bytes wherever and however often it runs: the salt is computed from the group.
Only the name of the file differs in each attempt, so that attempts do not disturb each other. Compressed bodies are the
same bytes too with the same version of zstandard (see compression.py).
Rule 3. The new segment covers all offsets of its group, most of which are holes. Its file id is 0 until it is adopted
(adoption.py). A group without kept records becomes a segment with one empty batch.
Rule 4. A kept record that is missing was lost before, by a repair: the result lists it, and the task continues. Any
other fault is a DamageError.
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
from ambermq.log.storage.steady_file import SteadyFile

__all__ = ["CountTask", "GroupTask", "RewrittenSegment", "SegmentCount", "count_kept", "pack_offsets", "rewrite_group"]

_IDENTITY: Final = Struct("<16sqqq")
_FILE_ID: Final = Struct("<Q")
_COMPRESSED: Final = b"compressed"

Pause = Callable[[int], None]
"""pause(number of bytes just read or written). It may wait as long as needed, to limit the rate."""


@dataclass(frozen=True, slots=True)
class CountTask:
    """A task: count the kept records of one sealed segment."""

    segment: Segment
    """The segment."""
    log_id: bytes
    """The log's id: 16 bytes that the segment's header must repeat."""
    kept: bytes
    """The offsets of the kept records, packed by `pack_offsets`."""
    batch_bytes_max: int
    """The largest batch."""


@dataclass(frozen=True, slots=True)
class SegmentCount:
    """The result of a CountTask."""

    file_id: int
    """The file id of the segment."""
    record_count: int
    """The number of records in the segment."""
    kept_count: int
    """The number of kept records in it."""
    kept_bytes: int
    """Bytes of the kept records, their metas and bodies, uncompressed."""
    missing: bytes = b""
    """Packed offsets of kept records that do not exist."""
    is_compressible: bool = False
    """Whether the segment's batches may be compressed."""
    saved_bytes: int = 0
    """Bytes that compression saves of `kept_bytes` now: the kept records' share of the saving of their batches."""

    @property
    def stored_bytes(self) -> int:
        """The bytes of the kept records as stored."""
        return self.kept_bytes - self.saved_bytes


@dataclass(frozen=True, slots=True)
class GroupTask:
    """A task: write neighbouring segments as one."""

    segments: tuple[Segment, ...]
    """The segments in order of their offsets. Each begins where the previous one ends."""
    log_id: bytes
    """The log's id."""
    kept: tuple[bytes, ...]
    """For each segment the packed offsets of its kept records, all of which must exist."""
    directory: str
    """The directory of the new file."""
    batch_bytes_max: int
    """The largest batch."""
    compresses: bool = False
    """Whether the new bodies are compressed. Otherwise they are plain, whatever they were."""

    @property
    def base_offset(self) -> int:
        """The first offset of the new segment's range."""
        return self.segments[0].base_offset

    @property
    def next_offset(self) -> int:
        """The first offset after the new segment's range."""
        return self.segments[-1].next_offset


@dataclass(frozen=True, slots=True)
class RewrittenSegment:
    """The result of a GroupTask: a new segment in the job's directory, synced and ready to be adopted."""

    name: str
    """The name of the file in that directory."""
    base_offset: int
    """The first offset of its range."""
    next_offset: int
    """The first offset after its range."""
    size: int
    """The size in bytes, header included."""
    record_count: int
    """The number of records."""
    crc: int
    """CRC-32C of all bytes after the header."""


def pack_offsets(offsets: "array[int]") -> bytes:
    """Return offsets packed for a task: u64 in the machine's byte order, which all machines of a job share."""
    assert offsets.typecode == "Q"
    return offsets.tobytes()


def count_kept(storage: Storage, task: CountTask, pause: Pause = lambda _: None) -> SegmentCount:
    """Check every CRC of a segment and return the counts. Raises DamageError, ForeignError and OSError."""
    kept, segment = _unpack_offsets(task.kept), task.segment
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
                saved_bytes += _saved_bytes(walk.header, size)
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


def _saved_bytes(header: BatchHeader, size: int) -> int:
    """Return the share of `size` bytes of a batch's records in the bytes that compression saves of the batch."""
    content_bytes = header.head_bytes - BATCH_HEADER_BYTES + header.bodies_bytes
    return size * (header.bodies_bytes - header.body_bytes) // max(content_bytes, 1)


def _count_batch(walk: BatchWalk, kept: "array[int]", missing: "array[int]") -> tuple[int, int]:
    """Return how many of `kept` are in a batch, and their bytes; append the others to `missing`."""
    batch = walk.batch()
    base_offset, columns = batch.header.base_offset, Columns(batch.records)
    indexes, absent = columns.find([offset - base_offset for offset in kept])
    missing.extend([base_offset + delta for delta in absent])
    return len(indexes), columns.size_of(runs_of(indexes))


def rewrite_group(storage: Storage, task: GroupTask, pause: Pause = lambda _: None) -> RewrittenSegment:
    """Write the kept records of a group to one new segment file and sync it. The name in the directory is not synced.

    Raises DamageError and ForeignError if an input is not what was written, and OSError. The unfinished file stays
    until the job's directory is swept.
    """
    name = f"{task.segments[0].file_id:016x}-{task.segments[-1].file_id:016x}-{secrets.token_hex(8)}.log"
    file = storage.open(f"{task.directory}/{name}", create=True)
    try:
        return _Writer(storage, task, file, pause).write(name)
    finally:
        file.close()


class _Writer:
    """The writer of one new segment."""

    def __init__(self, storage: Storage, task: GroupTask, file: File, pause: Pause) -> None:
        self._storage = storage
        self._task = task
        self._file = file
        self._pause = pause
        self._compressor = Compressor() if task.compresses else None
        version = COMPRESSIBLE_VERSION if task.compresses else PLAIN_VERSION
        self._header = SegmentHeader(_salt_of(task), task.log_id, 0, task.base_offset, 0, version)
        self._content = SteadyFile(file, SEGMENT_HEADER_BYTES)
        self._crc = 0

    def write(self, name: str) -> RewrittenSegment:
        task, count = self._task, 0
        for segment, packed in zip(task.segments, task.kept, strict=True):
            kept = _unpack_offsets(packed)
            if kept:
                count += len(kept)
                self._copy(segment, kept)
        if not count:
            self._write_batch(self._empty_batch())
        self._file.write([self._header.encode()], 0)
        self._content.sync()
        self._file.drop_cache(0, 0)
        return RewrittenSegment(name, task.base_offset, task.next_offset, self._content.position, count, self._crc)

    def _copy(self, segment: Segment, kept: "array[int]") -> None:
        part = _open(self._storage, segment, self._task.log_id, self._task.batch_bytes_max)
        try:
            self._header = self._header._replace(epoch=max(self._header.epoch, part.header.epoch))
            walks = walk_whole(part, base_offset=segment.base_offset, next_offset=segment.next_offset)
            for batch in self._copied_batches(walks, kept, segment.path):
                self._write_batch(batch)
            part.file.drop_cache(0, 0)
        finally:
            part.file.close()

    def _copied_batches(self, walks: Iterator[BatchWalk], kept: "array[int]", path: str) -> Iterator[list[Buffer]]:
        walks_with_pauses, salt_crc = self._walk_with_pauses(walks), self._header.salt_crc
        return copy_records(walks_with_pauses, kept, path=path, salt_crc=salt_crc, compressor=self._compressor)

    def _empty_batch(self) -> list[Buffer]:
        """Return a batch without records, with the time of the group's first batch: times never fall along a log."""
        segment, header = self._task.segments[0], self._header
        part = _open(self._storage, segment, self._task.log_id, self._task.batch_bytes_max)
        try:
            first = next(iter(part.walk()), None)
        finally:
            part.file.close()
        time_us = 0 if first is None else first.base_timestamp_us
        batch = DraftBatch(header.base_offset, time_us, flags=KEPT)
        return encode_batch(batch, salt_crc=header.salt_crc, durable_end=0, epoch=header.epoch)

    def _walk_with_pauses(self, walks: Iterator[BatchWalk]) -> Iterator[BatchWalk]:
        for walk in walks:
            yield walk
            assert walk.header is not None
            self._pause(walk.header.length)

    def _write_batch(self, batch: list[Buffer]) -> None:
        self._content.write(batch)
        for buffer in batch:
            self._crc = crc32c(buffer, self._crc)


def _salt_of(task: GroupTask) -> int:
    """Return the salt of a group: a CRC of its inputs, the same in each attempt."""
    crc = crc32c(_IDENTITY.pack(task.log_id, task.base_offset, task.next_offset, len(task.segments)))
    for segment, kept in zip(task.segments, task.kept, strict=True):
        crc = crc32c(kept, crc32c(_FILE_ID.pack(segment.file_id), crc))
    return int(crc32c(_COMPRESSED, crc) if task.compresses else crc)


def _open(storage: Storage, segment: Segment, log_id: bytes, batch_bytes_max: int) -> SegmentReader:
    """Return a sealed segment opened by its path. Raises DamageError if the file is another segment."""
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


def _unpack_offsets(packed: bytes) -> "array[int]":
    offsets = array("Q")
    offsets.frombytes(packed)
    return offsets
