"""Any moment of a log: of a broker that runs, from another process, or of one that has stopped.

    open_past(directory)   what the manifest names now stays readable until it is closed
    mode()                 what the virtual host is at any of them
    offset_at(time)        times resolve to offsets first
    state_at(offset)       newest snapshot at or before it, then a fold
    events, event_at       what happened
    body(offset)           found through the index of its segment

Rule 1. The state at X is the state after the event at X. A run of messages published is as many events as messages: X
cuts it. Offsets between two epochs name no event: the last one before them counts.
Rule 2. Nothing is rounded: what lies before the horizon or in the future is a PastError that says what there is.
Rule 3. While a broker writes, the past ends where its log is durable: what is told is promised.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from functools import cached_property
from typing import Final, Self

from msgspec.structs import replace

from ambermq.engine.errors import EngineError
from ambermq.engine.events import Event, Published, Started
from ambermq.engine.fold.apply import apply
from ambermq.engine.history.timestamps import iso_time
from ambermq.engine.model.entry_word import WORD_BYTES, total_size
from ambermq.engine.model.state import EMPTY_STATE, State
from ambermq.engine.model.vhost_mode import VhostMode
from ambermq.engine.records.event_fields import next_after
from ambermq.engine.records.reader import events_of
from ambermq.engine.snapshots.files import newest_snapshot
from ambermq.log.buffer import Buffer
from ambermq.log.config import LogConfig
from ambermq.log.format.record import Record
from ambermq.log.manifest.manifest import Horizon
from ambermq.log.read.body_reads import DAMAGED
from ambermq.log.read.log_reader import LogReader, ReadableBatch, open_reader
from ambermq.log.storage.interface import Storage

__all__ = ["Past", "PastError", "PastKind", "Progress", "open_past"]

Progress = Callable[[int, int], None]
"""Hears the offsets folded so far and how many there are to fold; offsets between epochs count too."""

_TOLD_OFFSETS: Final = 1 << 16


class PastKind(StrEnum):
    """Why a moment cannot be asked for."""

    BEFORE_HORIZON = "before-horizon"
    IN_FUTURE = "in-future"
    NO_SUCH_OFFSET = "no-such-offset"


class PastError(EngineError):
    """A moment that the log does not answer for; the message says which ones it does."""

    def __init__(self, kind: PastKind, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class Past:
    """The history of one log up to the moment in which it was opened; close it when done."""

    def __init__(self, reader: LogReader, *, now_us: int) -> None:
        """Own `reader`; `now_us` is what counts as the future's begin. Use `open_past`."""
        self.reader = reader
        """The log, for look-ups that know its segments."""
        self.now_us = now_us
        """When it was opened."""
        self.horizon = reader.manifest.horizon or Horizon(0, 0)
        """Where the events begin; below are only messages that still live."""

    @property
    def end(self) -> int:
        """The first offset that it does not answer for."""
        return self.reader.end

    @property
    def is_archived(self) -> bool:
        """Whether events from before the horizon lie in an archive, all of them or some."""
        return bool(self.reader.manifest.archive)

    @cached_property
    def last_offset(self) -> int | None:
        """The offset of the last event, None where there is none yet."""
        return self.reader.floor(self.end - 1)

    def offset_at(self, time_us: int) -> int:
        """Return the greatest offset whose event's time is at or before `time_us`. Raises PastError, DamageError."""
        if time_us > self.now_us and time_us > self._time_of_end():
            raise PastError(
                PastKind.IN_FUTURE, f"{iso_time(time_us)} lies in the future: it is {iso_time(self.now_us)} now"
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
        """Return that of the virtual host, which each of its starts says. Raises as `state_at`."""
        if self.horizon.offset:
            return self.state_at(self.horizon.offset - 1).mode
        starts = (event.mode for event in self._events(0, self.end - 1) if type(event) is Started)
        return next(starts, EMPTY_STATE.mode)

    @cached_property
    def first_time_us(self) -> int:
        """The time of the earliest moment that every later one can be asked for from; 0 where nothing was written."""
        if self.horizon.offset:
            return self.horizon.time_us
        first = None if self.last_offset is None else next(self._events(0, self.last_offset), None)
        return 0 if first is None else first.time_us

    def published_us(self, offset: int) -> int:
        """Return the time at which a message was published that lives, or lived above the horizon. Raises as `body`."""
        return self._found(offset)[1].timestamp_us

    def state_at(
        self, offset: int, progress: Progress | None = None, *, progress_offsets: int = _TOLD_OFFSETS
    ) -> State:
        """Return the state after the event at `offset`, and tell `progress` every so many offsets.

        Raises PastError, DamageError, and what `progress` raises.
        """
        self._check(offset)
        state, start = self._base(offset)
        told = start
        for event in self._events(start, offset):
            state = apply(state, event)
            if progress is not None and event.offset - told >= progress_offsets:
                told = event.offset
                progress(told - start, offset + 1 - start)
        return state

    def events(self, first: int, last: int) -> Iterator[Event]:
        """Yield the events at offsets from `first` to `last`, both included, runs cut there. Raises as `state_at`."""
        if first <= last:
            self._check(last)
            if first < self.horizon.offset:
                raise self._before_horizon(f"offset {first}")
        return self._events(first, last)

    def event_at(self, offset: int) -> Event | None:
        """Return the event at `offset`, a run cut to the one message; None where there is none, or no more.

        Below the horizon the messages that still live are found. Raises DamageError.
        """
        readable = None if offset >= self.end else self.reader.find_batch(offset)
        if readable is not None:
            for event in events_of(readable.batch):
                if event.offset <= offset < next_after(event):
                    return _cut(event, offset, offset)
        return None

    def body(self, offset: int, chunks: Sequence[int] = ()) -> Buffer:
        """Return a message by the offset of its publish record and those of its chunks, DAMAGED where it is damaged.

        Raises PastError where there is no such record, DamageError where the log is damaged there.
        """
        pieces = [self._piece(piece) for piece in (*chunks, offset)]
        if any(piece is DAMAGED for piece in pieces):
            return DAMAGED
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def extend(self) -> bool:
        """Take in what was written since; False where the log is to be opened again for that."""
        self.__dict__.pop("last_offset", None)
        return self.reader.extend()

    def close(self) -> None:
        """Close the log and let its files go."""
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
        """Return the newest state that is known at or before `offset`, and the offset from which to fold on.

        A damaged snapshot is passed over where the one before it and a longer fold say the same.
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

    def _before_horizon(self, asked: str) -> PastError:
        points = [f"offset {end - 1}" for end in self._snapshot_ends() if end < self.horizon.offset]
        also = f", besides {', '.join(points)}" if points else ""
        archived = "; earlier events are archived, where `ambermq log query` finds them" if self.is_archived else ""
        message = f"{asked} lies before the log's history: {self._extent()}{also}{archived}"
        return PastError(PastKind.BEFORE_HORIZON, message)

    def _time_of_end(self) -> int:
        found = None if self.last_offset is None else self.reader.find(self.last_offset)
        return 0 if found is None else found[1].timestamp_us

    def _extent(self) -> str:
        """Say which moments there are."""
        begin, begin_us = self.horizon.offset, self.first_time_us
        if begin and (self.last_offset is None or self.last_offset < begin):
            return f"the log begins behind offset {begin - 1} ({iso_time(begin_us)}), and nothing was written since"
        if self.last_offset is None:
            return "nothing was written yet"
        last, last_us = self.last_offset, self._time_of_end()
        return f"the log goes from offset {begin} ({iso_time(begin_us)}) to {last} ({iso_time(last_us)})"


def open_past(
    directory: str, config: LogConfig | None = None, *, now_us: int | None = None, storage: Storage | None = None
) -> Past:
    """Open the history of the log in `directory`, whether or not a broker runs on it; times are the clock's.

    Raises LogError where there is no log, DamageError and ForeignError as recovery does.
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
