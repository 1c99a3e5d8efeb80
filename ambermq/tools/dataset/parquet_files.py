"""Write events as Parquet files by date and queue, for archives and exports.

    TARGET/date=2026-11-22/queue_partition=orders/<attempt>-0.parquet

Rule 1. The names of files begin with the attempt that wrote them: two attempts never write to the same file, and the
files of a dead attempt are recognised by their names.
Rule 2. The files have every column, `queue` too. A path adds `date` and `queue_partition`, which no file has: pyarrow
and pandas refuse a column that is in both. An event without a queue is in `queue_partition=no-queue`.
Names are percent-encoded if a path needs it. Dates are UTC.
Rule 3. On a disk, files and their names are synced before they are returned. Pages have checksums.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from ambermq.log.format.checksum import crc32c
from ambermq.log.storage.disk import DiskStorage
from ambermq.log.storage.interface import Storage
from ambermq.log.storage.steady_file import write_back_whole
from ambermq.tools.dataset.file_systems import os_errors, place_of
from ambermq.tools.dataset.partition_writer import PartitionWriter
from ambermq.tools.dataset.schema import schema_of

__all__ = ["NO_QUEUE", "ParquetFile", "write_events"]

NO_QUEUE: Final = "no-queue"
"""The partition of events without a queue. Events of a queue of this name are there too."""

_NULL: Final = "__HIVE_DEFAULT_PARTITION__"
"""The partition of events without a queue in archives of version 0.1.0, whose files do not have the queue."""
_ROWS_BUFFERED: Final = 16_384
"""The rows of a file that are buffered, so that its row groups are not tiny if there are many queues."""
_ROWS_BUFFERED_WITH_BODIES: Final = 4_096
"""The same for rows with bodies, which may be large."""
_PIECE_BYTES: Final = 4 << 20


@dataclass(frozen=True, slots=True)
class ParquetFile:
    """One written file."""

    path: str
    """The path below the target."""
    rows: int
    """The number of rows."""
    size: int
    """The size in bytes."""
    crc32c: int
    """The checksum of the whole file."""

    @property
    def date(self) -> str:
        """The day of its events, UTC."""
        return self.path.split("/")[-3].removeprefix("date=")

    @property
    def partition(self) -> str:
        """The name of its queue in its path (partition_writer.py)."""
        return self.path.split("/")[-2].partition("=")[2]

    @property
    def queue(self) -> str | None:
        """The queue that its path names: NO_QUEUE for events without one. None only in archives of version 0.1.0.

        Of a queue with a very long name it is the beginning.
        """
        return None if self.partition == _NULL else unquote(self.partition)


def write_events(
    batches: Iterable[pa.RecordBatch],
    columns: Sequence[str],
    target: str,
    *,
    attempt: str,
    storage: Storage | None = None,
) -> list[ParquetFile]:
    """Write record batches below a path or URL and return the files, sorted by path.

    The columns must include offset, timestamp and queue. Files on this disk are read again from `storage` if there is
    one. Raises OSError.
    """
    place = place_of(target)
    rows_buffered = _ROWS_BUFFERED_WITH_BODIES if "body" in columns else _ROWS_BUFFERED
    writer = PartitionWriter(place, schema_of(columns), attempt=attempt, rows_buffered=rows_buffered)
    if place.filesystem is None:
        Path(place.path).mkdir(parents=True, exist_ok=True)
    with os_errors():
        writer.write(_with_partitions(batches))
    paths = writer.paths
    if place.filesystem is None:
        _sync(paths, place.path)
    reads = place.storage if storage is None or place.filesystem is not None else storage
    return sorted((_file(place, path, reads) for path in paths), key=lambda one: one.path)


def _with_partitions(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[pa.RecordBatch, pa.Array, pa.Array]]:
    """Yield each batch with the date and the queue of every row."""
    for batch in batches:
        dates = pc.fill_null(batch.column("timestamp").cast(pa.date32()).cast(pa.string()), "1970-01-01")
        yield batch, dates, pc.fill_null(batch.column("queue"), NO_QUEUE)


def _file(place: Any, path: str, reads: Storage) -> ParquetFile:
    """Return the description of a written file; the file is read once for its checksum."""
    from pyarrow.parquet import read_metadata  # noqa: PLC0415 - beside its one use

    file = reads.open(path)
    try:
        size, crc = file.size(), 0
        for position in range(0, size, _PIECE_BYTES):
            crc = crc32c(file.read(min(_PIECE_BYTES, size - position), position), crc)
    finally:
        file.close()
    with os_errors():
        rows = read_metadata(path, filesystem=place.filesystem).num_rows
    return ParquetFile(path[len(place.path) :].lstrip("/"), rows, size, crc)


def _sync(paths: Sequence[str], target: str) -> None:
    """Sync files, and all directories from the target down to them."""
    directories = {str(one) for path in paths for one in Path(path).parents if str(one).startswith(target)}
    for path in paths:
        file = DiskStorage().open(path)
        try:
            write_back_whole(file)
            file.sync()
        finally:
            file.close()
    for path in [*sorted(directories, reverse=True), str(Path(target).parent)]:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
