"""Parquet files of rows by date and queue, in bounded memory.

Rule 1. The rows of a partition are buffered, so that its row groups are not tiny if there are many queues: up to a
        number of rows, and up to a number of bytes of all partitions together. Above that the largest are written.
Rule 2. A limited number of files is open, and what they keep of their last rows has a limit of bytes too. The one that
        was not written for longest is closed; further rows of its partition come into a new file.
Rule 3. A file is whole once it is closed. After a failure the files that were open are not whole.
"""

from collections.abc import Iterable
from contextlib import suppress
from hashlib import sha256
from typing import Any, Final, NamedTuple, final
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.fs import LocalFileSystem
from pyarrow.parquet import ParquetWriter

from ambermq.tools.dataset.file_systems import Place

__all__ = ["PartitionWriter", "partition_name"]

_NAME_BYTES_MAX: Final = 200
"""A file system allows 255 bytes in a name."""
_BATCH_COLUMN_BYTES: Final = 1024
"""The memory that a column of a batch takes besides its values."""
_OPEN_FILES_MAX: Final = 128
_ROWS_A_GROUP: Final = 131_072
_BUFFERED_BYTES_MAX: Final = 64 << 20
"""The bytes of rows of all partitions that are buffered at most, besides one batch."""
_KEPT_BYTES_MAX: Final = 64 << 20
"""The bytes that open files keep of their last rows at most, besides one file."""
_BODY: Final = "body"
_PAGE_BYTES: Final = 64 << 10
_PAGE_BODIES: Final = 1
"""The bodies after which the size of a page is looked at: a page of many large ones would be in memory as a whole."""
_COPIES: Final = 3
"""An open file keeps its last page of bodies: encoded, compressed, and as it was."""


def partition_name(queue: str) -> str:
    """Return the name of a queue in the paths of its files; a hash stands for the end of a very long one."""
    name = quote(queue, safe="")
    if len(name) <= _NAME_BYTES_MAX:
        return name
    # No code of a byte is cut in the middle.
    begin = name[:_NAME_BYTES_MAX]
    begin = begin[: begin.rfind("%")] if "%" in begin[-2:] else begin
    return f"{begin}~{sha256(queue.encode()).hexdigest()[:16]}"


class _Partition(NamedTuple):
    """The directory of rows of one day and one queue, and the name of the queue in it."""

    date: str
    queue: str

    @property
    def path(self) -> str:
        return f"date={self.date}/queue_partition={partition_name(self.queue)}"


@final
class _Buffer:
    """The rows of one partition that are not written yet."""

    __slots__ = ("batches", "rows", "size")

    def __init__(self) -> None:
        self.batches: list[pa.RecordBatch] = []
        self.rows = 0
        self.size = 0


