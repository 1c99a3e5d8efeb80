"""The verification of a whole log on the disk: the manifest, every CRC, every offset, every index.

Rule 1. The first damage is reported with its file and position; nothing is changed.
Rule 2. While a broker runs, an unfinished write is no damage, and a missing index is none either.
Rule 3. Segments below the horizon have messages with holes between them, marked KEPT. Above the horizon that is damage.
Rule 4. An existing index that does not fit is reported, although the log is whole without it.
Rule 5. A file that may not be read is neither whole nor damaged: the error is raised, not reported.
Rule 6. A second implementation computes the CRCs of some batches too (log/format/checksum_pair.py). The error is raised
        as well if the two disagree.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from ambermq.log.config import LogConfig
from ambermq.log.errors import ChecksumError, DamageError, LogError
from ambermq.log.format.batch import COMPRESSED, KEPT, Mismatch
from ambermq.log.format.compression import plain_bodies
from ambermq.log.format.record import RECORD
from ambermq.log.format.segment import Segment
from ambermq.log.index.segment_index import Index, check_index, path_of_index
from ambermq.log.manifest.manifest import (
    Manifest,
    SealedSegment,
    Snapshot,
    load,
    manifest_path,
    named_files,
    segments_path,
    snapshot_path,
    snapshots_path,
)
from ambermq.log.manifest.snapshot_placement import temporary_path
from ambermq.log.read.log_reader import LogReader, open_reader
from ambermq.log.recovery.presence import check_presence
from ambermq.log.segments.batch_walk import BatchWalk
from ambermq.log.segments.checksum_cross_check import check_by_both
from ambermq.log.segments.segment_reader import SegmentReader
from ambermq.log.storage.disk import DiskStorage
from ambermq.log.storage.interface import Storage

__all__ = ["CheckSnapshot", "Progress", "Report", "verify"]

Progress = Callable[[int, int], None]
"""progress(bytes checked so far, total bytes)."""

CheckSnapshot = Callable[[Manifest, Snapshot], None]
"""A function that reads a whole snapshot, which this package cannot. It raises LogError."""


@dataclass(slots=True)
class Report:
    """The result of a verification."""

    damage: LogError | None = None
    """The first damage, or None; a DamageError if a file and a position are known."""
    segment_count: int = 0
    """The number of segments with at least one batch."""
    batch_count: int = 0
    """The number of checked batches."""
    record_count: int = 0
    """The number of records in them."""
    record_types: dict[int, int] = field(default_factory=dict)
    """The types of the records, each with the flags of one record."""
    byte_count: int = 0
    """The number of checked bytes."""
    index_count: int = 0
    """The number of indexes that exist and fit."""
    index_missing_count: int = 0
    """The number of sealed segments without an index. A running broker builds them."""
    snapshot_count: int = 0
    """The number of snapshots that exist and are whole."""
    durable_end: int = 0
    """The end of the part that is known to be durable."""
    valid_end: int = 0
    """The end of the log."""
    ignored: DamageError | None = None
    """The fault that ends the tail after the durable end: an unfinished write, which is no damage."""
    unknown_files: list[str] = field(default_factory=list)
    """Paths of files that the manifest does not name."""


_TYPE, _FLAGS = RECORD.size - 2, RECORD.size - 1
"""The positions of two columns in a record."""


def verify(
    directory: str,
    progress: Progress | None = None,
    config: LogConfig | None = None,
    check_snapshot: CheckSnapshot | None = None,
    storage: Storage | None = None,
) -> Report:
    """Return the report on the log in `directory`.

    Raises PermissionError if it may not be read, ChecksumError if two implementations disagree, and nothing else.
    `storage` is by default the machine's disk. The existence and size of each snapshot are checked, and its contents if
    `check_snapshot` is given.
    """
    report = Report()
    try:
        with open_reader(directory, config, storage) as reader:
            _Check(reader, report, progress).run(directory, check_snapshot)
    except (PermissionError, ChecksumError):
        raise
    except IsADirectoryError as error:
        report.damage = DamageError(error.filename or manifest_path(directory), 0, "a file", "a directory")
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

    def run(self, directory: str, check_snapshot: CheckSnapshot | None) -> None:
        report, found, manifest = self._report, self._reader.survey, self._reader.manifest
        report.durable_end, report.valid_end, report.ignored = found.durable_end, found.valid_end, found.fault
        report.unknown_files = _unknown_files(directory, manifest)
        self._check_batches()
        if not self._reader.is_written:
            check_presence(self._reader.storage, directory, manifest, valid_end=found.valid_end)
        self._report_progress(self._total_bytes)
        for sealed in manifest.sealed:
            self._check_index(sealed, sealed.at(directory))
        for snapshot in manifest.snapshots:
            _check_presence(directory, snapshot)
            if check_snapshot is not None:
                check_snapshot(manifest, snapshot)
            report.snapshot_count += 1

    def _check_batches(self) -> None:
        previous_part: SegmentReader | None = None
        start_bytes = number = 0
        for part, walk in self._reader.walks():
            if part is not previous_part:
                start_bytes += previous_part.end if previous_part else 0
                previous_part, number = part, 0
                self._report.segment_count += 1
            self._check_batch(part, walk, number)
            self._report_progress(start_bytes + walk.position)
            number += 1

    def _check_batch(self, part: SegmentReader, walk: BatchWalk, number: int) -> None:
        header = walk.header
        assert header is not None
        stored = walk.bodies()
        bodies = plain_bodies(header, stored)
        if isinstance(bodies, Mismatch):
            position = walk.position + header.head_bytes
            raise DamageError(part.path, position, bodies.expected, bodies.found)
        check_by_both(walk, stored, part.path, number=number)
        if header.flags & COMPRESSED and not part.header.is_compressible:
            found = f"flags {header.flags} in a segment of version {part.header.version}"
            raise DamageError(part.path, walk.position, "bodies that are not compressed", found)
        horizon = self._reader.manifest.horizon
        if header.flags & KEPT and (horizon is None or header.base_offset >= horizon.offset):
            expected = f"no batch of kept messages from the horizon {horizon and horizon.offset} on"
            raise DamageError(part.path, walk.position, expected, f"one at offset {header.base_offset}")
        self._report.batch_count += 1
        self._report.record_count += header.count
        self._note_types(walk)

    def _note_types(self, walk: BatchWalk) -> None:
        records, known = bytes(walk.parts()[0]), self._report.record_types
        if not known.keys() >= set(records[_TYPE :: RECORD.size]):
            known.update(zip(records[_TYPE :: RECORD.size], records[_FLAGS :: RECORD.size], strict=True))

    def _check_index(self, sealed: SealedSegment, segment: Segment) -> None:
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

    def _report_progress(self, done_bytes: int) -> None:
        self._report.byte_count = done_bytes
        if self._progress is not None:
            self._progress(done_bytes, self._total_bytes)


def _check_positions(path: str, part: SegmentReader) -> None:
    """Raise DamageError if an index names a batch that the segment does not have."""
    index = Index(path)
    try:
        indexed = index.batches()
    finally:
        index.close()
    walk = part.walk()
    batches = set[tuple[int, int]]()
    for header in walk:
        batches.add((header.base_offset, walk.position))
    for base_offset, position in indexed:
        if (base_offset, position) not in batches:
            expected = "positions of batches of the segment"
            raise DamageError(path, 0, expected, f"position {position} for offset {base_offset}")


def _unknown_files(directory: str, manifest: Manifest) -> list[str]:
    storage, folders = DiskStorage(), (segments_path(directory), snapshots_path(directory))
    found = [f"{folder}/{name}" for folder in folders if storage.exists(folder) for name in storage.listdir(folder)]
    unknown = [path for path in found if path not in _known_paths(directory, manifest)]
    if unknown:
        # A running broker may have edited the manifest since. It names files before it makes them.
        current = load(storage, directory)
        known = frozenset() if current is None else _known_paths(directory, current)
        unknown = [path for path in unknown if path not in known and storage.exists(path)]
    return unknown


def _known_paths(directory: str, manifest: Manifest) -> frozenset[str]:
    """Return the paths of all files that may exist according to a manifest."""
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
