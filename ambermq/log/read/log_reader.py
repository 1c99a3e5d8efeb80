"""A reader of a log from another process, safe while a broker runs.

Rule 1. A reader writes nothing and locks only the manifest that it opened, with a shared lock. A process that deletes
files needs the exclusive lock. The reader checks that the path still names the file that it has locked.
Rule 2. A reader reads up to the end of the chain of batches at the time of its opening. For a running broker that is
everything written until then, for a stopped one everything that a recovery would find. Heads are checked at once,
bodies when they are read.
Rule 3. The durable part ends at the durable end. While a broker writes, a reader that reports to others stops there.
For a stopped broker everything counts that a recovery would keep.
Rule 4. A fault below the durable end is damage only if a second survey finds it too: a running broker may have filled
the space in between.
"""

import fcntl
import os
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Self

from ambermq.log.buffer import Buffer
from ambermq.log.config import LogConfig
from ambermq.log.errors import DamageError, LogError
from ambermq.log.format.batch import Batch, Mismatch
from ambermq.log.format.compression import plain_bodies
from ambermq.log.format.record import Record
from ambermq.log.format.segment import SEGMENT_HEADER_BYTES, segment_path
from ambermq.log.format.time_range import TimeRange
from ambermq.log.manifest.manifest import Manifest, SealedSegment, decode, manifest_path
from ambermq.log.manifest.writer_lock import is_written
from ambermq.log.read.batch_lookup import BatchLookup
from ambermq.log.read.body_reads import DAMAGED
from ambermq.log.segments.batch_walk import BatchWalk
from ambermq.log.segments.segment_reader import SegmentReader, open_sealed, walk_whole
from ambermq.log.segments.tail_survey import TailSurvey, extend, survey
from ambermq.log.storage.disk import DiskStorage
from ambermq.log.storage.interface import Storage

__all__ = ["LogReader", "ReadableBatch", "SegmentInfo", "SegmentState", "open_reader"]

_ATTEMPTS_MAX: Final = 20


class SegmentState(StrEnum):
    """The use of a segment."""

    SEALED = "sealed"
    ACTIVE = "active"
    SPARE = "spare"


@dataclass(frozen=True, slots=True)
class SegmentInfo:
    """A segment at the time of the reader's opening."""

    file_id: int
    """The id of the file."""
    path: str
    """The path of the file."""
    state: SegmentState
    """The use of the segment. A spare has no batch yet."""
    base_offset: int
    """The first offset of its range."""
    next_offset: int
    """The first offset after its range."""
    size: int
    """Valid bytes, header included; of a spare the allocated bytes."""
    times: TimeRange | None = None
    """The times of its records; None if it has none, or if the manifest does not name the times of a sealed segment."""


class ReadableBatch:
    """One batch. Its bodies are read at the first call of `body`; the reader must still be open then."""

    __slots__ = ("_bodies", "_part", "batch")

    def __init__(self, batch: Batch, part: SegmentReader) -> None:
        self.batch = batch
        """Header, records and metas."""
        self._part = part
        self._bodies: Buffer | Mismatch | None = None

    @property
    def is_read(self) -> bool:
        """Whether the bodies were read, so that the segment is not needed any more."""
        return self._bodies is not None

    def records(self) -> list[Record]:
        """Return the records of the batch."""
        return self.batch.record_list()

    def body(self, record: Record) -> Buffer:
        """Return the body of one of its records, or DAMAGED if the CRC of the batch's bodies fails."""
        header = self.batch.header
        if self._bodies is None:
            position = self.batch.position + header.head_bytes
            stored = self._part.file.read(header.length - header.head_bytes, position)
            self._bodies = plain_bodies(header, stored)
        if isinstance(self._bodies, Mismatch):
            return DAMAGED
        start = record.body_position - header.head_bytes
        return bytes(self._bodies[start : start + record.body_length])


