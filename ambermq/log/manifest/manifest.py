r"""The manifest: the one file that says which segments are the log.

    MANIFEST    one JSON object over several lines, then the line "crc32c XXXXXXXX\n": CRC-32C of every byte before it

Rule 1. A segment or a snapshot that the manifest does not name does not exist. Unknown files are reported, never
deleted; only files on the list `removed` are.
Rule 2. A manifest is never changed in place: a temporary file is written and synced, renamed over it, and the
directory synced. One that readers have locked keeps a second name, `MANIFEST.<generation>` (pins.py).
Rule 3. An edit is a pure function Manifest -> Manifest, and `commit` applies it to the generation that is on the disk
now.
Rule 4. A damaged manifest is refused. There is no older one to fall back to: an old truth would silently lose the
newer segments.
Rule 5. `durable_end` is a floor: what lies below it was synced before the edit was made, so a bad batch there is
damage, never a tail. An edit that seals a segment is therefore committed only after the last sync of that segment.
"""

import errno
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from ambermq.log.errors import DamageError, LogError, LogFailed
from ambermq.log.format.checked_document import json_with_crc_line, read_document
from ambermq.log.format.segment import Segment, segment_path
from ambermq.log.storage.interface import FileLock, Storage

__all__ = [
    "MANIFEST_NAME",
    "VERSION",
    "Active",
    "Horizon",
    "Lost",
    "Manifest",
    "Sealed",
    "Snapshot",
    "commit",
    "compacted",
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
    "recovered",
    "repaired",
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


@dataclass(frozen=True, slots=True)
class Sealed:
    """A segment that will never grow."""

    file_id: int
    """Names the file, as 16 hex digits."""
    base_offset: int
    """The segment answers for offsets from here ..."""
    next_offset: int
    """... to just below here, where the next segment begins."""
    size: int
    """Bytes that count, header included; the file may be longer (unused or ignored space)."""

    def at(self, directory: str) -> Segment:
        """Return it as a segment below the log's directory."""
        return Segment(
            self.file_id, self.base_offset, self.next_offset, self.size, segment_path(directory, self.file_id)
        )


@dataclass(frozen=True, slots=True)
class Active:
    """The segment that was written to when the manifest was edited."""

    file_id: int
    """Names the file."""
    base_offset: int
    """The first offset that the segment answers for."""


@dataclass(frozen=True, slots=True)
class Lost:
    """Offsets that a repair could not save: a reference into them is no bug."""

    first_offset: int
    """The first lost offset."""
    next_offset: int
    """The first offset that is not lost any more."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A snapshot: what all events below an offset add up to."""

    file_id: int
    """Names the file, as 16 hex digits."""
    name: str
    """For people; no other snapshot of the log has it."""
    end: int
    """It is the fold of all events below this offset, which the file's header repeats."""
    time_us: int
    """The time of the last of these events."""
    created_us: int
    """When it was taken."""
    size: int
    """Bytes of the file."""
    is_automatic: bool
    """Taken by the broker itself, which prunes such ones too."""


@dataclass(frozen=True, slots=True)
class Horizon:
    """Where history begins: below it no events are left, only messages that were live then."""

    offset: int
    """The end of the snapshot that every fold begins with."""
    time_us: int
    """The time of the last event below."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """Which segments are the log, in order of their offsets."""

    version: int
    """Of this format; a newer one is refused with ForeignError."""
    log_id: bytes
    """16 bytes that every segment of this log repeats in its header."""
    generation: int
    """Counts the edits."""
    epoch: int
    """Counts the recoveries; batches carry the one they were written in."""
    next_file_id: int
    """File ids are never used twice."""
    durable_end: int
    """Everything below was synced before this edit; see rule 5."""
    start_offset: int
    """Where this epoch's own offsets begin: every offset written before it, ignored ones too, lies below."""
    sealed: tuple[Sealed, ...] = ()
    """In order of their offsets."""
    active: Active | None = None
    """None before the first recovery has made one, and after a repair."""
    spare: int | None = None
    """File id of the segment that is used next; recovery looks into it, for a roll does not wait for the edit."""
    removed: tuple[int, ...] = ()
    """File ids that may be deleted."""
    lost: tuple[Lost, ...] = ()
    """What repairs could not save and the engine has not yet taken into the log."""
    snapshots: tuple[Snapshot, ...] = ()
    """In order of their ends; of those alike, in the order in which they were taken."""
    horizon: Horizon | None = None
    """None where history begins with the first event."""
    archive: tuple[str, ...] = ()
    """Paths of files in which compactions have put events that are gone from the log; what writes them knows them."""


def manifest_path(directory: str) -> str:
    """Return the path of the manifest of a log's directory."""
    return f"{directory}/{MANIFEST_NAME}"


def segments_path(directory: str) -> str:
    """Return the directory of the segments and their indexes."""
    return f"{directory}/segments"


def snapshots_path(directory: str) -> str:
    """Return the directory of the snapshots; it is missing where none was ever taken."""
    return f"{directory}/snapshots"


def snapshot_path(directory: str, file_id: int) -> str:
    """Where a snapshot lies below the log's directory."""
    return f"{snapshots_path(directory)}/{file_id:016x}.snapshot"


def encode(manifest: Manifest) -> bytes:
    """Return the bytes of a manifest: JSON, then the CRC line."""
    return json_with_crc_line(manifest, log_id=manifest.log_id.hex())


def decode(text: bytes, *, file: str) -> Manifest:
    """Return the manifest in `text`; raise DamageError naming `file`, or ForeignError for a version we do not know."""
    return read_document(text, Manifest, file=file, what="manifest", version=VERSION, hex_field="log_id")


def load(storage: Storage, directory: str) -> Manifest | None:
    """Return the manifest of a directory, None where there is none; raise DamageError or ForeignError."""
    path = manifest_path(directory)
    if not storage.exists(path):
        return None
    file = storage.open(path)
    try:
        return decode(file.read(file.size(), 0), file=path)
    finally:
        file.close()


def store(storage: Storage, directory: str, manifest: Manifest) -> None:
    """Make `manifest` the truth; when this returns it survives a loss of power, and before that the old one does.

    Raises OSError where nothing has changed, LogFailed where nobody can tell which of the two a loss of power leaves.
    """
    temporary = f"{directory}/{_TEMPORARY_NAME}"
    if storage.exists(temporary):
        storage.unlink(temporary)
    file = storage.open(temporary, create=True)
    try:
        file.write([encode(manifest)], 0)
        file.sync()
    finally:
        file.close()
    hold = _hold_or_link(storage, directory, manifest.generation - 1)
    try:
        storage.rename(temporary, manifest_path(directory))
    finally:
        if hold is not None:
            hold.release()
    try:
        storage.sync_directory(directory)
    except OSError as error:
        # Readers see the new one, and a loss of power may bring back the old one: a second sync would prove nothing.
        raise LogFailed(f"{directory} could not be synced when its manifest was replaced: {error}") from error


def _hold_or_link(storage: Storage, directory: str, generation: int) -> FileLock | None:
    """Hold the manifest that is about to be replaced, or where readers hold it give it a name by which to find them."""
    path = manifest_path(directory)
    if not storage.exists(path):
        return None
    hold = storage.try_lock(path)
    if hold is None:
        _link(storage, path, f"{path}.{generation}")
    return hold


def _link(storage: Storage, path: str, link: str) -> None:
    try:
        storage.link(path, link)
    except OSError as error:
        # One that is there already is of the same file: its replacement was cut short before. Where the file system
        # knows no links, a reader may find a file gone, and the broker goes on.
        if error.errno not in {errno.EEXIST, errno.EPERM, errno.EOPNOTSUPP}:
            raise


def commit(storage: Storage, directory: str, edit: Callable[[Manifest], Manifest]) -> Manifest:
    """Apply `edit` to the manifest on the disk, store the result and return it."""
    current = load(storage, directory)
    if current is None:
        raise DamageError(manifest_path(directory), 0, "a manifest", "no file")
    edited = edit(current)
    # The link that readers find the old one by is named by the generation before.
    assert edited.generation == current.generation + 1
    store(storage, directory, edited)
    return edited


def create(log_id: bytes) -> Manifest:
    """Return the manifest of a log in which nothing was ever written."""
    assert len(log_id) == 16
    return Manifest(VERSION, log_id, generation=1, epoch=0, next_file_id=1, durable_end=0, start_offset=0)


def named_files(manifest: Manifest) -> frozenset[int]:
    """Return the ids of the files that hold log and snapshots, those that may be deleted not among them."""
    named = {one.file_id for one in manifest.sealed} | {one.file_id for one in manifest.snapshots}
    named |= {manifest.active.file_id} if manifest.active else set()
    return frozenset(named | ({manifest.spare} if manifest.spare is not None else set()))


def name_spare(manifest: Manifest) -> Manifest:
    """Name the next file id as the spare; the file itself exists already, or is made before it is used."""
    assert manifest.spare is None
    return _next(manifest, spare=manifest.next_file_id, next_file_id=manifest.next_file_id + 1)


def roll(manifest: Manifest, *, base_offset: int, size: int) -> Manifest:
    """Seal the active segment, which ends at `size` and is synced; the spare is active from `base_offset` on.

    The next file id is named as the spare, in the same edit: each is two syncs.
    """
    active, spare = manifest.active, manifest.spare
    assert active is not None
    assert spare is not None
    sealed = Sealed(active.file_id, active.base_offset, base_offset, size)
    return _next(
        manifest,
        sealed=(*manifest.sealed, sealed),
        active=Active(spare, base_offset),
        spare=manifest.next_file_id,
        next_file_id=manifest.next_file_id + 1,
        durable_end=max(manifest.durable_end, base_offset),
    )


def recovered(
    manifest: Manifest, *, sealed: tuple[Sealed, ...], file_id: int, durable_end: int, valid_end: int, start_offset: int
) -> Manifest:
    """Begin an epoch: [durable_end, valid_end) was copied into the new active segment `file_id`.

    `sealed` are the old active segment and the old spare as far as they hold anything below `durable_end`; what else
    they were goes on the list `removed`. The copy is synced, so all below `valid_end` is durable from now on.
    """
    kept = {segment.file_id for segment in sealed}
    old = [manifest.active.file_id] if manifest.active else []
    if manifest.spare is not None:
        old.append(manifest.spare)
    return _next(
        manifest,
        epoch=manifest.epoch + 1,
        next_file_id=max(manifest.next_file_id, file_id + 1),
        durable_end=valid_end,
        start_offset=start_offset,
        sealed=manifest.sealed + sealed,
        active=Active(file_id, durable_end),
        spare=None,
        removed=(*manifest.removed, *(one for one in old if one not in kept)),
    )


def repaired(
    manifest: Manifest,
    *,
    sealed: tuple[Sealed, ...],
    next_file_id: int,
    durable_end: int,
    start_offset: int,
    removed: tuple[int, ...],
    lost: tuple[Lost, ...],
) -> Manifest:
    """Replace every segment: all are sealed, none is active, so the next recovery opens a new one."""
    return _next(
        manifest,
        sealed=sealed,
        active=None,
        spare=None,
        next_file_id=next_file_id,
        durable_end=durable_end,
        start_offset=start_offset,
        removed=(*manifest.removed, *removed),
        lost=(*manifest.lost, *lost),
    )


def forget_removed(manifest: Manifest, file_ids: frozenset[int]) -> Manifest:
    """Take files that are deleted now off the list `removed`."""
    return _next(manifest, removed=tuple(one for one in manifest.removed if one not in file_ids))


def reserve_file_id(manifest: Manifest) -> Manifest:
    """Put the next file id on the list `removed`: whoever makes that file and does not come to name it leaves nothing.

    Until it is named nothing but the list may be looked at for deletion.
    """
    file_id = manifest.next_file_id
    return _next(manifest, next_file_id=file_id + 1, removed=(*manifest.removed, file_id))


def name_snapshot(manifest: Manifest, snapshot: Snapshot) -> Manifest:
    """Name a snapshot whose file is durable, under an id that was reserved, and whose end is."""
    assert snapshot.file_id in manifest.removed
    assert all(snapshot.name != one.name for one in manifest.snapshots)
    return _next(
        manifest,
        removed=tuple(one for one in manifest.removed if one != snapshot.file_id),
        snapshots=tuple(sorted((*manifest.snapshots, snapshot), key=lambda one: (one.end, one.file_id))),
        durable_end=max(manifest.durable_end, snapshot.end),
    )


def forget_snapshots(manifest: Manifest, file_ids: frozenset[int]) -> Manifest:
    """Let go of snapshots; their files may be deleted. Ids of others are passed over."""
    gone = tuple(one.file_id for one in manifest.snapshots if one.file_id in file_ids)
    return _next(
        manifest,
        removed=manifest.removed + gone,
        snapshots=tuple(one for one in manifest.snapshots if one.file_id not in file_ids),
    )


def compacted(
    manifest: Manifest,
    *,
    inputs: frozenset[int],
    added: tuple[Sealed, ...],
    horizon: Horizon,
    archive: tuple[str, ...] = (),
) -> Manifest:
    """Put `added` segments, under ids that were reserved, in the place of `inputs`; history begins at `horizon` now.

    Snapshots before it are let go of: what was live in them is not kept. Raises LogError where that cannot be any more:
    an input is gone, the snapshot at the horizon is, or history begins later already.
    """
    _check_compaction(manifest, inputs, added, horizon)
    ids = {one.file_id for one in added}
    old = tuple(one.file_id for one in manifest.snapshots if one.end < horizon.offset)
    kept = (one for one in manifest.sealed if one.file_id not in inputs)
    return _next(
        manifest,
        sealed=tuple(sorted((*kept, *added), key=lambda one: one.base_offset)),
        snapshots=tuple(one for one in manifest.snapshots if one.file_id not in old),
        removed=(*(one for one in manifest.removed if one not in ids), *sorted(inputs), *old),
        horizon=horizon,
        archive=(*manifest.archive, *(one for one in archive if one not in manifest.archive)),
    )


def _check_compaction(manifest: Manifest, inputs: frozenset[int], added: tuple[Sealed, ...], horizon: Horizon) -> None:
    """Raise LogError unless `added` answer for exactly what `inputs` do, all below a horizon that can be."""
    replaced = [one for one in manifest.sealed if one.file_id in inputs]
    if len(replaced) < len(inputs):
        raise LogError(f"{len(inputs) - len(replaced)} of {len(inputs)} segments are no more: another compaction ran")
    if all(one.end != horizon.offset for one in manifest.snapshots):
        raise LogError(f"no snapshot ends at {horizon.offset}, where history should begin: it was deleted")
    if manifest.horizon is not None and manifest.horizon.offset > horizon.offset:
        raise LogError(f"history begins at offset {manifest.horizon.offset} already, not at {horizon.offset}")
    if any(one.next_offset > horizon.offset for one in replaced):
        raise LogError(f"a segment that is to be replaced goes beyond the horizon {horizon.offset}")
    # A log may hold segments of no offsets, of marks alone: they go with whoever ends or begins where they stand.
    rest = sorted(replaced, key=lambda one: (-one.base_offset, -one.next_offset))
    for new in sorted(added, key=lambda one: (one.base_offset, one.next_offset)):
        at = new.base_offset
        while rest and rest[-1].base_offset == at and rest[-1].next_offset <= new.next_offset:
            at = rest.pop().next_offset
        if at != new.next_offset:
            raise LogError(
                f"a new segment [{new.base_offset}, {new.next_offset}) stands for other offsets than it replaces"
            )
    if rest:
        raise LogError(f"{len(rest)} segments are replaced by none")


def forget_lost(manifest: Manifest) -> Manifest:
    """Take the lost ranges off the manifest: the log itself records them now."""
    return _next(manifest, lost=())


def _next(manifest: Manifest, **changes: Any) -> Manifest:
    return replace(manifest, generation=manifest.generation + 1, **changes)