@final
class PartitionWriter:
    """A writer of record batches below one directory."""

    def __init__(self, place: Place, schema: pa.Schema, *, attempt: str, rows_buffered: int) -> None:
        """Write files with the columns of `schema`; `rows_buffered` is the limit of a partition."""
        self._place = place
        self._schema = schema
        self._attempt = attempt
        self._rows_buffered = rows_buffered
        self._files = place.filesystem or LocalFileSystem()
        self._buffers: dict[_Partition, _Buffer] = {}
        self._buffered = 0
        self._open: dict[_Partition, ParquetWriter] = {}
        """The one that was not written for longest comes first."""
        self._kept: dict[_Partition, int] = {}
        """The bytes that each open file may keep."""
        self._kept_bytes = 0
        self._counts: dict[_Partition, int] = {}
        """The files of each partition."""
        self.paths: list[str] = []
        """The files, as the file system has them."""

    def write(self, batches: Iterable[tuple[pa.RecordBatch, pa.Array, pa.Array]]) -> None:
        """Write batches, each with the date and the queue of every row; all files are whole then. Raises OSError."""
        try:
            for batch, dates, queues in batches:
                self._take(batch, dates, queues)
            while self._buffers:
                self._flush(next(iter(self._buffers)))
            while self._open:
                self._close_oldest()
        finally:
            for writer in self._open.values():
                # The failure that is raised says more.
                with suppress(Exception):
                    writer.close()

    def _take(self, batch: pa.RecordBatch, dates: pa.Array, queues: pa.Array) -> None:
        """Buffer the rows of a batch, and write what is above a limit."""
        for partition, some in _parts(batch, dates, queues):
            buffer = self._buffers.setdefault(partition, _Buffer())
            buffer.batches.append(some)
            buffer.rows += some.num_rows
            size = some.nbytes + _BATCH_COLUMN_BYTES * some.num_columns
            buffer.size += size
            self._buffered += size
            if buffer.rows >= self._rows_buffered:
                self._flush(partition)
        if self._buffered > _BUFFERED_BYTES_MAX:
            # Half of them stay, so that not every batch writes row groups of few rows.
            for partition in sorted(self._buffers, key=lambda one: self._buffers[one].size, reverse=True):
                if self._buffered <= _BUFFERED_BYTES_MAX // 2:
                    break
                self._flush(partition)

    def _flush(self, partition: _Partition) -> None:
        """Write the rows of a partition that are buffered."""
        buffer = self._buffers.pop(partition)
        self._buffered -= buffer.size
        kept = _COPIES * (_PAGE_BYTES + _PAGE_BODIES * _largest_body(buffer.batches))
        self._kept_bytes += kept - self._kept.get(partition, 0)
        self._kept[partition] = kept
        writer = self._open.pop(partition, None)
        while len(self._open) >= _OPEN_FILES_MAX or (self._open and self._kept_bytes > _KEPT_BYTES_MAX):
            self._close_oldest()
        writer = writer or self._opened(partition)
        self._open[partition] = writer
        writer.write_table(pa.Table.from_batches(buffer.batches, self._schema), row_group_size=_ROWS_A_GROUP)

    def _close_oldest(self) -> None:
        """Close the open file that was not written for longest."""
        partition = next(iter(self._open))
        self._open.pop(partition).close()
        self._kept_bytes -= self._kept.pop(partition)

    def _opened(self, partition: _Partition) -> ParquetWriter:
        number = self._counts.get(partition, 0)
        self._counts[partition] = number + 1
        directory = f"{self._place.path}/{partition.path}"
        if self._place.makes_directories and not number:
            self._files.create_dir(directory, recursive=True)
        path = f"{directory}/{self._attempt}-{number}.parquet"
        self.paths.append(path)
        options: dict[str, Any] = {"compression": "zstd", "write_page_checksum": True}
        if _BODY in self._schema.names:
            options |= {"data_page_size": _PAGE_BYTES, "write_batch_size": _PAGE_BODIES}
            # A dictionary of bodies, of which few are alike, would be one more copy.
            options["use_dictionary"] = [one for one in self._schema.names if one != _BODY]
        return ParquetWriter(path, self._schema, filesystem=self._files, **options)


def _parts(batch: pa.RecordBatch, dates: pa.Array, queues: pa.Array) -> Iterable[tuple[_Partition, pa.RecordBatch]]:
    """Yield the rows of a batch by partition; those of each are in memory of their own."""
    coded = [column.dictionary_encode() for column in (dates, queues)]
    number = pc.add(pc.multiply(pc.cast(coded[0].indices, pa.int64()), len(coded[1].dictionary)), coded[1].indices)
    found = number.dictionary_encode()
    for one, value in enumerate(found.dictionary.to_pylist()):
        date, queue = divmod(value, len(coded[1].dictionary))
        partition = _Partition(coded[0].dictionary[date].as_py(), coded[1].dictionary[queue].as_py())
        if len(found.dictionary) == 1:
            yield partition, batch
        else:
            yield partition, batch.take(pc.indices_nonzero(pc.equal(found.indices, one)))


def _largest_body(batches: Iterable[pa.RecordBatch]) -> int:
    """Return the bytes of the largest body of batches; 0 without bodies."""
    columns = [one.column(_BODY) for one in batches if _BODY in one.schema.names]
    return max((pc.max(pc.binary_length(one)).as_py() or 0 for one in columns), default=0)
