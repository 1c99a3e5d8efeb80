"""The Data Source `ambermq`: `spark.read.format("ambermq").load(DIR)` is a broker's history as a DataFrame.

    option          meaning                                                                       default
    path            data directory, a path or a URL that fsspec reaches; `load`'s argument
    vhost           virtual host, `*` for all of them                                             default
    damaged         `error`, or `rows`: a damaged range is a row of the type `unreadable`         error
    below_horizon   the source below the horizon: `archive`, the archived events; `nothing`;       archive; of a
                    `log`, the live messages that the log still holds                              stream nothing
    since, until    only events from a moment on, or before one: an offset, a time, `10m ago`     all
    filters         `spark`, or `push`: filters skip segments and records (rule 3)                spark
    events_max      of a stream: the maximum number of records in a micro-batch                   no limit
    failOnDataLoss  of a stream: `true` ends it if unread events are gone, `false` warns          true

Rule 1. A partition is a segment, or a file of an archive. Tasks open the files themselves, by name.
Rule 2. Spark does not prune columns: without a schema all columns but the contents of messages are built, with
        `.schema("offset long, queue string")` only those.
Rule 3. Pushed filters on offset, timestamp, queue and type skip segments, batches and records; Spark applies them
        again. Spark 4.3.0 keeps the last pushed filters for all uses of one loaded DataFrame, so a second use with
        other filters misses rows. So filters are pushed only on request, for a DataFrame that is used once;
        spark.sql.python.filterPushdown.enabled must be on. `since` and `until` are always safe.
Rule 4. Everything that goes to tasks is data; the tasks must be able to import the package.
"""

import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, Filter, InputPartition
from pyspark.sql.types import StructType

from ambermq.log.manifest.vhost_manifest import DEFAULT_VHOST
from ambermq.tools.dataset.archive_reader import ArchivePart, archive_parts, known_from, may_hold
from ambermq.tools.dataset.arrow_table import Selection, selection_between
from ambermq.tools.dataset.file_systems import is_remote, place_of
from ambermq.tools.dataset.log_segments import HistoryLog, HistorySegment, limited, open_histories
from ambermq.tools.dataset.schema import CONTENT_COLUMNS, EVENT_COLUMNS, columns_named, schema_of
from ambermq.tools.dataset.segment_selection import possible_segments
from ambermq.tools.spark.data_loss import HistoryWarning
from ambermq.tools.spark.filters import selection_of
from ambermq.tools.spark.part_reader import PlannedLog, SourceOptions, read_part
from ambermq.tools.spark.stream_source import EventStreamReader
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode

__all__ = [
    "OPTION_NAMES",
    "EventReader",
    "EventSource",
    "HistoryPartition",
    "HistoryWarning",
    "PushingReader",
    "register",
]

_NAME: Final = "ambermq"
_BELOW_HORIZON: Final = ("archive", "nothing", "log")
OPTION_NAMES: Final = (
    "path",
    "vhost",
    "since",
    "until",
    "below_horizon",
    "damaged",
    "filters",
    "events_max",
    "failOnDataLoss",
)
"""The options of a read."""
_CHOICES: Final = {"damaged": ("error", "rows"), "below_horizon": _BELOW_HORIZON, "filters": ("spark", "push")}


class HistoryPartition(InputPartition):
    """One task's share of a read: a segment, or a file of an archive."""

    def __init__(self, log: int, part: HistorySegment | ArchivePart) -> None:
        """Read `part`, of the log of this number."""
        super().__init__(log)
        self.log = log
        self.part = part


class EventSource(DataSource):
    """The events of a data directory; see the module."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return _NAME

    def schema(self) -> StructType:
        """Return the columns of a read without a schema."""
        return _spark_schema(tuple(EVENT_COLUMNS))

    @staticmethod
    def columns() -> StructType:
        """Return all columns that a read can request."""
        return _spark_schema((*EVENT_COLUMNS, *CONTENT_COLUMNS))

    def reader(self, schema: StructType) -> "EventReader":
        """Return the reader of a batch query for these columns."""
        options = _options_of(self.options)
        kind = PushingReader if options.filters == "push" else EventReader
        return kind(options, _columns_of(schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """Return the reader of a streaming query for these columns."""
        # A stream reads no archives.
        return EventStreamReader(_options_of({"below_horizon": "nothing", **self.options}), _columns_of(schema))


class EventReader(DataSourceReader):
    """The reader of a batch query: it plans the read in the driver, and reads a part in each task."""

    def __init__(self, options: SourceOptions, columns: tuple[str, ...]) -> None:
        """Plan a read of these columns of the present log. Raises ToolError, LogError."""
        self._options = options
        self._columns = columns
        self._selection = options.selection
        # Spark sends the reader to the tasks before it calls `partitions`, so the plan must be ready here.
        with open_histories(options.directory, options.vhost) as logs:
            self._logs = [_planned(log, options) for log in logs]

    def partitions(self) -> Sequence[InputPartition]:
        """Return the parts of the read that may hold events of the selection."""
        return [
            HistoryPartition(number, part)
            for number, log in enumerate(self._logs)
            for part in _possible_parts(log, self._selection)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the events of a part. Raises DamageError, ToolError."""
        if not isinstance(partition, HistoryPartition):
            return iter(())  # without partitions Spark calls `read` once all the same
        return read_part(self._logs[partition.log], partition.part, self._columns, self._selection, self._options)


