r"""The manifest: the file that names the segments and snapshots of a log.

    MANIFEST    one JSON object over several lines, then the line "crc32c XXXXXXXX\n": CRC-32C of every byte before it

Rule 1. A segment or a snapshot that the manifest does not name does not exist. Unknown files are reported and never
deleted; only files on the list `removed` are deleted.
Rule 2. A manifest is never changed in place: a temporary file is written and synced, then renamed over it, then the
directory is synced. A manifest that a reader has locked keeps a second name, `MANIFEST.<generation>`
(generation_pins.py).
Rule 3. An edit is a pure function Manifest -> Manifest. `commit` applies it to the generation on the disk. Those that
put other segments in the place of old ones are in segment_replacement.py.
Rule 4. A damaged manifest is refused. There is no fallback to an older one: that would silently lose newer segments.
Rule 5. `durable_end` is a lower bound: everything below it was synced before the edit. A bad batch there is damage,
never a tail. So an edit that seals a segment is committed only after the last sync of that segment.
"""

import errno
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec

from ambermq.log.errors import DamageError, LogFailed
from ambermq.log.format.crc_document import json_with_crc_line, read_document
from ambermq.log.format.segment import Segment, segment_path
from ambermq.log.format.time_range import TimeRange
from ambermq.log.storage.interface import FileLock, Storage

__all__ = [
    "MANIFEST_NAME",
    "VERSION",
    "ActiveSegment",
    "ClockStep",
    "Horizon",
    "LostRange",
    "Manifest",
    "SealedSegment",
    "Snapshot",
    "begin_epoch",
    "commit",
    "create",
    "decode",
    "encode",
    "forget_lost",
    "forget_removed",
    "forget_snapshots",
    "load",
    "manifest_path",
    "name_snapshot",
    "name_spare",
    "named_files",
    "next_generation",
    "note_clock_step",
    "note_end",
    "note_release",
    "reserve_file_id",
    "roll",
    "segments_path",
    "snapshot_path",
    "snapshots_path",
    "store",
]

VERSION: Final = 1
MANIFEST_NAME: Final = "MANIFEST"
_TEMPORARY_NAME: Final = "MANIFEST.new"


class SealedSegment(msgspec.Struct, frozen=True, omit_defaults=True):
    """A segment that never grows again."""

    file_id: int
    """The id of the file; its name is the id in 16 hex digits."""
    base_offset: int
    """The first offset of the segment's range."""
    next_offset: int
    """The first offset after the range; the next segment begins there."""
    size: int
    """Valid bytes, header included. The file may be longer: the rest is unused or ignored."""
    times: TimeRange | None = None
    """The times of its records. None if unknown: version 0.1.0 or a compaction wrote it. Left out of the file then."""

    def at(self, directory: str) -> Segment:
        """Return the segment of the log in `directory`, with its path."""
        return Segment(
            self.file_id, self.base_offset, self.next_offset, self.size, segment_path(directory, self.file_id)
        )


@dataclass(frozen=True, slots=True)
class ActiveSegment:
    """The segment that the log wrote to at the time of the edit."""

    file_id: int
    """The id of the file."""
    base_offset: int
    """The first offset of the segment's range."""


@dataclass(frozen=True, slots=True)
class LostRange:
    """A range of offsets that a repair could not save. A reference into it is no bug."""

    first_offset: int
    """The first lost offset."""
    next_offset: int
    """The first offset after the lost range."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A snapshot: the state after all events below an offset."""

    file_id: int
    """The id of the file; its name is the id in 16 hex digits."""
    name: str
    """The name for people; unique in the log."""
    end: int
    """The snapshot is the fold of all events below this offset. The file's header repeats it."""
    time_us: int
    """The time of the last of these events."""
    created_us: int
    """The time at which the snapshot was taken."""
    size: int
    """The size of the file in bytes."""
    is_automatic: bool
    """Whether the broker took it on its schedule. The broker prunes automatic snapshots."""


