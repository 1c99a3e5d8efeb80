"""Checking everything that a log has on the disk: the manifest, every CRC, every offset, every index.

Rule 1. The first damage is reported with file and position; nothing is changed.
Rule 2. Beside a running broker what is not yet written is no damage, nor is an index that is not yet built.
Rule 3. Segments below the horizon hold messages with holes between them, marked KEPT; above it that would be damage.
Rule 4. An index that is there and does not fit is reported, though the log itself is whole without it.
Rule 5. What may not be read is neither whole nor damaged: that is raised, not reported.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from ambermq.log.config import LogConfig
from ambermq.log.errors import DamageError, LogError
from ambermq.log.format.batch import COMPRESSED, KEPT, Mismatch
from ambermq.log.format.compression import plain_bodies
from ambermq.log.format.segment import Segment
from ambermq.log.index.segment_index import Index, check_index, path_of_index
from ambermq.log.manifest.manifest import (
    Manifest,
    Sealed,
    Snapshot,
    load,
    named_files,
    segments_path,
    snapshot_path,
    snapshots_path,
)
from ambermq.log.manifest.snapshot_placement import temporary_path
from ambermq.log.read.log_reader import LogReader, open_reader
from ambermq.log.segments.batch_walk import BatchWalk
from ambermq.log.segments.segment_reader import SegmentReader
from ambermq.log.storage.disk import DiskStorage
from ambermq.log.storage.interface import Storage

__all__ = ["CheckSnapshot", "Progress", "Report", "verify"]

Progress = Callable[[int, int], None]
"""Called with the bytes done so far and their total."""

CheckSnapshot = Callable[[Manifest, Snapshot], None]
"""Reads a whole snapshot, which this folder cannot; raises LogError."""


@dataclass(slots=True)
class Report:
    """What was found."""

    damage: LogError | None = None
    """The first damage, None where all is well; a DamageError where a file and a position can be named."""
    segment_count: int = 0
    """Segments that hold anything."""
    batch_count: int = 0
    """Batches checked."""
    record_count: int = 0
    """Records in them."""
    byte_count: int = 0
    """Bytes checked."""
    index_count: int = 0
    """Indexes that are there and fit."""
    index_missing_count: int = 0
    """Sealed segments without one; it is built when the log is open."""
    snapshot_count: int = 0
    """Snapshots that are there and whole."""
    durable_end: int = 0
    """What is known to be durable."""
    valid_end: int = 0
    """Where the log ends."""
    ignored: DamageError | None = None
    """What ends the tail, after the durable end: a write that was cut short, and no damage."""
    unknown_files: list[str] = field(default_factory=list)
    """Paths that the manifest does not name."""


def verify(
    directory: str,
    progress: Progress | None = None,
    config: LogConfig | None = None,
    check_snapshot: CheckSnapshot | None = None,
    storage: Storage | None = None,
) -> Report:
    """Check the log in `directory`; raises PermissionError where it may not read, and nothing for what it finds there.

    It is read from `storage`, by default the machine's disk. Of snapshots presence and size are checked, and all of
    them where `check_snapshot` is given.
    """
    report = Report()
    try:
        with open_reader(directory, config, storage) as reader:
            _Check(reader, report, progress).run(directory, check_snapshot)
    except PermissionError:
        raise
    except (LogError, OSError) as error:
        report.damage = error if isinstance(error, LogError) else LogError(str(error))
    return report


class _Check:
    def __init__(self, reader: LogReader, report: Report, progress: Progress | None) -> None:
        self._reader = reader
        self._report = report
        self._progress = progress
        parts = reader.survey.parts
        self._total_bytes = sum(one.size for one in reader.manifest.sealed) + sum(part.end for part in parts)
        self._done_bytes = 0

    def run(self, directory: str, check_snapshot: CheckSnapshot | None) -> None:
        report, found, manifest = self._report, self._reader.survey, self._reader.manifest
        report.durable_end, report.valid_end, report.ignored = found.durable_end, found.valid_end, found.fault
        report.unknown_files = _unknown_files(directory, manifest)
        self._check_batches()
        self._tell(self._total_bytes)
        for sealed in manifest.sealed:
            self._check_index(sealed, sealed.at(directory))
        for snapshot in manifest.snapshots:
            _check_presence(directory, snapshot)
            if check_snapshot is not None:
                check_snapshot(manifest, snapshot)
            report.snapshot_count += 1

    def _check_batches(self) -> None:
        part_before: SegmentReader | None = None
        begun = 0
        for part, walk in self._reader.walks():
            if part is not part_before:
                begun += part_before.end if part_before else 0
                part_before = part
                self._report.segment_count += 1
            self._check_batch(part, walk)
            self._tell(begun + walk.position)

    def _check_batch(self, part: SegmentReader, walk: BatchWalk) -> None:
        header = walk.header
        assert header is not None
        bodies = plain_bodies(header, walk.bodies())
        if isinstance(bodies, Mismatch):
            position = walk.position + header.head_bytes
            raise DamageError(part.path, position, bodies.expected, bodies.found)
        if header.flags & COMPRESSED and not part.header.is_compressible:
            found = f"flags {header.flags} in a segment of version {part.header.version}"
            raise DamageError(part.path, walk.position, "bodies that are not compressed", found)
        horizon = self._reader.manifest.horizon
        if header.flags & KEPT and (horizon is None or header.base_offset >= horizon.offset):
            expected = f"no batch of kept messages alone, for the horizon is {horizon and horizon.offset}"
            raise DamageError(part.path, walk.position, expected, f"one at offset {header.base_offset}")
        self._report.batch_count += 1
        self._report.record_count += header.count

    def _check_index(self, sealed: Sealed, segment: Segment) -> None:
        path = path_of_index(segment)
        part = self._reader.open_sealed(sealed)
        try:
            if not DiskStorage().exists(path):
                self._report.index_missing_count += 1
                return
            mismatch = check_index(path, segment, part.header)
            if mismatch is not None:
                raise DamageError(path, 0, mismatch.expected, mismatch.found)
            _check_positions(path, part)
            self._report.index_count += 1
        finally:
            part.file.close()

    def _tell(self, done_bytes: int) -> None:
        self._report.byte_count = done_bytes
        if self._progress is not None:
            self._progress(done_bytes, self._total_bytes)


def _check_positions(path: str, part: SegmentReader) -> None:
    """Hold what an index says of batches against the segment."""
    index = Index(path)
    try:
        told = index.batches()
    finally:
        index.close()
    walk = part.walk()
    there = set[tuple[int, int]]()
    for header in walk:
        there.add((header.base_offset, walk.position))
    for base_offset, position in told:
        if (base_offset, position) not in there:
            raise DamageError(path, 0, f"a batch at position {position}", f"offset {base_offset}, which is not there")


def _unknown_files(directory: str, manifest: Manifest) -> list[str]:
    storage, folders = DiskStorage(), (segments_path(directory), snapshots_path(directory))
    found = [f"{folder}/{name}" for folder in folders if storage.exists(folder) for name in storage.listdir(folder)]
    unknown = [path for path in found if path not in _known_paths(directory, manifest)]
    if unknown:
        # A broker may have gone on since this manifest was opened. It names files before it makes them.
        current = load(storage, directory)
        known = frozenset() if current is None else _known_paths(directory, current)
        unknown = [path for path in unknown if path not in known and storage.exists(path)]
    return unknown


def _known_paths(directory: str, manifest: Manifest) -> frozenset[str]:
    """Return every path that there may be on the word of a manifest."""
    folder, file_ids = segments_path(directory), named_files(manifest) | set(manifest.removed)
    segments = (f"{folder}/{file_id:016x}{end}" for file_id in file_ids for end in (".log", ".index", ".index.new"))
    snapshots = (snapshot_path(directory, file_id) for file_id in file_ids)
    return frozenset((*segments, *snapshots, temporary_path(directory)))


def _check_presence(directory: str, snapshot: Snapshot) -> None:
    path, storage = snapshot_path(directory, snapshot.file_id), DiskStorage()
    if not storage.exists(path):
        raise DamageError(path, 0, f"the snapshot {snapshot.name!r} that the manifest names", "no file")
    if storage.size(path) != snapshot.size:
        raise DamageError(path, 0, f"a snapshot of {snapshot.size} bytes", f"{storage.size(path)}")
