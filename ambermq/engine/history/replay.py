"""Events of a running log read again from its files, in another thread, a piece at a time.

Rule 1. Only what is durable is read; what is returned names the offset from which to go on.
Rule 2. What was compacted while somebody reads is refused from then on: it would be half of what happened.
Rule 3. A piece has an end: at about `events_max` events or `bytes_max` bytes of words, for no batch is cut.
"""

from typing import final

from msgspec.structs import replace

from ambermq.engine.errors import EngineError
from ambermq.engine.events import Event, Published
from ambermq.engine.history.past import PastError, PastKind
from ambermq.engine.history.timestamps import iso_time
from ambermq.engine.model.entry_word import WORD_BYTES, total_size
from ambermq.engine.records.event_fields import next_after
from ambermq.engine.records.reader import events_of
from ambermq.log.errors import LogError
from ambermq.log.manifest.manifest import Horizon
from ambermq.log.read.tail_reader import TailReader

__all__ = ["Replay"]


@final
class Replay:
    """Where to read on; made by the loop, read by another thread."""

    __slots__ = ("_horizon", "_stretch")

    def __init__(self, stretch: TailReader, horizon: Horizon | None) -> None:
        """Read `stretch`; what lies before `horizon` is refused."""
        self._stretch = stretch
        self._horizon = horizon

    def read(self, *, events_max: int, bytes_max: int) -> tuple[list[Event], int]:
        """Return events from the first offset on, and the offset after the last that was looked at.

        A run that holds the first offset begins there. Raises PastError where the events are gone, and another
        EngineError where the log cannot be read.
        """
        horizon = self._horizon
        if horizon is not None and self._stretch.first < horizon.offset:
            message = f"offset {self._stretch.first} was compacted: the log begins at offset {horizon.offset}"
            raise PastError(PastKind.BEFORE_HORIZON, f"{message} ({iso_time(horizon.time_us)})")
        try:
            return _replay(self._stretch, events_max, bytes_max)
        except (LogError, OSError) as error:
            raise EngineError(f"the log cannot be read: {error}") from error


def _replay(stretch: TailReader, events_max: int, bytes_max: int) -> tuple[list[Event], int]:
    events: list[Event] = []
    following, size = stretch.first, 0
    for batch in stretch.batches():
        for event in events_of(batch):
            end = next_after(event)
            if end > stretch.first:
                events.append(_from(event, stretch.first))
                size += len(getattr(event, "words", b""))
            following = max(following, end)
        if len(events) >= events_max or size >= bytes_max:
            return events, following
    # Nothing that begins before its end is left of a stretch in which nothing was found.
    return events, following if following > stretch.first else stretch.end


def _from(event: Event, first: int) -> Event:
    """Return the part of an event from an offset on."""
    if type(event) is not Published or event.offset >= first:
        return event
    words = event.words[(first - event.offset) * WORD_BYTES :]
    return replace(event, offset=first, words=words, size=total_size(words))