@dataclass(frozen=True, slots=True)
class Horizon:
    """The start of history. Below it the log keeps no events, only messages that were live there."""

    offset: int
    """The end of the snapshot with which every fold begins."""
    time_us: int
    """The time of the last event below the offset."""


@dataclass(frozen=True, slots=True)
class ClockStep:
    """A step of the clock. Times before it and after it cannot be compared."""

    offset: int
    """The offset of the event that records it."""
    time_us: int
    """The time after it."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """The segments and snapshots of a log, and the ids and offsets that its next epoch uses."""

    version: int
    """The version of the format. A newer one is refused with ForeignError."""
    log_id: bytes
    """16 bytes that every segment of this log repeats in its header."""
    generation: int
    """The number of edits."""
    epoch: int
    """The number of recoveries. A batch carries the epoch in which it was written."""
    next_file_id: int
    """The id of the next file. No id is used twice."""
    durable_end: int
    """Everything below this offset was synced before this edit; see rule 5."""
    start_offset: int
    """The first offset of this epoch. Every offset written before it, ignored ones too, lies below."""
    sealed: tuple[SealedSegment, ...] = ()
    """The sealed segments in order of their offsets."""
    active: ActiveSegment | None = None
    """The active segment. None before the first recovery has made one, and after a repair."""
    spare: int | None = None
    """The file id of the next segment. Recovery reads it too, because a roll does not wait for the edit."""
    removed: tuple[int, ...] = ()
    """File ids that may be deleted."""
    lost: tuple[LostRange, ...] = ()
    """Ranges that repairs could not save and that the engine has not yet recorded in the log."""
    snapshots: tuple[Snapshot, ...] = ()
    """The snapshots in order of their ends; equal ends are in the order in which they were taken."""
    horizon: Horizon | None = None
    """The start of history; None if the log has its first event."""
    archive: tuple[str, ...] = ()
    """Paths of files in which compactions archived the events that they removed. The log does not read them."""
    clock_step: ClockStep | None = None
    """The newest step of the clock; None if there was none. Left out of the file then."""
    least_release: str | None = None
    """The first release that can read the log; None for the first one of all. Left out of the file then."""

    def comparable_us(self, end: int, time_us: int) -> int:
        """Return the time from which an age counts, of what was stamped with `time_us` when the log ended at `end`.

        What is older than the newest step of the clock counts from that step.
        """
        step = self.clock_step
        return time_us if step is None or end > step.offset else step.time_us


def manifest_path(directory: str) -> str:
    """Return the path of the manifest of a log's directory."""
    return f"{directory}/{MANIFEST_NAME}"


def segments_path(directory: str) -> str:
    """Return the directory of the segments and their indexes."""
    return f"{directory}/segments"


def snapshots_path(directory: str) -> str:
    """Return the directory of the snapshots. It is missing if no snapshot was ever taken."""
    return f"{directory}/snapshots"


def snapshot_path(directory: str, file_id: int) -> str:
    """Return the path of a snapshot of the log in `directory`."""
    return f"{snapshots_path(directory)}/{file_id:016x}.snapshot"


def encode(manifest: Manifest) -> bytes:
    """Return the bytes of a manifest: JSON, then the CRC line."""
    return json_with_crc_line(manifest, optional=("clock_step", "least_release"), log_id=manifest.log_id.hex())


def decode(text: bytes, *, file: str) -> Manifest:
    """Return the manifest in `text`. Raises DamageError naming `file`, or ForeignError for an unknown version."""
    return read_document(text, Manifest, file=file, what="manifest", version=VERSION, hex_field="log_id")


def load(storage: Storage, directory: str) -> Manifest | None:
    """Return the manifest of a directory, or None if it has none. Raises DamageError or ForeignError."""
    path = manifest_path(directory)
    if not storage.exists(path):
        return None
    file = storage.open(path)
    try:
        return decode(file.read(file.size(), 0), file=path)
    finally:
        file.close()