def _planned(log: HistoryLog, options: SourceOptions) -> PlannedLog:
    horizon, below = log.horizon, options.below_horizon
    begin = known_from(log) if below == "archive" else horizon
    if horizon and below == "log":
        _warn(log, f"below offset {horizon} the log holds only some messages, and no other events")
    elif begin:
        _warn(log, f"history begins at offset {begin}")
    first = 0 if below == "log" else horizon
    parts = [limited(one, first=first, end=log.end) for one in log.segments if one.next_offset > first]
    archived = archive_parts(log) if below == "archive" else ()
    return PlannedLog(log.segments, log.known(), (*archived, *parts))


def _warn(log: HistoryLog, what: str) -> None:
    warnings.warn(f"{log.directory} was compacted: {what}", HistoryWarning, stacklevel=4)


def _possible_parts(log: PlannedLog, selection: Selection) -> list[HistorySegment | ArchivePart]:
    archived = [one for one in log.parts if isinstance(one, ArchivePart) and may_hold(one, selection)]
    segments = [one for one in log.parts if isinstance(one, HistorySegment)]
    return [*archived, *possible_segments(segments, selection)]


class PushingReader(EventReader):
    """A reader with pushed filters. Spark refuses such a reader if its filter push-down is off."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        """Narrow the selection by the filters, and return all of them: Spark applies them again."""
        self._selection = selection_of(filters, self._selection)
        return filters


def register(spark: SparkSession) -> None:
    """Register the format `ambermq` with a session."""
    spark.dataSource.register(EventSource)


def _options_of(options: Any) -> SourceOptions:
    """Return the options of a query; ToolError if one is unknown or wrong."""
    given = {str(name).lower(): str(value) for name, value in dict(options).items()}
    path = given.pop("path", "")
    if not path:
        raise _wrong("path", "the data directory of a broker", "none")
    if not is_remote(path):
        path = place_of(path).path
    values: dict[str, Any] = {}
    for name, allowed in _CHOICES.items():
        values[name] = given.pop(name, allowed[0])
        if values[name] not in allowed:
            raise _wrong(name, " or ".join(allowed), values[name])
    events_max = given.pop("events_max", "0")
    if not events_max.isdigit():
        raise _wrong("events_max", "a number", events_max)
    fails = given.pop("failondataloss", "true").lower()
    if fails not in {"true", "false"}:
        raise _wrong("failOnDataLoss", "true or false", fails)
    vhost = given.pop("vhost", DEFAULT_VHOST)
    selection = selection_between(given.pop("since", ""), given.pop("until", ""), now_us=time.time_ns() // 1000)
    if given:
        raise _wrong(next(iter(given)), ", ".join(OPTION_NAMES), "an unknown option")
    return SourceOptions(
        path, vhost, selection=selection, events_max=int(events_max), fails_on_data_loss=fails == "true", **values
    )


def _wrong(name: str, expected: str, found: str) -> ToolError:
    return ToolError("wrong option", where=f"ambermq: {name}", expected=expected, found=found, code=ExitCode.USAGE)


def _spark_schema(columns: tuple[str, ...]) -> StructType:
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415 - slow to import, seldom needed

    schema: StructType = from_arrow_schema(schema_of(columns))
    return schema


def _columns_of(schema: StructType) -> tuple[str, ...]:
    """Return the columns of a schema; ToolError if one is unknown or has another type."""
    from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415 - as in _spark_schema

    columns = columns_named(schema.fieldNames())
    fields, known = to_arrow_schema(schema, timezone="UTC"), EVENT_COLUMNS | CONTENT_COLUMNS
    for field in fields:
        if field.type != known[field.name]:
            raise ToolError(
                "wrong type of a column of history",
                where=field.name,
                expected=str(known[field.name]),
                found=str(field.type),
                code=ExitCode.USAGE,
            )
    return columns