class LogReader:
    """A log as it was when the reader opened it. The caller closes the reader."""

    def __init__(self, storage: Storage, directory: str, config: LogConfig, *, fd: int, manifest: Manifest) -> None:
        """Survey the log; `open_reader` calls this. `fd` is the locked manifest, which the reader closes."""
        self.storage = storage
        """The disk."""
        self.directory = directory
        """The directory of the log."""
        self._config = config
        self._fd = fd
        self.manifest = manifest
        """The manifest that the reader has locked."""
        was_written = is_written(directory)
        self.survey: TailSurvey = _survey(storage, directory, manifest, config)
        """The survey of the segments that are not sealed."""
        self.is_written = was_written or is_written(directory)
        """Whether a broker may have written while the log was opened."""
        self._lookup = BatchLookup(directory, manifest.sealed, self.survey.parts, self.open_sealed)
        self._last: ReadableBatch | None = None
        """The batch found last, so that reads of consecutive messages decompress it once."""

    @property
    def end(self) -> int:
        """The offset at which the readable log ends, by rule 3."""
        return self.survey.durable_end if self.is_written else self.survey.valid_end

    def segments(self) -> list[SegmentInfo]:
        """Return all segments in order of their offsets; the spare, if there is one, is last."""
        directory, parts = self.directory, self.survey.parts
        infos = [
            SegmentInfo(
                one.file_id,
                segment_path(directory, one.file_id),
                SegmentState.SEALED,
                one.base_offset,
                one.next_offset,
                one.size,
                one.times,
            )
            for one in self.manifest.sealed
        ]
        for index, part in enumerate(parts):
            is_last = index == len(parts) - 1
            next_offset = self.survey.valid_end if is_last else parts[index + 1].header.base_offset
            state = SegmentState.ACTIVE if is_last else SegmentState.SEALED
            header, times = part.header, part.times
            infos.append(
                SegmentInfo(header.file_id, part.path, state, header.base_offset, next_offset, part.end, times)
            )
        spare = self.manifest.spare
        if spare is not None and spare not in {info.file_id for info in infos}:
            path, end = segment_path(directory, spare), self.survey.valid_end
            size = self.storage.size(path) if self.storage.exists(path) else 0
            infos.append(SegmentInfo(spare, path, SegmentState.SPARE, end, end, size))
        return infos

    def batches(self, from_offset: int = 0) -> Iterator[ReadableBatch]:
        """Yield all batches with offsets from `from_offset` on. Raises DamageError at the first bad batch."""
        for part, walk in self.walks(from_offset):
            if walk.next_offset() > from_offset:
                yield ReadableBatch(walk.batch(), part)

    def walks(self, from_offset: int = 0) -> Iterator[tuple[SegmentReader, BatchWalk]]:
        """Yield each batch's segment and a walk at it. Batches that end below `from_offset` may be left out."""
        sealed_ones = self.manifest.sealed
        first = bisect_left(sealed_ones, from_offset + 1, key=lambda one: one.next_offset)
        for sealed in sealed_ones[first:]:
            position = SEGMENT_HEADER_BYTES
            if from_offset > sealed.base_offset:
                position = self._lookup.position(from_offset)
            part, base_offset, next_offset = self.open_sealed(sealed), sealed.base_offset, sealed.next_offset
            try:
                for walk in walk_whole(part, base_offset=base_offset, next_offset=next_offset, position=position):
                    yield part, walk
            finally:
                part.file.close()
        for part in self.survey.parts:
            walk = part.walk(part.positions.locate(from_offset) or SEGMENT_HEADER_BYTES, end=part.end)
            for _ in walk:
                yield part, walk

    def find(self, offset: int) -> tuple[ReadableBatch, Record] | None:
        """Return the batch and the record at `offset`, or None if there is none. It reads one segment.

        The batch's bodies can be read until later lookups have opened more than 8 other segments. Raises DamageError.
        """
        batch = self.find_batch(offset)
        if batch is None:
            return None
        record = next((record for record in batch.records() if record.offset == offset), None)
        return None if record is None else (batch, record)

    def find_batch(self, offset: int) -> ReadableBatch | None:
        """Return the batch whose range has `offset`, or None. The notes of `find` hold here too."""
        last = self._last
        if last is None or not last.is_read or not last.batch.header.base_offset <= offset < last.batch.next_offset:
            found = self._lookup.find(offset)
            last = self._last = None if found is None else ReadableBatch(found[1].batch(), found[0])
        return last

    def offset_at(self, time_us: int) -> int | None:
        """Return the greatest offset below `end` whose record's time is at or before `time_us`, or None."""
        return self._lookup.offset_at(time_us, end=self.end)

    def floor(self, offset: int) -> int | None:
        """Return the greatest offset of a record at or below `offset`, or None if there is none."""
        return self._lookup.floor(offset)

    def extend(self) -> bool:
        """Add the batches written since. Return false if the log has other segments now and must be opened again."""
        path = manifest_path(self.directory)
        if not os.path.samestat(os.fstat(self._fd), os.stat(path)):  # noqa: PTH116 - like fstat beside it
            return False
        extend(self.survey, self.manifest)
        return True

    def counts(self, info: SegmentInfo) -> tuple[int, int]:
        """Return the number of batches and of records in a segment. It reads their heads."""
        batches = records = 0
        for part, walk in self.walks(info.base_offset):
            if part.header.file_id > info.file_id:
                break
            assert walk.header is not None
            if part.header.file_id == info.file_id:
                batches += 1
                records += walk.header.count
        return batches, records

    def open_sealed(self, sealed: SealedSegment) -> SegmentReader:
        """Return an open sealed segment, whose file the caller closes. Raises DamageError."""
        return open_sealed(
            self.storage, self.directory, self.manifest, sealed, batch_bytes_max=self._config.batch_bytes_max
        )

    def close(self) -> None:
        """Close the files and release the manifest."""
        self._lookup.close()
        for part in self.survey.parts:
            part.file.close()
        os.close(self._fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_reader(directory: str, config: LogConfig | None = None, storage: Storage | None = None) -> LogReader:
    """Return a reader of the log in `directory`. A broker may run on it. The default storage is the machine's disk.

    Raises LogError if there is no log, and DamageError and ForeignError as a recovery does.
    """
    fd, manifest = _pin(directory)
    try:
        return LogReader(storage or DiskStorage(), directory, config or LogConfig(), fd=fd, manifest=manifest)
    except BaseException:
        os.close(fd)
        raise


def _pin(directory: str) -> tuple[int, Manifest]:
    """Return the manifest and its descriptor with a shared lock, after a check that its path still names that file."""
    path = manifest_path(directory)
    for _ in range(_ATTEMPTS_MAX):
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError as error:
            raise LogError(f"{directory} holds no log: {path} is missing") from error
        try:
            fcntl.flock(fd, fcntl.LOCK_SH)
            if os.path.samestat(os.fstat(fd), os.stat(path)):  # noqa: PTH116 - like fstat beside it
                return fd, decode(os.pread(fd, os.fstat(fd).st_size, 0), file=path)
        except FileNotFoundError:
            pass
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)
    raise LogError(f"{path} could not be locked: it changed {_ATTEMPTS_MAX} times while it was opened")


def _survey(storage: Storage, directory: str, manifest: Manifest, config: LogConfig) -> TailSurvey:
    """Return a survey of the unsealed segments; repeat it if a fault may be a write in progress."""
    first_error: DamageError | None = None
    while True:
        try:
            return survey(storage, directory, manifest, batch_bytes_max=config.batch_bytes_max)
        except DamageError as error:
            if first_error is not None and (error.file, error.position) == (first_error.file, first_error.position):
                raise
            first_error = error
