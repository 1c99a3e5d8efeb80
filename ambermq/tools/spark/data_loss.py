"""The events that a stream cannot read any more, and the report of them.

    compacted   the horizon of the log is above the stream's offset
    replaced    the log ends below the stream's offset: another log is in the directory
    deleted     the virtual host does not exist any more

Rule 1. A stream with `failOnDataLoss` ends with an error before it skips an event. Without it the stream warns and
continues.
Rule 2. The count is that of offsets. It is an upper bound of the events: epochs leave holes.
Rule 3. With `below_horizon` set to `log` a compaction is no loss: that read asks for the live messages only.
"""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ambermq.tools.dataset.log_segments import HistoryLog
from ambermq.tools.terminal.errors import ToolError

__all__ = ["DataLoss", "HistoryWarning"]


class HistoryWarning(UserWarning):
    """The log was compacted or replaced: a read does not have all events."""


class DataLoss:
    """The check of one stream; each loss is reported once."""

    def __init__(self, *, fails: bool, reads_live_messages: bool) -> None:
        """Raise ToolError for a loss if it `fails`, else warn. `reads_live_messages` is rule 3."""
        self._fails = fails
        self._reads_live_messages = reads_live_messages
        self._reported: set[tuple[str, int]] = set()

    def check(self, logs: Sequence[HistoryLog], start: Mapping[str, Any], end: Mapping[str, Any] | None = None) -> None:
        """Report the events from the offsets `start` on, and below `end`, that are gone. Raises ToolError."""
        for vhost, first, loss in self._losses(logs, start, end or {}):
            if self._fails:
                raise ToolError(
                    "the stream has lost events",
                    where=f"virtual host {vhost!r}",
                    expected=f"events from offset {first:,} on",
                    found=loss,
                    advice="to continue without them, set failOnDataLoss to false",
                )
            if (vhost, first) not in self._reported:
                self._reported.add((vhost, first))
                warnings.warn(f"virtual host {vhost!r}: {loss}", HistoryWarning, stacklevel=3)

    def _losses(
        self, logs: Sequence[HistoryLog], start: Mapping[str, Any], end: Mapping[str, Any]
    ) -> Iterator[tuple[str, int, str]]:
        by_vhost = {log.vhost: log for log in logs}
        for vhost, offset in start.items():
            first, log = int(offset), by_vhost.get(vhost)
            if log is None:
                yield vhost, first, f"the virtual host is deleted: its events from offset {first:,} on are gone"
            elif first > log.end:
                yield vhost, first, f"another log in {log.directory}: it ends at offset {log.end:,}"
            elif not self._reads_live_messages:
                last = min(log.horizon, int(end.get(vhost, log.horizon)))
                if first < last:
                    yield vhost, first, _compacted(log, first, last)


def _compacted(log: HistoryLog, first: int, last: int) -> str:
    archived = "; the archive of the log may have them: read it as a batch" if log.manifest.archive else ""
    return f"a compaction removed the events of {last - first:,} offsets, {first:,} to {last - 1:,}{archived}"