def store(storage: Storage, directory: str, manifest: Manifest) -> None:
    """Replace the manifest of a directory durably. Until this returns a power loss leaves the old one.

    Raises OSError if nothing has changed, and LogFailed if a power loss may leave either manifest.
    """
    temporary = f"{directory}/{_TEMPORARY_NAME}"
    if storage.exists(temporary):
        storage.unlink(temporary)
    try:
        _replace(storage, directory, manifest, temporary)
    except OSError:
        # On a full disk the next start needs its space.
        with suppress(OSError):
            storage.unlink(temporary)
        raise
    try:
        storage.sync_directory(directory)
    except OSError as error:
        # Readers see the new manifest, and a power loss may restore the old one. A second sync would prove nothing.
        raise LogFailed(f"{directory}: sync failed after its manifest was replaced: {error}") from error


def _replace(storage: Storage, directory: str, manifest: Manifest, temporary: str) -> None:
    file = storage.open(temporary, create=True)
    try:
        file.write([encode(manifest)], 0)
        file.sync()
    finally:
        file.close()
    lock = _lock_or_link(storage, directory, manifest.generation - 1)
    try:
        storage.rename(temporary, manifest_path(directory))
    finally:
        if lock is not None:
            lock.release()


def _lock_or_link(storage: Storage, directory: str, generation: int) -> FileLock | None:
    """Lock the manifest that is about to be replaced; if readers have locked it, add the name of its generation."""
    path = manifest_path(directory)
    if not storage.exists(path):
        return None
    lock = storage.try_lock(path)
    if lock is None:
        _link(storage, path, f"{path}.{generation}")
    return lock


def _link(storage: Storage, path: str, link: str) -> None:
    try:
        storage.link(path, link)
    except OSError as error:
        # An existing link is of the same file: an earlier replacement was interrupted. On a file system without links
        # the broker continues, and a reader may find that a file is deleted.
        if error.errno not in {errno.EEXIST, errno.EPERM, errno.EOPNOTSUPP}:
            raise


def commit(storage: Storage, directory: str, edit: Callable[[Manifest], Manifest]) -> Manifest:
    """Apply `edit` to the manifest on the disk, store the result and return it."""
    current = load(storage, directory)
    if current is None:
        raise DamageError(manifest_path(directory), 0, "a manifest", "no file")
    edited = edit(current)
    # `store` names the link to the old manifest by the previous generation.
    assert edited.generation == current.generation + 1
    store(storage, directory, edited)
    return edited


def create(log_id: bytes) -> Manifest:
    """Return the manifest of a new, empty log."""
    assert len(log_id) == 16
    return Manifest(VERSION, log_id, generation=1, epoch=0, next_file_id=1, durable_end=0, start_offset=0)


def named_files(manifest: Manifest) -> frozenset[int]:
    """Return the ids of all segments and snapshots, without those on the list `removed`."""
    named = {one.file_id for one in manifest.sealed} | {one.file_id for one in manifest.snapshots}
    named |= {manifest.active.file_id} if manifest.active else set()
    return frozenset(named | ({manifest.spare} if manifest.spare is not None else set()))


def name_spare(manifest: Manifest) -> Manifest:
    """Return the manifest with the next file id as the spare. The file exists already or is made before its use."""
    assert manifest.spare is None
    return next_generation(manifest, spare=manifest.next_file_id, next_file_id=manifest.next_file_id + 1)


def roll(manifest: Manifest, *, base_offset: int, size: int, times: TimeRange | None = None) -> Manifest:
    """Return the manifest with the active segment sealed at `size` and the spare active from `base_offset` on.

    `times` are those of the sealed records.

    The active segment must be synced. The same edit names the next spare, because each edit costs two syncs.
    """
    active, spare = manifest.active, manifest.spare
    assert active is not None
    assert spare is not None
    sealed = SealedSegment(active.file_id, active.base_offset, base_offset, size, times)
    return next_generation(
        manifest,
        sealed=(*manifest.sealed, sealed),
        active=ActiveSegment(spare, base_offset),
        spare=manifest.next_file_id,
        next_file_id=manifest.next_file_id + 1,
        durable_end=max(manifest.durable_end, base_offset),
    )


