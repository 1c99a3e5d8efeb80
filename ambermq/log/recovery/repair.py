"""The repair of a damaged log: afterwards it opens again, with every valid batch.

    plan     return what a repair would do; change nothing (salvage.py decides)
    apply    do it

Rule 1. Nothing is changed in place. A clean copy of a damaged segment is written under a new file id. Then the manifest
is replaced. Then the damaged file moves unchanged to DIR/aside/<name>-<generation>. A damaged manifest is copied there
before it is replaced.
Rule 2. A repair can be interrupted anywhere and repeated. No manifest names a damaged file that it has left.
Rule 3. The manifest lists the lost offsets until the log records them: a reference into them is no bug.
Rule 4. A repair locks the directory. It raises LockedError if a broker runs. A plan locks without writing.
"""

from dataclasses import dataclass
from string import hexdigits
from typing import Final

from ambermq.log.config import LogConfig
from ambermq.log.errors import DamageError, LockedError, LogError
from ambermq.log.format.segment import SEGMENT_HEADER_BYTES, segment_path
from ambermq.log.manifest import manifest as manifests
from ambermq.log.manifest.manifest import (
    LostRange,
    Manifest,
    SealedSegment,
    manifest_path,
    segments_path,
    snapshots_path,
)
from ambermq.log.manifest.segment_replacement import replace_all_segments
from ambermq.log.recovery.recovery import free_file_id, lock_path
from ambermq.log.recovery.salvage import Claim, Salvage, Salvages, claims_of, headers_of, rebuild_manifest, salvage
from ambermq.log.segments.batch_copy import copy_batch
from ambermq.log.segments.segment_reader import SegmentReader
from ambermq.log.segments.tail_survey import EPOCH_OFFSETS
from ambermq.log.storage.disk import DiskStorage
from ambermq.log.storage.interface import FileLock, Storage
from ambermq.log.storage.salt import draw_salt

__all__ = ["Repair", "apply", "aside_path", "plan"]

_ASIDE: Final = "aside"


@dataclass(frozen=True, slots=True)
class Repair:
    """The faults of a log, and the steps that repair it."""

    directory: str
    """The log's directory."""
    manifest: Manifest
    """The manifest on the disk, or one rebuilt from the segments' headers."""
    manifest_fault: LogError | None
    """Why the manifest was rebuilt, or None."""
    salvages: Salvages
    """The valid batches of each segment."""

    @property
    def damaged_segments(self) -> list[Salvage]:
        """The segments that need a clean copy."""
        return [one for one in self.salvages.segments if one.faults]

    @property
    def faults(self) -> list[LogError]:
        """All faults, in order."""
        found: list[LogError] = [] if self.manifest_fault is None else [self.manifest_fault]
        return found + [fault for one in self.salvages.segments for fault in one.faults]

    @property
    def lost(self) -> tuple[LostRange, ...]:
        """The offsets that cannot be saved."""
        return tuple(lost for one in self.salvages.segments for lost in one.lost)

    @property
    def is_needed(self) -> bool:
        """Whether the log has any fault."""
        return bool(self.faults)

    def steps(self) -> list[str]:
        """Return the steps of the repair, one sentence each."""
        steps = []
        if self.manifest_fault is not None:
            steps.append(f"rebuild {manifest_path(self.directory)} from {len(self.salvages.segments)} segments")
        for one in self.damaged_segments:
            if one.runs:
                steps.append(f"write a clean copy of {one.batch_count} batches of {one.path}")
            steps.append(f"move {one.path} to {aside_path(self, one.path)}")
        steps += [f"record offsets {lost.first_offset} to {lost.next_offset - 1} as lost" for lost in self.lost]
        return steps


def aside_path(repair: Repair, path: str) -> str:
    """Return the path to which a repair moves a damaged file."""
    return f"{repair.directory}/{_ASIDE}/{path.rpartition('/')[2]}-{repair.manifest.generation}"


def plan(directory: str, config: LogConfig | None = None, storage: Storage | None = None) -> Repair:
    """Return the faults of the log in `directory` and the steps that repair it; change nothing.

    Raises LockedError if a broker runs, and ForeignError if a newer version wrote the manifest. Raises LogError if
    there is nothing to repair from, or if only the damaged manifest knew the start of history.
    """
    storage = storage or DiskStorage()
    if not storage.exists(segments_path(directory)):
        raise LogError(f"{directory} holds no log")
    lock = _lock_to_read(storage, lock_path(directory))
    try:
        return _plan(directory, config or LogConfig(), storage)
    finally:
        if lock is not None:
            lock.release()


