"""Events of a running log read from its files in another thread, a piece at a time.

Rule 1. Only durable events are read. Each read returns the offset for the next one.
Rule 2. If a compaction removes events while a client reads, the next read fails: a part of the history would be wrong.
Rule 3. A piece has about `events_max` events or `bytes_max` bytes of words at most; no batch is cut.
"""

from typing import final

from msgspec.structs import replace

from ambermq.engine.entries.entry_word import WORD_BYTES, total_size
from ambermq.engine.errors import EngineError
from ambermq.engine.events import Event, Published
from ambermq.engine.history.past import PastError, PastKind
from ambermq.engine.history.timestamps import iso_time
from ambermq.engine.records.event_fields import next_after
from ambermq.engine.records.reader import events_of
from ambermq.log.errors import LogError
from ambermq.log.manifest.manifest import Horizon
from ambermq.log.read.tail_reader import TailReader

__all__ = ["Replay"]


@final
class Replay:
    """A read of the log from an offset; the loop creates it, another thread runs it."""

    __slots__ = ("_horizon", "_tail")

    def __init__(self, tail: TailReader, horizon: Horizon | None) -> None:
        """Read `tail`; a start below `horizon` fails."""
        self._tail = tail
        self._horizon = horizon

    def read(self, *, events_max: int, bytes_max: int) -> tuple[list[Event], int]:
        """Return events from the first offset on, and the offset for the next read.

        A run that holds the first offset is cut there. Raises PastError if the events were compacted, and another
        EngineError if the log cannot be read.
        """
        horizon = self._horizon
        if horizon is not None and self._tail.first < horizon.offset:
            message = f"offset {self._tail.first} was compacted: the log begins at offset {horizon.offset}"
            raise PastError(PastKind.BEFORE_HORIZON, f"{message} ({iso_time(horizon.time_us)})")
        try:
            return _replay(self._tail, events_max, bytes_max)
        except (LogError, OSError) as error:
            raise EngineError(f"the log cannot be read: {error}") from error


def _replay(tail: TailReader, events_max: int, bytes_max: int) -> tuple[list[Event], int]:
    events: list[Event] = []
    following, size = tail.first, 0
    for batch in tail.batches():
        for event in events_of(batch):
            end = next_after(event)
            if end > tail.first:
                events.append(_cut(event, tail.first))
                size += len(getattr(event, "words", b""))
            following = max(following, end)
        if len(events) >= events_max or size >= bytes_max:
            return events, following
    # Without an event after `first`, the whole tail was read: continue at its end.
    return events, following if following > tail.first else tail.end


def _cut(event: Event, first: int) -> Event:
    """Return the part of an event from an offset on."""
    if type(event) is not Published or event.offset >= first:
        return event
    words = event.words[(first - event.offset) * WORD_BYTES :]
    return replace(event, offset=first, words=words, size=total_size(words))
