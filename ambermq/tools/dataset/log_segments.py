"""The segments of a log for reading its history: from one generation of the manifest, on the disk or remote.

Rule 1. The values here can be sent to other processes: a segment is found again by its place and file id.
Rule 2. On the disk the generation is pinned while the log is open: none of its files is deleted. If the log is closed
        before other processes have opened their files, a file may be deleted; the error says so.
Rule 3. Beside a running broker history ends at the durable end, else where recovery would end it. No broker writes to a
        remote copy of a log.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from ambermq.engine.snapshots.files import load_snapshot
from ambermq.log.config import LogConfig
from ambermq.log.errors import DamageError, LogError
from ambermq.log.format.segment import SEGMENT_HEADER_BYTES, SegmentHeader, segment_path
from ambermq.log.format.time_range import TIME_MAX_US, TimeRange
from ambermq.log.manifest.manifest import Manifest, load, manifest_path
from ambermq.log.manifest.vhost_directories import load_root
from ambermq.log.manifest.vhost_manifest import DEFAULT_VHOST, vhosts_path
from ambermq.log.read.log_reader import SegmentState, open_reader
from ambermq.log.segments.segment_reader import SegmentReader
from ambermq.log.segments.tail_survey import survey
from ambermq.log.storage.interface import Storage
from ambermq.tools.dataset.file_systems import is_remote, joined, place_of
from ambermq.tools.dataset.s3_url import shown_url
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode

__all__ = [
    "ALL_VHOSTS",
    "HistoryLog",
    "HistorySegment",
    "Known",
    "first_time_us",
    "limited",
    "open_histories",
    "open_history",
    "open_segment",
]

ALL_VHOSTS: Final = "*"
"""The name for every virtual host of a directory."""

_VHOSTS: Final = Path(vhosts_path("")).name
_BATCH_BYTES_MAX: Final = LogConfig().batch_bytes_max

Known = dict[int, tuple[str, int]]
"""By id: the name of a queue and its id, or the container of a link and its queue, 0 for a producer."""


@dataclass(frozen=True, slots=True)
class HistorySegment:
    """One segment of one log, with all that a process needs to open it."""

    log: str
    """The directory of the log, a path or a URL."""
    vhost: str
    """The virtual host of the log."""
    log_id: bytes
    """The id of the log, 16 bytes, as in the header of the file."""
    file_id: int
    """The id in the name of the file."""
    base_offset: int
    """The first offset that it answers for."""
    next_offset: int
    """The first offset that it does not answer for."""
    size: int
    """The length of its valid bytes, header included."""
    end: int
    """Events from this offset on are not read: they are not durable yet."""
    first: int = 0
    """Events below this offset are not read."""
    start: int = SEGMENT_HEADER_BYTES
    """The position of the first batch to read."""
    times: TimeRange | None = None
    """The times of its records; None if the manifest does not have them."""
    is_compacted: bool = False
    """Whether it lies below the horizon, where compactions write segments."""


@dataclass(frozen=True, slots=True)
class HistoryLog:
    """An open log of one virtual host."""

    directory: str
    """The directory of the log, a path or a URL."""
    vhost: str
    """The virtual host of the log."""
    manifest: Manifest
    """The generation of the manifest that is read."""
    segments: tuple[HistorySegment, ...]
    """The segments that are not empty, in the order of their offsets."""
    end: int
    """The first offset that it does not answer for."""

    @property
    def horizon(self) -> int:
        """The offset at which history begins; below it the log has only live messages."""
        return _horizon_of(self.manifest)

    def known(self, storage: Storage | None = None) -> Known:
        """Return the names of queues and links at the horizon; their events were compacted.

        A snapshot on this disk is read from `storage` if there is one. Raises DamageError, ForeignError.
        """
        base = next((one for one in self.manifest.snapshots if self.horizon and one.end == self.horizon), None)
        if base is None:
            return {}
        place = place_of(self.directory)
        reads = place.storage if storage is None or is_remote(self.directory) else storage
        state = load_snapshot(reads, place.path, self.manifest, base)
        known: Known = {queue.id: (queue.name, queue.id) for queue in state.queues.values()}
        known |= {link.id: (link.container, link.queue) for link in state.consumers.values()}
        known |= {link.id: (link.container, link.queue) for link in state.suspended.values()}
        return known | {link.id: (link.container, 0) for link in state.producers.values()}


def _horizon_of(manifest: Manifest) -> int:
    return manifest.horizon.offset if manifest.horizon else 0


@contextmanager
def open_histories(directory: str, vhost: str = DEFAULT_VHOST) -> Iterator[list[HistoryLog]]:
    """Open the logs of a data directory, a path or a URL, for a block: of one virtual host or of all with `*`.

    Raises ToolError if there is no such directory or virtual host, and LogError as `open_reader`.
    """
    opened = [open_history(log, name) for name, log in _logs(directory, vhost)]
    with _closing(opened) as logs:
        yield logs


@contextmanager
def _closing(opened: list[Any]) -> Iterator[list[HistoryLog]]:
    """Enter all contexts; exit those that were entered."""
    if not opened:
        yield []
        return
    with opened[0] as first, _closing(opened[1:]) as rest:
        yield [first, *rest]


def _logs(directory: str, vhost: str) -> list[tuple[str, str]]:
    """Return the names and log directories of one virtual host, or of all with `*`. Raises ToolError."""
    place = place_of(directory)
    if not place.storage.exists(manifest_path(place.path)):
        raise ToolError(
            "no log here",
            where=shown_url(directory),
            expected="the data directory of a broker, with a file MANIFEST",
            found="none",
            code=ExitCode.NOT_FOUND,
        )
    root = load_root(place.storage, place.path)
    logs = {DEFAULT_VHOST: directory}
    logs |= {one.name: joined(directory, f"{_VHOSTS}/{one.directory}") for one in root.vhosts}
    if vhost == ALL_VHOSTS:
        return list(logs.items())
    if vhost not in logs:
        raise ToolError(
            f"no virtual host {vhost!r}", where=shown_url(directory), found=", ".join(logs), code=ExitCode.NOT_FOUND
        )
    return [(vhost, logs[vhost])]


@contextmanager
def open_history(directory: str, vhost: str = DEFAULT_VHOST, *, storage: Storage | None = None) -> Iterator[HistoryLog]:
    """Open the directory of one log, a path or a URL, for a block; `vhost` is the name of its virtual host.

    A log on this disk is read from `storage` if there is one. Raises LogError.
    """
    if is_remote(directory):
        yield _remote(directory, vhost)
        return
    path = place_of(directory).path
    with open_reader(path, storage=storage) as reader:
        manifest, horizon = reader.manifest, _horizon_of(reader.manifest)
        segments = [
            HistorySegment(
                path,
                vhost,
                manifest.log_id,
                one.file_id,
                one.base_offset,
                one.next_offset,
                one.size,
                reader.end,
                times=one.times,
                is_compacted=one.next_offset <= horizon,
            )
            for one in reader.segments()
            if one.state is not SegmentState.SPARE and one.size > SEGMENT_HEADER_BYTES
        ]
        yield HistoryLog(path, vhost, reader.manifest, tuple(segments), reader.end)


def _remote(directory: str, vhost: str) -> HistoryLog:
    place = place_of(directory)
    manifest = load(place.storage, place.path)
    if manifest is None:
        raise LogError(f"{directory} holds no log: {manifest_path(place.path)} is missing")
    found = survey(place.storage, place.path, manifest, batch_bytes_max=_BATCH_BYTES_MAX)
    end = found.valid_end
    rows = [(one.file_id, one.base_offset, one.next_offset, one.size, one.times) for one in manifest.sealed]
    for part, following in zip(found.parts, [*found.parts[1:], None], strict=True):
        next_offset = end if following is None else following.header.base_offset
        rows.append((part.header.file_id, part.header.base_offset, next_offset, part.end, part.times))
        part.file.close()
    horizon = _horizon_of(manifest)
    segments = [
        HistorySegment(
            directory,
            vhost,
            manifest.log_id,
            file_id,
            base_offset,
            next_offset,
            size,
            end,
            times=times,
            is_compacted=next_offset <= horizon,
        )
        for file_id, base_offset, next_offset, size, times in rows
        if size > SEGMENT_HEADER_BYTES
    ]
    return HistoryLog(directory, vhost, manifest, tuple(segments), end)


def open_segment(segment: HistorySegment, storage: Storage | None = None) -> SegmentReader:
    """Open a segment, from `storage` if there is one and the segment is on this disk; the caller closes its file.

    Raises DamageError if the file is another segment, and ToolError if it was deleted.
    """
    place = place_of(segment.log)
    path = segment_path(place.path, segment.file_id)
    try:
        file = (place.storage if storage is None or is_remote(segment.log) else storage).open(path)
    except FileNotFoundError as error:
        raise ToolError(
            "the segment is gone: a compaction replaced it after this read was planned",
            where=path,
            advice="read again; `with open_histories(DIR):` around a read keeps its files",
            code=ExitCode.NOT_FOUND,
        ) from error
    header = SegmentHeader.decode(file.read(SEGMENT_HEADER_BYTES, 0), path)
    if header is None or (header.log_id, header.file_id) != (segment.log_id, segment.file_id):
        file.close()
        expected = f"file {segment.file_id:016x} of log {segment.log_id.hex()}"
        found = "zeros" if header is None else f"{header.file_id:016x} of {header.log_id.hex()}"
        raise DamageError(path, 16, expected, found)
    return SegmentReader(path, file, header, _BATCH_BYTES_MAX, segment.size)


def first_time_us(segment: HistorySegment) -> int:
    """Return the time of a segment's first batch with records; TIME_MAX_US if no batch has any.

    In a log of version 0.1.0 no record of the segment is earlier, but a batch without records may be.
    """
    part = open_segment(segment)
    try:
        return next((header.base_timestamp_us for header in part.walk() if header.count), TIME_MAX_US)
    finally:
        part.file.close()


def limited(segment: HistorySegment, *, first: int = 0, end: int) -> HistorySegment:
    """Return the segment with its events limited to offsets from `first` to below `end`."""
    return replace(segment, first=max(segment.first, first), end=min(segment.end, end))