def _lock_to_read(storage: Storage, path: str) -> FileLock | None:
    """Lock without writing, as the disk may be mounted read-only; None if no broker has ever made the lock file."""
    if not storage.exists(path):
        return None
    lock = storage.try_lock(path)
    if lock is None:
        file = storage.open(path)
        try:
            raise LockedError(path, file.read(file.size(), 0).decode(errors="replace"))
        finally:
            file.close()
    return lock


def _plan(directory: str, config: LogConfig, storage: Storage) -> Repair:
    manifest, claims, fault = _claims(directory, config, storage)
    salvages = salvage(
        storage, directory, claims, durable_end=manifest.durable_end, batch_bytes_max=config.batch_bytes_max
    )
    if fault is not None and salvages.has_kept:
        raise LogError(f"{fault}; only this manifest named the snapshot at the start of history: restore a backup")
    return Repair(directory, manifest, fault, salvages)


def _claims(directory: str, config: LogConfig, storage: Storage) -> tuple[Manifest, list[Claim], LogError | None]:
    headers = headers_of(storage, directory, batch_bytes_max=config.batch_bytes_max)
    try:
        manifest = manifests.load(storage, directory)
        fault = None if manifest else DamageError(manifest_path(directory), 0, "a manifest", "no file")
    except DamageError as error:
        manifest, fault = None, error
    if manifest is not None:
        return manifest, claims_of(storage, directory, manifest, headers), None
    if not headers:
        raise LogError(f"{directory} holds no manifest and no segment with a readable header")
    return *rebuild_manifest(headers, next_file_id=_next_file_id(storage, directory)), fault


def _next_file_id(storage: Storage, directory: str) -> int:
    folders = [path for path in (segments_path(directory), snapshots_path(directory)) if storage.exists(path)]
    names = [name.partition(".")[0] for path in folders for name in storage.listdir(path)]
    return 1 + max((int(name, 16) for name in names if len(name) == 16 and set(name) <= set(hexdigits)), default=0)


def apply(directory: str, config: LogConfig | None = None, storage: Storage | None = None) -> Repair:
    """Repair the log in `directory` if it is damaged, and return what was done. Raises the errors of `plan`."""
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
    sealed, removed = list[SealedSegment](), list[int]()
    for one in repair.salvages.segments:
        end_offset = min(one.claim.next_offset, max(one.next_offset, repair.salvages.durable_end))
        if not one.runs:
            removed += [] if one.faults else [one.claim.file_id]
        elif not one.faults:
            sealed.append(SealedSegment(one.claim.file_id, one.claim.base_offset, end_offset, one.end, one.times))
        else:
            file_id = free_file_id(storage, directory, next_file_id)
            size = _write_copy(repair, one, storage, config, file_id)
            sealed.append(SealedSegment(file_id, one.claim.base_offset, end_offset, size, one.times))
            next_file_id = file_id + 1
    storage.sync_directory(segments_path(directory))
    manifests.store(storage, directory, _new_manifest(repair, tuple(sealed), tuple(removed), next_file_id))
    for one in repair.damaged_segments:
        if storage.exists(one.path):
            storage.rename(one.path, aside_path(repair, one.path))
    storage.sync_directory(f"{directory}/{_ASIDE}")
    storage.sync_directory(segments_path(directory))


def _new_manifest(
    repair: Repair, sealed: tuple[SealedSegment, ...], removed: tuple[int, ...], next_file_id: int
) -> Manifest:
    old, found = repair.manifest, repair.salvages
    named = {one.claim.file_id for one in found.segments}
    unused = () if old.spare is None or old.spare in named else (old.spare,)
    return replace_all_segments(
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
    damaged_file = storage.open(path)
    copy_file = storage.open(aside_path(repair, path), create=True)
    try:
        copy_file.write([damaged_file.read(damaged_file.size(), 0)], 0)
        copy_file.sync()
    finally:
        damaged_file.close()
        copy_file.close()
    storage.sync_directory(f"{repair.directory}/{_ASIDE}")


def _write_copy(repair: Repair, one: Salvage, storage: Storage, config: LogConfig, file_id: int) -> int:
    """Write the kept batches of a segment to a new file, sync it, and return its size."""
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
