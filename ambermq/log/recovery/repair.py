"""Making a damaged log one that opens again, with everything in it that can be believed.

    plan     what would be done, in words and numbers; changes nothing (salvage.py decides)
    apply    does it

Rule 1. Nothing is changed in place: of a damaged segment a clean copy is written under a new file id, then the
manifest is swapped, and only then the damaged file moves to DIR/aside/<name>-<generation>, as it is. A damaged
manifest is copied there before a new one takes its place.
Rule 2. It can be cut short anywhere and done again; a damaged file that was left behind then is one that nobody
names.
Rule 3. The offsets that are lost stand in the manifest until the log records them: a reference into them is no bug.
Rule 4. It takes the directory's lock: LockedError where a broker runs.
"""

from dataclasses import dataclass
from string import hexdigits
from typing import Final

from ambermq.log.config import LogConfig
from ambermq.log.errors import DamageError, LogError
from ambermq.log.format.segment import SEGMENT_HEADER_BYTES, segment_path
from ambermq.log.manifest import manifest as manifests
from ambermq.log.manifest.manifest import Lost, Manifest, Sealed, manifest_path, segments_path, snapshots_path
from ambermq.log.recovery.recovery import free_file_id, lock_path
from ambermq.log.recovery.salvage import Claim, Salvage, Salvages, claims_of, headers_of, rebuilt, salvage
from ambermq.log.segments.batch_copy import copy_batch
from ambermq.log.segments.segment_reader import SegmentReader
from ambermq.log.segments.tail_survey import EPOCH_OFFSETS
from ambermq.log.storage.disk import DiskStorage
from ambermq.log.storage.interface import Storage
from ambermq.log.storage.salt import draw_salt

__all__ = ["Repair", "apply", "aside_path", "plan"]

_ASIDE: Final = "aside"


@dataclass(frozen=True, slots=True)
class Repair:
    """What is wrong with a log, and what would be done about it."""

    directory: str
    """The log's."""
    manifest: Manifest
    """As found, or as rebuilt from the segments' headers."""
    manifest_fault: LogError | None
    """Why it had to be rebuilt."""
    salvages: Salvages
    """What each segment still holds."""

    @property
    def damaged(self) -> list[Salvage]:
        """The segments of which a clean copy is made."""
        return [one for one in self.salvages.segments if one.faults]

    @property
    def faults(self) -> list[LogError]:
        """Everything that is wrong, in order."""
        found: list[LogError] = [] if self.manifest_fault is None else [self.manifest_fault]
        return found + [fault for one in self.salvages.segments for fault in one.faults]

    @property
    def lost(self) -> tuple[Lost, ...]:
        """The offsets that cannot be saved."""
        return tuple(lost for one in self.salvages.segments for lost in one.lost)

    @property
    def is_needed(self) -> bool:
        """Whether there is anything to do."""
        return bool(self.faults)

    def steps(self) -> list[str]:
        """Return what would be done, a sentence each."""
        steps = []
        if self.manifest_fault is not None:
            steps.append(f"rebuild {manifest_path(self.directory)} from {len(self.salvages.segments)} segments")
        for one in self.damaged:
            steps.append(f"write a clean copy of {one.batch_count} batches of {one.path}")
            steps.append(f"move {one.path} to {aside_path(self, one.path)}")
        steps += [f"record offsets {lost.first_offset} to {lost.next_offset - 1} as lost" for lost in self.lost]
        return steps


def aside_path(repair: Repair, path: str) -> str:
    """Return where a damaged file is set aside."""
    return f"{repair.directory}/{_ASIDE}/{path.rpartition('/')[2]}-{repair.manifest.generation}"


def plan(directory: str, config: LogConfig | None = None, storage: Storage | None = None) -> Repair:
    """Find out what is wrong with the log in `directory` and what can be saved; change nothing.

    Raises LockedError where a broker runs, ForeignError where a newer version wrote the manifest, LogError where
    there is nothing to repair from, or the manifest was alone in knowing where history begins.
    """
    storage = storage or DiskStorage()
    if not storage.exists(segments_path(directory)):
        raise LogError(f"{directory} holds no log")
    lock = storage.lock(lock_path(directory))
    try:
        return _plan(directory, config or LogConfig(), storage)
    finally:
        lock.release()


def _plan(directory: str, config: LogConfig, storage: Storage) -> Repair:
    manifest, claims, fault = _claims(directory, storage)
    salvages = salvage(
        storage, directory, claims, durable_end=manifest.durable_end, batch_bytes_max=config.batch_bytes_max
    )
    if fault is not None and salvages.has_kept:
        raise LogError(f"{fault}; it named the snapshot that history begins with, and cannot be rebuilt: use a backup")
    return Repair(directory, manifest, fault, salvages)


