"""The past of a log at any moment, with or without a running broker.

    open_past(directory)   opens the log; the files that the manifest names now stay readable until `close`
    mode()                 the mode of the virtual host
    offset_at(time)        resolves a time to an offset
    state_at(offset)       the newest snapshot at or before the offset, then a fold
    events, event_at       the events
    body(offset)           the message, found by the index of its segment

Rule 1. The state at X is the state after the event at X. A published run counts as one event for each message, so X can
cut it. Offsets between two epochs name no event: the last event before them counts.
Rule 2. No moment is rounded: one before the horizon or in the future is a PastError that names the valid moments.
Rule 3. Beside a running broker the past ends at its durable end.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from functools import cached_property
from typing import Final, Self

from msgspec.structs import replace

from ambermq.engine.entries.entry_word import WORD_BYTES, total_size
from ambermq.engine.errors import EngineError
from ambermq.engine.events import Event, Published, Started
from ambermq.engine.fold.apply import apply
from ambermq.engine.history.timestamps import iso_time
from ambermq.engine.model.state import EMPTY_STATE, State
from ambermq.engine.model.vhost_mode import VhostMode
from ambermq.engine.records.event_fields import next_after
from ambermq.engine.records.reader import events_of
from ambermq.engine.snapshots.files import newest_snapshot
from ambermq.log.buffer import Buffer
from ambermq.log.config import LogConfig
from ambermq.log.format.record import Record
from ambermq.log.manifest.manifest import ClockStep, Horizon
from ambermq.log.read.body_reads import DAMAGED
from ambermq.log.read.log_reader import LogReader, ReadableBatch, open_reader
from ambermq.log.storage.interface import Storage

__all__ = ["Past", "PastError", "PastKind", "Progress", "open_past"]

Progress = Callable[[int, int], None]
"""progress(done, total): called with offsets folded until now and all to fold; offsets between epochs count too."""

_PROGRESS_OFFSETS: Final = 1 << 16


class PastKind(StrEnum):
    """Why a moment is not valid."""

    BEFORE_HORIZON = "before-horizon"
    IN_FUTURE = "in-future"
    NO_SUCH_OFFSET = "no-such-offset"


class PastError(EngineError):
    """The log does not answer for a moment; the message names the moments that it answers for."""

    def __init__(self, kind: PastKind, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class Past:
    """The history of one log up to the time at which it was opened; the caller closes it."""

    def __init__(self, reader: LogReader, *, now_us: int) -> None:
        """Own `reader`; times after `now_us` are in the future. Use `open_past`."""
        self.reader = reader
        """The log, for look-ups by segment."""
        self.now_us = now_us
        """The time at which it was opened."""
        self.horizon = reader.manifest.horizon or Horizon(0, 0)
        """The offset at which history begins; below it the log has only live messages."""

    @property
    def end(self) -> int:
        """The first offset that it does not answer for."""
        return self.reader.end

    @property
    def clock_step(self) -> ClockStep | None:
        """The newest step of the clock; None if times do not fall along the log."""
        return self.reader.manifest.clock_step

    @property
    def is_archived(self) -> bool:
        """Whether an archive has events from below the horizon, all of them or some."""
        return bool(self.reader.manifest.archive)

    @cached_property
    def last_offset(self) -> int | None:
        """The offset of the last event, None if the log has none."""
        return self.reader.floor(self.end - 1)

    def offset_at(self, time_us: int) -> int:
        """Return the greatest offset whose event's time is at or before `time_us`. Raises PastError, DamageError."""
        if time_us > self.now_us and time_us > self._time_of_end():
            raise PastError(
                PastKind.IN_FUTURE, f"{iso_time(time_us)} lies in the future: now it is {iso_time(self.now_us)}"
            )
        offset = self.reader.offset_at(time_us)
        if offset is not None and offset >= self.horizon.offset:
            return offset
        if self.horizon.offset and time_us >= self.horizon.time_us:
            return self.horizon.offset - 1
        raise self._before_horizon(iso_time(time_us))

    def time_at(self, offset: int) -> int:
        """Return the time of the last event at or before `offset`, microseconds. Raises PastError, DamageError."""
        self._check(offset)
        floor = self.reader.floor(offset)
        if floor is None or floor < self.horizon.offset:
            return self.horizon.time_us
        found = self.reader.find(floor)
        assert found is not None
        return found[1].timestamp_us

    def mode(self) -> VhostMode:
        """Return the mode of the virtual host, which each start event holds. Raises as `state_at`."""
        if self.horizon.offset:
            return self.state_at(self.horizon.offset - 1).mode
        starts = (event.mode for event in self._events(0, self.end - 1) if type(event) is Started)
        return next(starts, EMPTY_STATE.mode)

    @cached_property
    def first_time_us(self) -> int:
        """The time from which every moment is valid; 0 if the log is empty."""
        if self.horizon.offset:
            return self.horizon.time_us
        first = None if self.last_offset is None else next(self._events(0, self.last_offset), None)
        return 0 if first is None else first.time_us

    def published_us(self, offset: int) -> int:
        """Return the time at which a message was published: a live one, or one above the horizon. Raises as `body`."""
        return self._found(offset)[1].timestamp_us

    def state_at(
        self, offset: int, progress: Progress | None = None, *, progress_offsets: int = _PROGRESS_OFFSETS
    ) -> State:
        """Return the state after the event at `offset`; call `progress` about every `progress_offsets` offsets.

        Raises PastError, DamageError, and the exceptions of `progress`.
        """
        self._check(offset)
        state, start = self._base(offset)
        reported = start
        for event in self._events(start, offset):
            state = apply(state, event)
            if progress is not None and event.offset - reported >= progress_offsets:
                reported = event.offset
                progress(reported - start, offset + 1 - start)
        return state

    def events(self, first: int, last: int) -> Iterator[Event]:
        """Yield the events from offset `first` to `last`, both included; runs are cut there. Raises as `state_at`."""
        if first <= last:
            self._check(last)
            if first < self.horizon.offset:
                raise self._before_horizon(f"offset {first}")
        return self._events(first, last)

    def event_at(self, offset: int) -> Event | None:
        """Return the event at `offset`, a run cut to the one message; None if the log has none there.

        Below the horizon only the publish events of live messages are found. Raises DamageError.
        """
        readable = None if offset >= self.end else self.reader.find_batch(offset)
        if readable is not None:
            for event in events_of(readable.batch):
                if event.offset <= offset < next_after(event):
                    return _cut(event, offset, offset)
        return None

    def body(self, offset: int, chunks: Sequence[int] = ()) -> Buffer:
        """Return a message by the offsets of its publish record and of its chunks; DAMAGED if its bytes are damaged.

        Raises PastError if there is no such record, and DamageError if the log is damaged there.
        """
        pieces = [self._piece(piece) for piece in (*chunks, offset)]
        if any(piece is DAMAGED for piece in pieces):
            return DAMAGED
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def extend(self) -> bool:
        """Extend the past to the present end of the log; return False if the log must be opened again for that."""
        self.__dict__.pop("last_offset", None)
        return self.reader.extend()

    def close(self) -> None:
        """Close the log and unpin its files."""
        self.reader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _piece(self, offset: int) -> Buffer:
        batch, record = self._found(offset)
        return batch.body(record)

    def _found(self, offset: int) -> tuple[ReadableBatch, Record]:
        found = None if offset >= self.end else self.reader.find(offset)
        if found is None:
            raise PastError(PastKind.NO_SUCH_OFFSET, f"there is no record at offset {offset}: {self._extent()}")
        return found

    def _events(self, first: int, last: int) -> Iterator[Event]:
        for readable in self.reader.batches(first):
            if readable.batch.header.base_offset > last:
                return
            for event in events_of(readable.batch):
                if next_after(event) > first and event.offset <= last:
                    yield _cut(event, first, last)

    def _base(self, offset: int) -> tuple[State, int]:
        """Return the newest snapshot's state at or before `offset`, and the offset from which to fold.

        A damaged snapshot is skipped if an older one and a longer fold give the same state.
        """
        reader, horizon = self.reader, self.horizon.offset
        found = newest_snapshot(reader.storage, reader.directory, reader.manifest, end_max=offset + 1)
        if found.snapshot is not None and found.snapshot.end in range(min(horizon, offset + 1), offset + 2):
            assert found.state is not None
            return found.state, found.snapshot.end
        if horizon:
            raise found.faults[0] if found.faults else self._before_horizon(f"offset {offset}")
        return EMPTY_STATE, 0

    def _check(self, offset: int) -> None:
        if offset >= self.end:
            raise PastError(PastKind.IN_FUTURE, f"offset {offset} lies in the future: {self._extent()}")
        if offset < 0:
            raise PastError(PastKind.NO_SUCH_OFFSET, f"there is no offset {offset}: {self._extent()}")
        if offset < self.horizon.offset - 1 and offset + 1 not in self._snapshot_ends():
            raise self._before_horizon(f"offset {offset}")

    def _snapshot_ends(self) -> list[int]:
        return [snapshot.end for snapshot in self.reader.manifest.snapshots]

    def _before_horizon(self, moment: str) -> PastError:
        points = [f"offset {end - 1}" for end in self._snapshot_ends() if end < self.horizon.offset]
        also = f", and it has snapshots at {', '.join(points)}" if points else ""
        archived = "; earlier events are in the archive: run `ambermq log query`" if self.is_archived else ""
        message = f"{moment} lies before the log's history: {self._extent()}{also}{archived}"
        return PastError(PastKind.BEFORE_HORIZON, message)

    def _time_of_end(self) -> int:
        found = None if self.last_offset is None else self.reader.find(self.last_offset)
        return 0 if found is None else found[1].timestamp_us

    def _extent(self) -> str:
        """Return a text with the valid moments."""
        begin, begin_us = self.horizon.offset, self.first_time_us
        if begin and (self.last_offset is None or self.last_offset < begin):
            return f"the log begins after offset {begin - 1} ({iso_time(begin_us)}) and has no event yet"
        if self.last_offset is None:
            return "the log has no event yet"
        last, last_us = self.last_offset, self._time_of_end()
        return f"the log goes from offset {begin} ({iso_time(begin_us)}) to {last} ({iso_time(last_us)})"


def open_past(
    directory: str, config: LogConfig | None = None, *, now_us: int | None = None, storage: Storage | None = None
) -> Past:
    """Return the history of the log in `directory`, with or without a running broker.

    `now_us` is the clock's time if it is None. Raises LogError if there is no log, DamageError and ForeignError as
    recovery does.
    """
    now_us = time.time_ns() // 1000 if now_us is None else now_us
    return Past(open_reader(directory, config, storage), now_us=now_us)


def _cut(event: Event, first: int, last: int) -> Event:
    """Return the part of an event within [first, last]."""
    if type(event) is not Published or (first <= event.offset and next_after(event) <= last + 1):
        return event
    begin = max(first, event.offset)
    words = event.words[(begin - event.offset) * WORD_BYTES : (last + 1 - event.offset) * WORD_BYTES]
    return replace(event, offset=begin, words=words, size=total_size(words))
