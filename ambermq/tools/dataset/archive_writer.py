"""Write a range of a log's events into Parquet files, before a compaction removes them.

Rule 1. An archive is whole and durable before the manifest names it. The edit that names it also moves the horizon, so
every event is either in the log or in the archive.
Rule 2. The same range can be archived again at any time: the files of each attempt have names of their own.
Rule 3. An archive has all columns, bodies too: the log no longer has these events.
"""

import secrets
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa

from ambermq.log.manifest.vhost_manifest import DEFAULT_VHOST
from ambermq.log.storage.interface import Storage
from ambermq.tools.dataset.archive_reader import Archive, store_archive
from ambermq.tools.dataset.arrow_table import Selection, event_columns
from ambermq.tools.dataset.file_systems import is_remote, place_of
from ambermq.tools.dataset.log_segments import HistoryLog, open_history
from ambermq.tools.dataset.parquet_files import write_events
from ambermq.tools.dataset.schema import CONTENT_COLUMNS, EVENT_COLUMNS

__all__ = ["ALL_COLUMNS", "write_archive"]

ALL_COLUMNS: Final = (*EVENT_COLUMNS, *CONTENT_COLUMNS)
"""The columns of an archive."""

_VERSION: Final = 1

Progress = Callable[[int, int], Any]
"""progress(done, total): called with the bytes of segments read until now, and all bytes."""


def write_archive(
    directory: str,
    first_offset: int,
    last_offset: int,
    target: str,
    *,
    vhost: str = DEFAULT_VHOST,
    attempt: str = "",
    columns: Sequence[str] = ALL_COLUMNS,
    storage: Storage | None = None,
    progress: Progress = lambda _done, _total: None,
) -> tuple[str, Archive]:
    """Write the events from `first_offset` to `last_offset`, both included, of the log in `directory` below `target`.

    `target` is a path or a URL. The log and the written files are read from `storage`, which may limit the rate.
    `attempt` is the prefix of all file names; if it is empty, a random one is used.
    Returns the path or URL for Manifest.archive, and the archive. Raises DamageError, LogError, OSError.
    """
    attempt = attempt or f"{first_offset:012x}-{secrets.token_hex(4)}"
    target = target if is_remote(target) else place_of(target).path
    with open_history(directory, vhost, storage=storage) as log:
        rows = _rows(log, Selection(first=first_offset, end=last_offset + 1), columns, progress, storage)
        files = write_events(rows, columns, target, attempt=attempt, storage=storage)
        archive = Archive(
            _VERSION, log.manifest.log_id.hex(), vhost, first_offset, last_offset, tuple(columns), tuple(files)
        )
    return store_archive(archive, target, attempt=attempt), archive


def _rows(
    log: HistoryLog, selection: Selection, columns: Sequence[str], progress: Progress, storage: Storage | None
) -> Iterator[pa.RecordBatch]:
    chosen = [one for one in log.segments if one.next_offset > selection.first and one.base_offset < selection.end]
    known, done, total = log.known(storage), 0, sum(one.size for one in chosen)
    for segment in chosen:
        yield from event_columns(
            segment, columns, segments=log.segments, known=known, selection=selection, storage=storage
        )
        done += segment.size
        progress(done, total)
