"""`readStream` of the Data Source `ambermq`: events as they become durable, in micro-batches.

Rule 1. An offset of the stream has, for each virtual host, the offset in the log below which all events were read.
Spark writes it to its checkpoint, so a query reads each event once, also after a restart.
Rule 2. `events_max` limits the records of a micro-batch; a record that settles a thousand messages is one record.
Without it a micro-batch reads all events up to the durable end.
Rule 3. With the trigger availableNow the query ends at the durable end at its start.
Rule 4. `since` is the beginning of a new query only: a restarted one continues with its next event, whatever an age
means by then. `until` ends a stream at the first event at or after it.
Rule 5. A stream never skips an unread event without a word: data_loss.py raises or warns. Then it continues at the
horizon.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from ambermq.tools.dataset.arrow_table import EVERYTHING
from ambermq.tools.dataset.log_segments import HistoryLog, HistorySegment, limited, open_histories, open_segment
from ambermq.tools.dataset.segment_selection import offset_from
from ambermq.tools.spark.data_loss import DataLoss
from ambermq.tools.spark.part_reader import PlannedLog, SourceOptions, read_part
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode

__all__ = ["EventStreamReader"]

_Ends = dict[str, Any]
"""By virtual host: the offset below which all events were read."""


class StreamPartition(InputPartition):
    """The share of one task in a micro-batch: a part of a segment."""

    def __init__(self, log: PlannedLog, segment: HistorySegment) -> None:
        """Read `segment`, of this log."""
        super().__init__(segment.base_offset)
        self.log = log
        self.segment = segment


class EventStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The reader of a streaming query over the logs of a data directory."""

    def __init__(self, options: SourceOptions, columns: tuple[str, ...]) -> None:
        """Read these columns; ToolError if the options are not valid for a stream."""
        if options.below_horizon == "archive":
            raise ToolError(
                "a stream does not read archives",
                where="ambermq: below_horizon",
                expected="log or nothing",
                advice="read the archive as a batch first, and the stream from the horizon on",
                code=ExitCode.USAGE,
            )
        self._options = options
        self._columns = columns
        self._target: _Ends | None = None
        self._loss = DataLoss(fails=options.fails_on_data_loss, reads_live_messages=options.below_horizon == "log")

    def initialOffset(self) -> _Ends:  # noqa: N802 - Spark's name
        """Return the offset at which a new query begins."""
        with self._opened() as logs:
            return {log.vhost: self._begin(log) for log in logs}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """Return the limit that the options set."""
        return ReadMaxRows(self._options.events_max) if self._options.events_max else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Set the present end of the logs as the end of the query."""
        self._target = self._ends()

    def latestOffset(self, start: _Ends, limit: ReadLimit) -> _Ends:  # noqa: N802 - Spark's name
        """Return the end of the next micro-batch: the durable end, or the offset that reaches `limit`."""
        left = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        ends = {}
        with self._opened() as logs:
            self._loss.check(logs, start)
            for log in logs:
                first = self._first(log, int(start.get(log.vhost, 0)))
                end = self._last(log, first)
                ends[log.vhost] = max(first, end)
                if left is not None and first < end:
                    ends[log.vhost], left = _limited_end(log, first, end, left)
        return ends

    def reportLatestOffset(self) -> _Ends:  # noqa: N802 - Spark's name
        """Return the present end of the logs."""
        return self._ends()

    def partitions(self, start: _Ends, end: _Ends) -> Sequence[InputPartition]:
        """Return the parts of the segments between two offsets of the stream."""
        parts: list[InputPartition] = []
        with self._opened() as logs:
            self._loss.check(logs, start, end)
            for log in logs:
                first, last = self._first(log, int(start.get(log.vhost, 0))), int(end.get(log.vhost, 0))
                first = max(first, self._options.selection.first)
                planned = PlannedLog(log.segments, log.known(), ())
                chosen = (one for one in log.segments if one.next_offset > first and one.base_offset < last)
                parts += [StreamPartition(planned, limited(one, first=first, end=last)) for one in chosen]
        return parts

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Return the events of a part. Raises DamageError, ToolError."""
        assert isinstance(partition, StreamPartition)
        return read_part(partition.log, partition.segment, self._columns, EVERYTHING, self._options)

    def _begin(self, log: HistoryLog) -> int:
        """Return the offset at which a new query begins."""
        selection, first = self._options.selection, self._first(log, 0)
        return min(max(first, selection.first, offset_from(log, selection.begin_us, first=first)), log.end)

    def _last(self, log: HistoryLog, first: int) -> int:
        """Return the offset at which the query ends for now: the end of the log, of availableNow, or `until`."""
        selection = self._options.selection
        end = min(log.end, selection.end)
        if self._target is not None:
            end = min(end, int(self._target.get(log.vhost, 0)))
        return (
            end if selection.end_us == EVERYTHING.end_us else min(end, offset_from(log, selection.end_us, first=first))
        )

    def _first(self, log: HistoryLog, offset: int) -> int:
        """Return the offset to continue at: it skips compacted events, unless `below_horizon` is `log`.

        A log that ends below `offset` is another one, and is read from its beginning.
        """
        offset = 0 if offset > log.end else offset
        return offset if self._options.below_horizon == "log" else max(offset, log.horizon)

    def _opened(self) -> Any:
        return open_histories(self._options.directory, self._options.vhost)

    def _ends(self) -> _Ends:
        with self._opened() as logs:
            return {log.vhost: log.end for log in logs}


def _limited_end(log: HistoryLog, first: int, end: int, left: int) -> tuple[int, int]:
    """Return the end of at most `left` records from `first` on, and the rest of the limit."""
    for segment in log.segments:
        if segment.next_offset <= first:
            continue
        part = open_segment(segment)
        try:
            walk = part.walk(segment.start)
            for _ in walk:
                for delta, *_columns in walk.batch().rows() if walk.next_offset() > first else ():
                    assert walk.header is not None
                    offset = walk.header.base_offset + delta
                    if offset >= end or not left:
                        return min(offset, end), left
                    left -= offset >= first
        finally:
            part.file.close()
    return end, left