def _claims(directory: str, storage: Storage) -> tuple[Manifest, list[Claim], LogError | None]:
    headers = headers_of(storage, directory)
    try:
        manifest = manifests.load(storage, directory)
        fault = None if manifest else DamageError(manifest_path(directory), 0, "a manifest", "no file")
    except DamageError as error:
        manifest, fault = None, error
    if manifest is not None:
        return manifest, claims_of(manifest, headers), None
    if not headers:
        raise LogError(f"{directory} holds no manifest and no segment that could be read")
    return *rebuilt(headers, next_file_id=_next_file_id(storage, directory)), fault


def _next_file_id(storage: Storage, directory: str) -> int:
    folders = [path for path in (segments_path(directory), snapshots_path(directory)) if storage.exists(path)]
    names = [name.partition(".")[0] for path in folders for name in storage.listdir(path)]
    return 1 + max((int(name, 16) for name in names if len(name) == 16 and set(name) <= set(hexdigits)), default=0)


def apply(directory: str, config: LogConfig | None = None, storage: Storage | None = None) -> Repair:
    """Repair the log in `directory` and return what was done; do nothing where nothing is damaged. Raises as `plan`."""
    storage, config = storage or DiskStorage(), config or LogConfig()
    if not storage.exists(segments_path(directory)):
        raise LogError(f"{directory} holds no log")
    lock = storage.lock(lock_path(directory))
    try:
        repair = _plan(directory, config, storage)
        if repair.is_needed:
            _apply(repair, storage, config)
        return repair
    finally:
        lock.release()


def _apply(repair: Repair, storage: Storage, config: LogConfig) -> None:
    directory = repair.directory
    storage.makedirs(f"{directory}/{_ASIDE}")
    if repair.manifest_fault is not None:
        _copy_manifest_aside(repair, storage)
    next_file_id = repair.manifest.next_file_id
    sealed, removed = list[Sealed](), list[int]()
    for one in repair.salvages.segments:
        end_offset = min(one.claim.next_offset, max(one.next_offset, repair.salvages.durable_end))
        if not one.runs:
            removed += [] if one.faults else [one.claim.file_id]
        elif not one.faults:
            sealed.append(Sealed(one.claim.file_id, one.claim.base_offset, end_offset, one.end))
        else:
            file_id = free_file_id(storage, directory, next_file_id)
            size = _write_copy(repair, one, storage, config, file_id)
            sealed.append(Sealed(file_id, one.claim.base_offset, end_offset, size))
            next_file_id = file_id + 1
    storage.sync_directory(segments_path(directory))
    manifests.store(storage, directory, _edited(repair, tuple(sealed), tuple(removed), next_file_id))
    for one in repair.damaged:
        if storage.exists(one.path):
            storage.rename(one.path, aside_path(repair, one.path))
    storage.sync_directory(f"{directory}/{_ASIDE}")
    storage.sync_directory(segments_path(directory))


def _edited(repair: Repair, sealed: tuple[Sealed, ...], removed: tuple[int, ...], next_file_id: int) -> Manifest:
    old, found = repair.manifest, repair.salvages
    named = {one.claim.file_id for one in found.segments}
    unused = () if old.spare is None or old.spare in named else (old.spare,)
    return manifests.replace_all_segments(
        old,
        sealed=sealed,
        next_file_id=next_file_id,
        durable_end=max([found.durable_end] + [one.next_offset for one in sealed]),
        start_offset=-(-max(old.start_offset, found.seen_end) // EPOCH_OFFSETS) * EPOCH_OFFSETS,
        removed=removed + unused,
        lost=repair.lost,
    )


def _copy_manifest_aside(repair: Repair, storage: Storage) -> None:
    path = manifest_path(repair.directory)
    if not storage.exists(path):
        return
    damaged = storage.open(path)
    aside = storage.open(aside_path(repair, path), create=True)
    try:
        aside.write([damaged.read(damaged.size(), 0)], 0)
        aside.sync()
    finally:
        damaged.close()
        aside.close()
    storage.sync_directory(f"{repair.directory}/{_ASIDE}")


def _write_copy(repair: Repair, one: Salvage, storage: Storage, config: LogConfig, file_id: int) -> int:
    """Write the kept batches of a segment into a new file, synced; return its size."""
    assert one.header is not None
    header = one.header._replace(
        salt=draw_salt(), log_id=repair.manifest.log_id, file_id=file_id, base_offset=one.claim.base_offset
    )
    source = storage.open(one.path)
    target = storage.open(segment_path(repair.directory, file_id), create=True)
    part = SegmentReader(one.path, source, one.header, config.batch_bytes_max, one.end)
    position = SEGMENT_HEADER_BYTES
    try:
        target.write([header.encode()], 0)
        for start, end in one.runs:
            walk = part.walk(start, end=end)
            for _ in walk:
                position = copy_batch(walk, target, position=position, salt_crc=header.salt_crc)
        target.sync()
    finally:
        source.close()
        target.close()
    return position
