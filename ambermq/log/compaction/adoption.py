"""Taking new segments over from a compaction's job: checked, moved, named in one edit of the manifest.

    check     every new file: header, offsets, all CRCs, what the table says of it      at leisure, beside everything
    adopt     file ids reserved, which puts them on the list `removed`                   a crash leaves nothing to do
              headers get their file id, files synced, moved to segments/                a crash leaves files to delete
              both directories synced
              the edit: new segments in the place of old ones, horizon, snapshots        the new truth

Rule 1. Only the thread that edits the manifest adopts. An edit is made on the generation that is on the disk then, and
refused where an input or the base is no more: nothing has changed then but for files that the list lets go of.
Rule 2. The old files are not deleted before whoever reads bodies has let go of them (`is_taken`), nor while a reader's
manifest names them (pins.py).
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

from ambermq.log.compaction.job import CompactionJob, job_path
from ambermq.log.compaction.record_copy import bodies_of_walk
from ambermq.log.compaction.rewrite_tasks import Rewritten
from ambermq.log.errors import DamageError, LogError
from ambermq.log.format.batch import KEPT
from ambermq.log.format.checksum import crc32c
from ambermq.log.format.segment import SEGMENT_HEADER_BYTES, SegmentHeader, segment_path
from ambermq.log.manifest.manifest import Manifest, Sealed, replace_segments, reserve_file_id, segments_path
from ambermq.log.segments.segment_reader import SegmentReader, walk_whole
from ambermq.log.storage.interface import File, Storage

__all__ = ["Adoption", "adopt", "check_segments"]

_PIECE_BYTES: Final = 256 << 10

GiveWay = Callable[[int], bool]
"""give_way(bytes just read) -> whether to stop; it may wait as long as it likes."""


class Adoption:
    """A proposal that shall be adopted, and what became of it; handed from thread to thread whole."""

    __slots__ = ("error", "inputs", "is_done", "is_taken", "job", "proposal", "segments")

    def __init__(self, job: str, proposal: CompactionJob) -> None:
        self.job = job
        """Names the directory that the new files lie in."""
        self.proposal = proposal
        """Checked."""
        self.inputs: tuple[Sealed, ...] = ()
        """The segments that went, as the manifest named them."""
        self.segments: tuple[Sealed, ...] = ()
        """Those that came, with their file ids."""
        self.error: OSError | LogError | None = None
        """Why it could not be: the disk is full, or the log is another by now."""
        self.is_done = False
        """Set last by the thread that adopts, whatever became of it."""
        self.is_taken = False
        """Set by the loop when nobody asks the old files for anything any more."""


def check_segments(
    storage: Storage, directory: str, job: str, proposal: CompactionJob, *, batch_bytes_max: int, give_way: GiveWay
) -> bool:
    """Read every new file whole and hold it against the table; tell whether `give_way` let it.

    Raises DamageError, ForeignError and OSError.
    """
    for new in proposal.segments:
        path = f"{job_path(directory, job)}/{new.name}"
        file = storage.open(path)
        try:
            header = _header_of(file, path, new, proposal)
            part = SegmentReader(path, file, header, batch_bytes_max, new.size, new.size)
            if not (_check_bytes(part, new, give_way) and _check_batches(part, new, give_way)):
                return False
            file.drop_cache(0, 0)
        finally:
            file.close()
    return True


def _header_of(file: File, path: str, new: Rewritten, proposal: CompactionJob) -> SegmentHeader:
    header = SegmentHeader.decode(file.read(SEGMENT_HEADER_BYTES, 0), path)
    found = None if header is None else (header.log_id.hex(), header.file_id, header.base_offset)
    expected = (proposal.log_id, 0, new.base_offset)
    if header is None or found != expected:
        raise DamageError(path, 0, f"log, file id and base offset {expected}", f"{found}")
    if file.size() != new.size:
        raise DamageError(path, 0, f"{new.size} bytes", f"{file.size()}")
    return header


def _check_bytes(part: SegmentReader, new: Rewritten, give_way: GiveWay) -> bool:
    position, crc = SEGMENT_HEADER_BYTES, 0
    while position < new.size:
        piece = part.file.read(min(_PIECE_BYTES, new.size - position), position)
        if not piece:
            break
        crc = crc32c(piece, crc)
        position += len(piece)
        if give_way(len(piece)):
            return False
    if crc != new.crc:
        raise DamageError(part.path, SEGMENT_HEADER_BYTES, f"bytes with crc32c {new.crc:08x}", f"{crc:08x}")
    return True


def _check_batches(part: SegmentReader, new: Rewritten, give_way: GiveWay) -> bool:
    records = 0
    for walk in walk_whole(part, base_offset=new.base_offset, next_offset=new.next_offset):
        header = walk.header
        assert header is not None
        bodies_of_walk(walk, part.path)
        if not header.flags & KEPT:
            raise DamageError(part.path, walk.position, "a batch of kept records", f"flags {header.flags}")
        records += header.count
        if give_way(header.length):
            return False
    if records != new.record_count:
        raise DamageError(part.path, SEGMENT_HEADER_BYTES, f"{new.record_count} records", f"{records}")
    return True


def adopt(
    storage: Storage,
    directory: str,
    adoption: Adoption,
    commit: Callable[[Callable[[Manifest], Manifest]], Manifest],
) -> None:
    """Take over the segments of a checked proposal. Raises LogError where the log is another by now, and OSError.

    `commit` applies an edit to the manifest and returns it.
    """
    proposal = adoption.proposal
    reserved = commit(partial(_reserve, count=len(proposal.segments)))
    file_ids = reserved.removed[len(reserved.removed) - len(proposal.segments) :]
    added = tuple(
        Sealed(file_id, new.base_offset, new.next_offset, new.size)
        for file_id, new in zip(file_ids, proposal.segments, strict=True)
    )
    edit = _Edit(proposal, added)
    # What would be refused is refused before anything is moved.
    edit(reserved)
    try:
        _move(storage, directory, adoption, added)
    except OSError as error:
        raise LogError(f"the new segments of job {adoption.job} cannot be taken: {error}") from error
    commit(edit)
    adoption.inputs, adoption.segments = edit.inputs, added


def _reserve(manifest: Manifest, count: int) -> Manifest:
    reserved = manifest
    for _ in range(count):
        reserved = reserve_file_id(reserved)
    return replace(reserved, generation=manifest.generation + 1)


def _move(storage: Storage, directory: str, adoption: Adoption, added: tuple[Sealed, ...]) -> None:
    """Give the new files their ids and their names, all synced."""
    folder = job_path(directory, adoption.job)
    for new, sealed in zip(adoption.proposal.segments, added, strict=True):
        source = f"{folder}/{new.name}"
        _name_inside(storage, source, sealed.file_id)
        storage.rename(source, segment_path(directory, sealed.file_id))
    storage.sync_directory(segments_path(directory))
    storage.sync_directory(folder)


class _Edit:
    """The edit, and what it has replaced."""

    def __init__(self, proposal: CompactionJob, added: tuple[Sealed, ...]) -> None:
        self.inputs: tuple[Sealed, ...] = ()
        self._proposal = proposal
        self._added = added

    def __call__(self, manifest: Manifest) -> Manifest:
        proposal, inputs = self._proposal, frozenset(self._proposal.inputs)
        if manifest.log_id.hex() != proposal.log_id:
            raise LogError(f"the job was made for log {proposal.log_id}, this is {manifest.log_id.hex()}")
        self.inputs = tuple(one for one in manifest.sealed if one.file_id in inputs)
        return replace_segments(
            manifest, inputs=inputs, added=self._added, horizon=proposal.horizon, archive=proposal.archive
        )


def _name_inside(storage: Storage, path: str, file_id: int) -> None:
    """Write the file id into the header of a new segment, which nobody reads yet, and sync it."""
    file = storage.open(path)
    try:
        header = SegmentHeader.decode(file.read(SEGMENT_HEADER_BYTES, 0), path)
        assert header is not None
        file.write([header._replace(file_id=file_id).encode()], 0)
        file.sync()
    finally:
        file.close()