def begin_epoch(
    manifest: Manifest,
    *,
    sealed: tuple[SealedSegment, ...],
    file_id: int,
    durable_end: int,
    valid_end: int,
    start_offset: int,
) -> Manifest:
    """Return the manifest of a new epoch: [durable_end, valid_end) was copied into the new active segment `file_id`.

    `sealed` are the old active segment and the old spare, if they hold anything below `durable_end`. If one does not,
    it goes on the list `removed`. The copy is synced, so everything below `valid_end` is durable now.
    """
    kept = {segment.file_id for segment in sealed}
    old = [manifest.active.file_id] if manifest.active else []
    if manifest.spare is not None:
        old.append(manifest.spare)
    return next_generation(
        manifest,
        epoch=manifest.epoch + 1,
        next_file_id=max(manifest.next_file_id, file_id + 1),
        durable_end=valid_end,
        start_offset=start_offset,
        sealed=manifest.sealed + sealed,
        active=ActiveSegment(file_id, durable_end),
        spare=None,
        removed=(*manifest.removed, *(one for one in old if one not in kept)),
    )


def forget_removed(manifest: Manifest, file_ids: frozenset[int]) -> Manifest:
    """Return the manifest without `file_ids`, whose files are deleted, on the list `removed`."""
    return next_generation(manifest, removed=tuple(one for one in manifest.removed if one not in file_ids))


def reserve_file_id(manifest: Manifest) -> Manifest:
    """Return the manifest with the next file id on the list `removed`, to be named later.

    If the process ends before it names the file, the file is deleted.
    """
    file_id = manifest.next_file_id
    return next_generation(manifest, next_file_id=file_id + 1, removed=(*manifest.removed, file_id))


def name_snapshot(manifest: Manifest, snapshot: Snapshot) -> Manifest:
    """Return the manifest with a new snapshot. Its file and its end must be durable, and its file id reserved."""
    assert snapshot.file_id in manifest.removed
    assert all(snapshot.name != one.name for one in manifest.snapshots)
    return next_generation(
        manifest,
        removed=tuple(one for one in manifest.removed if one != snapshot.file_id),
        snapshots=tuple(sorted((*manifest.snapshots, snapshot), key=lambda one: (one.end, one.file_id))),
        durable_end=max(manifest.durable_end, snapshot.end),
    )


def forget_snapshots(manifest: Manifest, file_ids: frozenset[int]) -> Manifest:
    """Return the manifest without the snapshots of these file ids; their files may be deleted. Ignores other ids."""
    file_ids_removed = tuple(one.file_id for one in manifest.snapshots if one.file_id in file_ids)
    return next_generation(
        manifest,
        removed=manifest.removed + file_ids_removed,
        snapshots=tuple(one for one in manifest.snapshots if one.file_id not in file_ids),
    )


def note_clock_step(manifest: Manifest, *, offset: int, time_us: int) -> Manifest:
    """Return the manifest with a step of the clock, which is the newest."""
    return next_generation(manifest, clock_step=ClockStep(offset, time_us))


def note_release(manifest: Manifest, *, release: str) -> Manifest:
    """Return the manifest of a log that no release before this one can read."""
    return next_generation(manifest, least_release=release)


def note_end(manifest: Manifest, *, end: int) -> Manifest:
    """Return the manifest of a log that was closed at `end`, with everything below it durable."""
    return next_generation(manifest, durable_end=max(manifest.durable_end, end))


def forget_lost(manifest: Manifest) -> Manifest:
    """Return the manifest without lost ranges: the log itself records them now."""
    return next_generation(manifest, lost=())


def next_generation(manifest: Manifest, **changes: Any) -> Manifest:
    """Return the manifest with changed fields, as the next generation; every edit ends with this call."""
    return replace(manifest, generation=manifest.generation + 1, **changes)
