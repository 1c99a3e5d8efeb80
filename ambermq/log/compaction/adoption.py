"""The adoption of a compaction's new segments: they are checked, moved, and named by one edit of the manifest.

    check     header, offsets, CRCs and table entry of every new file, slowly, while the broker works
    adopt     file ids are reserved, which puts them on the list `removed`       after a crash, nothing is left
              headers get their file ids, files are synced and moved             after a crash, the list deletes the
              files both directories are synced the edit: new segments, horizon and snapshots                      the
              log has the new segments

Rule 1. Only the thread that edits the manifest adopts. The edit applies to the generation on the disk. It is refused if
an input or the snapshot at the horizon is missing; then nothing changes, and the list `removed` deletes the new files.
Rule 2. An old file is deleted only when the loop does not read bodies from it any more (`is_released`) and no reader's
manifest names it (generation_pins.py).
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

from ambermq.log.compaction.job import CompactionJob, job_path
from ambermq.log.compaction.record_copy import bodies_of_walk
from ambermq.log.compaction.rewrite_tasks import RewrittenSegment
from ambermq.log.errors import DamageError, LogError
from ambermq.log.format.batch import KEPT
from ambermq.log.format.checksum import crc32c
from ambermq.log.format.segment import SEGMENT_HEADER_BYTES, SegmentHeader, segment_path
from ambermq.log.manifest.manifest import Manifest, SealedSegment, reserve_file_id, segments_path
from ambermq.log.manifest.segment_replacement import replace_segments
from ambermq.log.segments.segment_reader import SegmentReader, walk_whole
from ambermq.log.storage.interface import File, Storage

__all__ = ["Adoption", "adopt", "check_segments"]

_PIECE_BYTES: Final = 256 << 10

Throttle = Callable[[int], bool]
"""throttle(number of bytes just read) -> whether to stop. It may wait as long as needed."""


class Adoption:
    """A request to adopt the segments of a job, and its result. Threads pass it to each other as a whole."""

    __slots__ = ("error", "inputs", "is_done", "is_released", "job", "segments", "table")

    def __init__(self, job: str, table: CompactionJob) -> None:
        self.job = job
        """The name of the job; the new files are in its directory."""
        self.table = table
        """The job's table, checked."""
        self.inputs: tuple[SealedSegment, ...] = ()
        """The replaced segments, as the manifest named them."""
        self.segments: tuple[SealedSegment, ...] = ()
        """The new segments, with their file ids."""
        self.error: OSError | LogError | None = None
        """Why the adoption failed: the disk is full, or the log has changed since the job began."""
        self.is_done = False
        """Whether the adoption has ended, with success or not. The adopting thread sets it last."""
        self.is_released = False
        """Whether the loop reads nothing from the old files any more. The loop sets it."""


def check_segments(
    storage: Storage, directory: str, job: str, table: CompactionJob, *, batch_bytes_max: int, throttle: Throttle
) -> bool:
    """Read every new file and compare it with the table. Return false if `throttle` stopped the check.

    Raises DamageError, ForeignError and OSError.
    """
    for entry in table.segments:
        path = f"{job_path(directory, job)}/{entry.name}"
        file = storage.open(path)
        try:
            header = _header_of(file, path, entry, table)
            part = SegmentReader(path, file, header, batch_bytes_max, entry.size, entry.size)
            if not (_check_bytes(part, entry, throttle) and _check_batches(part, entry, throttle)):
                return False
            file.drop_cache(0, 0)
        finally:
            file.close()
    return True


def _header_of(file: File, path: str, entry: RewrittenSegment, table: CompactionJob) -> SegmentHeader:
    header = SegmentHeader.decode(file.read(SEGMENT_HEADER_BYTES, 0), path)
    found = None if header is None else (header.log_id.hex(), header.file_id, header.base_offset)
    expected = (table.log_id, 0, entry.base_offset)
    if header is None or found != expected:
        raise DamageError(path, 0, f"log, file id and base offset {expected}", f"{found}")
    if file.size() != entry.size:
        raise DamageError(path, 0, f"{entry.size} bytes", f"{file.size()}")
    return header


