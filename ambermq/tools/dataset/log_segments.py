"""A log as history is read from it: its segments by name, from one generation of the manifest, wherever it lies.

Rule 1. What is told here can be handed to other processes: a segment is found again by place and file id.
Rule 2. On the disk the generation is pinned while the log is open: nothing that it names is deleted. Who reads in
        other processes and lets go before they have opened the files may find one gone, which is told as such.
Rule 3. History ends where it is durable while a broker writes, else where recovery would end it. A remote copy is of a
        log that nobody writes.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from ambermq.engine.snapshots.files import load_snapshot
from ambermq.log.config import LogConfig
from ambermq.log.errors import DamageError, LogError
from ambermq.log.format.batch import BATCH_HEADER_BYTES, decode_header
from ambermq.log.format.segment import SEGMENT_HEADER_BYTES, SegmentHeader, segment_path
from ambermq.log.manifest.manifest import Manifest, load, manifest_path
from ambermq.log.manifest.vhost_directories import load_root
from ambermq.log.manifest.vhost_manifest import DEFAULT_VHOST, vhosts_path
from ambermq.log.read.log_reader import SegmentState, open_reader
from ambermq.log.segments.segment_reader import SegmentReader
from ambermq.log.segments.tail_survey import survey
from ambermq.tools.dataset.file_systems import is_remote, joined, place_of
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
"""Stands for every virtual host of a directory."""

_VHOSTS: Final = Path(vhosts_path("")).name
_BATCH_BYTES_MAX: Final = LogConfig().batch_bytes_max

Known = dict[int, tuple[str, int]]
"""By id: the name of a queue and its id, or the container of a link and its queue, 0 where it sends."""


@dataclass(frozen=True, slots=True)
class HistorySegment:
    """One segment of one log, to be opened anywhere."""

    log: str
    """The log's directory, a path or a URL."""
    vhost: str
    """The virtual host whose log it is."""
    log_id: bytes
    """16 bytes; the file says the same."""
    file_id: int
    """Names the file."""
    base_offset: int
    """The first offset that it answers for."""
    next_offset: int
    """The first that it does not."""
    size: int
    """Bytes that count, header included."""
    end: int
    """Events from here on are not told: they are not durable yet."""
    first: int = 0
    """Nor are those before here."""
    start: int = SEGMENT_HEADER_BYTES
    """Position of the first batch that is wanted."""


@dataclass(frozen=True, slots=True)
class HistoryLog:
    """A log of one virtual host, open."""

    directory: str
    """Of the log, a path or a URL."""
    vhost: str
    """Whose log it is."""
    manifest: Manifest
    """The generation that is read."""
    segments: tuple[HistorySegment, ...]
    """In order of their offsets, those that hold something."""
    end: int
    """The first offset that it does not answer for."""

    @property
    def horizon(self) -> int:
        """Where history begins; below it only some messages are left."""
        return self.manifest.horizon.offset if self.manifest.horizon else 0

    def known(self) -> Known:
        """Return the names of what lived at the horizon, whose events are gone. Raises DamageError, ForeignError."""
        base = next((one for one in self.manifest.snapshots if self.horizon and one.end == self.horizon), None)
        if base is None:
            return {}
        place = place_of(self.directory)
        state = load_snapshot(place.storage, place.path, self.manifest, base)
        known: Known = {queue.id: (queue.name, queue.id) for queue in state.queues.values()}
        known |= {link.id: (link.container, link.queue) for link in state.consumers.values()}
        return known | {link.id: (link.container, 0) for link in state.producers.values()}


@contextmanager
def open_histories(directory: str, vhost: str = DEFAULT_VHOST) -> Iterator[list[HistoryLog]]:
    """Open the logs of a data directory, a path or a URL, for a block: of one virtual host or, by `*`, of all.

    Raises ToolError where there is no such directory or virtual host, LogError as `open_reader`.
    """
    opened = [open_history(log, name) for name, log in _logs(directory, vhost)]
    with _closing(opened) as logs:
        yield logs


@contextmanager
def _closing(opened: list[Any]) -> Iterator[list[HistoryLog]]:
    """Enter all of the contexts, and leave those that were entered."""
    if not opened:
        yield []
        return
    with opened[0] as first, _closing(opened[1:]) as rest:
        yield [first, *rest]


def _logs(directory: str, vhost: str) -> list[tuple[str, str]]:
    """Return the names of the virtual hosts that are asked for, and where their logs lie."""
    place = place_of(directory)
    if not place.storage.exists(manifest_path(place.path)):
        raise ToolError(
            "no log here",
            where=directory,
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
        raise ToolError(f"no virtual host {vhost!r}", where=directory, found=", ".join(logs), code=ExitCode.NOT_FOUND)
    return [(vhost, logs[vhost])]


@contextmanager
def open_history(directory: str, vhost: str = DEFAULT_VHOST) -> Iterator[HistoryLog]:
    """Open one log's directory, a path or a URL, for a block; `vhost` is what it is called. Raises LogError."""
    if is_remote(directory):
        yield _remote(directory, vhost)
        return
    path = place_of(directory).path
    with open_reader(path) as reader:
        segments = [
            HistorySegment(
                path, vhost, reader.manifest.log_id, one.file_id, one.base_offset, one.next_offset, one.size, reader.end
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
    rows = [(one.file_id, one.base_offset, one.next_offset, one.size) for one in manifest.sealed]
    for part, following in zip(found.parts, [*found.parts[1:], None], strict=True):
        next_offset = end if following is None else following.header.base_offset
        rows.append((part.header.file_id, part.header.base_offset, next_offset, part.end))
        part.file.close()
    segments = [
        HistorySegment(directory, vhost, manifest.log_id, file_id, base_offset, next_offset, size, end)
        for file_id, base_offset, next_offset, size in rows
        if size > SEGMENT_HEADER_BYTES
    ]
    return HistoryLog(directory, vhost, manifest, tuple(segments), end)


def open_segment(segment: HistorySegment) -> SegmentReader:
    """Open a segment; the caller closes its file.

    Raises DamageError where it is not the one that is meant, and ToolError where it is gone.
    """
    place = place_of(segment.log)
    path = segment_path(place.path, segment.file_id)
    try:
        file = place.storage.open(path)
    except FileNotFoundError as error:
        raise ToolError(
            "the segment is gone: a compaction has replaced it since this read was planned",
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
    """Return the time of a segment's first batch, by its header alone; 0 where that tells none."""
    part = open_segment(segment)
    try:
        head = part.file.read(BATCH_HEADER_BYTES, SEGMENT_HEADER_BYTES)
    finally:
        part.file.close()
    return decode_header(head).base_timestamp_us if len(head) == BATCH_HEADER_BYTES else 0


def limited(segment: HistorySegment, *, first: int = 0, end: int) -> HistorySegment:
    """Return the segment with less that is told of it: offsets from `first` to below `end`."""
    return replace(segment, first=max(segment.first, first), end=min(segment.end, end))
