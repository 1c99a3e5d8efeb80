"""Read archives: the ones that the manifest of a log names, and their files as parts of its history.

    TARGET/<attempt>.archive    JSON and a CRC line: log, offsets, and the Parquet files with rows, bytes and CRC-32C
    TARGET/date=.../...         the files; see parquet_files.py

Rule: only archives that the manifest names are read. The files of a compaction without a commit are never read.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import reduce

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ambermq.log.format.crc_document import read_document, with_crc_line
from ambermq.tools.dataset.arrow_table import EVERYTHING, Selection
from ambermq.tools.dataset.file_systems import joined, os_errors, place_of
from ambermq.tools.dataset.log_segments import HistoryLog
from ambermq.tools.dataset.parquet_files import ParquetFile
from ambermq.tools.dataset.partition_writer import partition_name
from ambermq.tools.dataset.schema import schema_of

__all__ = [
    "Archive",
    "ArchivePart",
    "archive_columns",
    "archive_parts",
    "known_from",
    "load_archive",
    "may_hold",
    "store_archive",
]

_ROWS_MAX = 32_768
_VERSION = 1
_SUFFIX = ".archive"


@dataclass(frozen=True, slots=True)
class Archive:
    """Events of one log as Parquet files."""

    version: int
    """The version of this format."""
    log_id: str
    """The id of the log, in hex."""
    vhost: str
    """The name of the virtual host."""
    first_offset: int
    """The first offset ..."""
    last_offset: int
    """... and the last one, included."""
    columns: tuple[str, ...]
    """The columns in the files and their paths."""
    files: tuple[ParquetFile, ...]
    """The files, sorted by path."""

    @property
    def rows(self) -> int:
        """The number of rows in all files."""
        return sum(one.rows for one in self.files)


@dataclass(frozen=True, slots=True)
class ArchivePart:
    """One file of an archive, with all that a process needs to open it."""

    target: str
    """The directory of the archive, a path or a URL."""
    file: ParquetFile
    """The file below the directory."""
    first_offset: int
    """The first offset of its events ..."""
    last_offset: int
    """... and the last one, included."""


def store_archive(archive: Archive, target: str, *, attempt: str) -> str:
    """Write the listing of an archive to the directory of its files; return the path or URL for the manifest."""
    listing = joined(target, f"{attempt}{_SUFFIX}")
    content = with_crc_line(msgspec.json.format(msgspec.json.encode(archive), indent=1) + b"\n")
    place = place_of(target)
    path = f"{place.path}/{attempt}{_SUFFIX}"
    if place.filesystem is not None:
        with os_errors(), place.filesystem.open_output_stream(path) as stream:
            stream.write(content)
        return listing
    place.storage.makedirs(place.path)
    file = place.storage.open(path, create=True)
    try:
        file.write([content], 0)
        file.sync()
    finally:
        file.close()
    place.storage.sync_directory(place.path)
    return path


def load_archive(listing: str) -> Archive:
    """Return the archive that a path or URL names. Raises DamageError, ForeignError, FileNotFoundError."""
    target, name = _split(listing)
    place = place_of(target)
    path = f"{place.path}/{name}"
    file = place.storage.open(path)
    try:
        content = file.read(file.size(), 0)
    finally:
        file.close()
    return read_document(content, Archive, file=listing, what="archive", version=_VERSION)


def archive_parts(log: HistoryLog) -> Iterator[ArchivePart]:
    """Yield the files of all archives that a log's manifest names. Raises as `load_archive`."""
    for listing in log.manifest.archive:
        archive = load_archive(listing)
        for file in archive.files:
            yield ArchivePart(_split(listing)[0], file, archive.first_offset, archive.last_offset)


def may_hold(part: ArchivePart, selection: Selection) -> bool:
    """Return whether a file may hold events of a selection."""
    if part.last_offset < selection.first or part.first_offset >= selection.end:
        return False
    queues = selection.queues
    if queues is not None and part.file.queue not in queues and part.file.partition not in map(partition_name, queues):
        return False
    day = datetime.fromisoformat(part.file.date).replace(tzinfo=UTC).timestamp() * 1_000_000
    return day < selection.end_us and day + 86_400_000_000 > selection.begin_us


def known_from(log: HistoryLog) -> int:
    """Return the offset from which log and archives together have every event. Raises as `load_archive`."""
    begin = log.horizon
    for archive in map(load_archive, reversed(log.manifest.archive)):
        # An archive ends at the horizon of its compaction. An archive before a gap is not joined to the log.
        if archive.last_offset + 1 >= begin:
            begin = min(begin, archive.first_offset)
    return begin


def archive_columns(
    part: ArchivePart, columns: Sequence[str], selection: Selection = EVERYTHING
) -> Iterator[pa.RecordBatch]:
    """Yield these columns of the events in an archive's file, within the offsets and times of a selection.

    Raises OSError if pages are damaged.
    """
    place, schema = place_of(part.target), schema_of(columns)
    path = f"{place.path}/{part.file.path}"
    with (
        os_errors(),
        pq.ParquetFile(path, filesystem=place.filesystem, page_checksum_verification=True) as file,
    ):
        present = [name for name in file.schema_arrow.names if name in {*schema.names, "offset", "timestamp"}]
        for whole in file.iter_batches(_ROWS_MAX, columns=present):
            batch = _selected(whole, selection)
            yield pa.RecordBatch.from_arrays(
                [_column(batch, field, part.file.queue) for field in schema], schema=schema
            )


def _selected(batch: pa.RecordBatch, selection: Selection) -> pa.RecordBatch:
    """Return the rows within the offsets and times of a selection."""
    offsets, times = batch.column("offset"), batch.column("timestamp").cast(pa.int64())
    bounds = (
        pc.greater_equal(offsets, selection.first),
        pc.less(offsets, selection.end),
        pc.greater_equal(times, selection.begin_us),
        pc.less(times, selection.end_us),
    )
    return batch.filter(reduce(pc.and_, bounds))


def _column(batch: pa.RecordBatch, field: pa.Field, queue: str | None) -> pa.Array:
    if field.name in batch.schema.names:
        return batch.column(field.name).cast(field.type)
    # The files of version 0.1.0 have the queue only in their paths.
    value = queue if field.name == "queue" else None
    return pa.repeat(pa.scalar(value, field.type), batch.num_rows)


def _split(listing: str) -> tuple[str, str]:
    """Return an archive's directory and the name of its listing."""
    path, mark, query = listing.partition("?") if "://" in listing else (listing, "", "")
    target, _, name = path.rpartition("/")
    return f"{target}{mark}{query}", name