def _check_bytes(part: SegmentReader, entry: RewrittenSegment, throttle: Throttle) -> bool:
    position, crc = SEGMENT_HEADER_BYTES, 0
    while position < entry.size:
        piece = part.file.read(min(_PIECE_BYTES, entry.size - position), position)
        if not piece:
            break
        crc = crc32c(piece, crc)
        position += len(piece)
        if throttle(len(piece)):
            return False
    if crc != entry.crc:
        raise DamageError(part.path, SEGMENT_HEADER_BYTES, f"bytes with crc32c {entry.crc:08x}", f"{crc:08x}")
    return True


def _check_batches(part: SegmentReader, entry: RewrittenSegment, throttle: Throttle) -> bool:
    records = 0
    for walk in walk_whole(part, base_offset=entry.base_offset, next_offset=entry.next_offset):
        header = walk.header
        assert header is not None
        bodies_of_walk(walk, part.path)
        if not header.flags & KEPT:
            raise DamageError(part.path, walk.position, "a batch of kept records", f"flags {header.flags}")
        records += header.count
        if throttle(header.length):
            return False
    if records != entry.record_count:
        raise DamageError(part.path, SEGMENT_HEADER_BYTES, f"{entry.record_count} records", f"{records}")
    return True


def adopt(
    storage: Storage,
    directory: str,
    adoption: Adoption,
    commit: Callable[[Callable[[Manifest], Manifest]], Manifest],
) -> None:
    """Adopt the segments of a checked job. Raises LogError if the log has changed since, and OSError.

    `commit` applies an edit to the manifest and returns the new manifest.
    """
    table = adoption.table
    reserved = commit(partial(_reserve, count=len(table.segments)))
    file_ids = reserved.removed[len(reserved.removed) - len(table.segments) :]
    added = tuple(
        SealedSegment(file_id, entry.base_offset, entry.next_offset, entry.size)
        for file_id, entry in zip(file_ids, table.segments, strict=True)
    )
    edit = _Edit(table, added)
    # Applied once here, so that an edit that would be refused is refused before any file is moved.
    edit(reserved)
    try:
        _move(storage, directory, adoption, added)
    except OSError as error:
        raise LogError(f"the new segments of job {adoption.job} cannot be moved: {error}") from error
    commit(edit)
    adoption.inputs, adoption.segments = edit.inputs, added


def _reserve(manifest: Manifest, count: int) -> Manifest:
    reserved = manifest
    for _ in range(count):
        reserved = reserve_file_id(reserved)
    return replace(reserved, generation=manifest.generation + 1)


def _move(storage: Storage, directory: str, adoption: Adoption, added: tuple[SealedSegment, ...]) -> None:
    """Write the file ids into the new files, move them to their names, and sync all."""
    folder = job_path(directory, adoption.job)
    for entry, sealed in zip(adoption.table.segments, added, strict=True):
        source = f"{folder}/{entry.name}"
        _write_file_id(storage, source, sealed.file_id)
        storage.rename(source, segment_path(directory, sealed.file_id))
    storage.sync_directory(segments_path(directory))
    storage.sync_directory(folder)


class _Edit:
    """The edit of the manifest, and the segments that it replaces."""

    def __init__(self, table: CompactionJob, added: tuple[SealedSegment, ...]) -> None:
        self.inputs: tuple[SealedSegment, ...] = ()
        self._proposal = table
        self._added = added

    def __call__(self, manifest: Manifest) -> Manifest:
        table, inputs = self._proposal, frozenset(self._proposal.inputs)
        if manifest.log_id.hex() != table.log_id:
            raise LogError(f"the job was made for log {table.log_id}, but this log is {manifest.log_id.hex()}")
        self.inputs = tuple(one for one in manifest.sealed if one.file_id in inputs)
        return replace_segments(
            manifest, inputs=inputs, added=self._added, horizon=table.horizon, archive=table.archive
        )


def _write_file_id(storage: Storage, path: str, file_id: int) -> None:
    """Write the file id into the header of a new segment, which no reader knows yet, and sync it."""
    file = storage.open(path, create=True)
    try:
        header = SegmentHeader.decode(file.read(SEGMENT_HEADER_BYTES, 0), path)
        if header is None:
            raise DamageError(path, 0, "a segment header", "zeros")
        file.write([header._replace(file_id=file_id).encode()], 0)
        file.sync()
    finally:
        file.close()
