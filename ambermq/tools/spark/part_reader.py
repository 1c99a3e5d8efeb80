"""One part of a read of history: a segment of a log, or a file of its archive, as columns.

Rule: batch queries and streams use this module in the tasks, so all values are data that Spark copies.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from ambermq.log.manifest.vhost_manifest import DEFAULT_VHOST
from ambermq.tools.dataset.archive_reader import ArchivePart, archive_columns
from ambermq.tools.dataset.arrow_table import EVERYTHING, Selection, event_columns
from ambermq.tools.dataset.log_segments import HistorySegment, Known

__all__ = ["PlannedLog", "SourceOptions", "read_part"]


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """The options of a read, without columns and filters."""

    directory: str
    """The data directory, absolute or a URL."""
    vhost: str = DEFAULT_VHOST
    """The virtual host, `*` for all."""
    damaged: str = "error"
    """One of `error` and `rows`."""
    below_horizon: str = "archive"
    """One of `archive`, `nothing` and `log`."""
    filters: str = "spark"
    """One of `spark` and `push`."""
    selection: Selection = EVERYTHING
    """The events between two moments."""
    events_max: int = 0
    """The maximum number of records in a micro-batch, 0 for no limit."""
    fails_on_data_loss: bool = True
    """Whether a stream ends with an error if events that it has not read are gone."""


@dataclass(frozen=True, slots=True)
class PlannedLog:
    """The plan of a read for one log, in the driver and in every task."""

    segments: tuple[HistorySegment, ...]
    """All segments, for names and the pieces of messages."""
    known: Known
    """The names whose events were compacted."""
    parts: tuple[HistorySegment | ArchivePart, ...]
    """The parts to read, one for each task."""


def read_part(
    log: PlannedLog,
    part: HistorySegment | ArchivePart,
    columns: tuple[str, ...],
    selection: Selection,
    options: SourceOptions,
) -> Iterator[pa.RecordBatch]:
    """Return the events of a segment or of an archive's file, as record batches. Raises DamageError, ToolError."""
    if isinstance(part, ArchivePart):
        return archive_columns(part, columns, selection)
    return event_columns(
        part,
        columns,
        segments=log.segments,
        known=log.known,
        selection=selection,
        damaged_rows=options.damaged == "rows",
    )
