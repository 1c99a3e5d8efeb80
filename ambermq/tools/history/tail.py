"""`ambermq history tail`: the last events of a log, and new ones with --follow.

Rule 1. The command reads backwards from the end until it has enough events.
Rule 2. It prints durable events only. The files of a running broker name the durable end at most a second late.
"""

import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import click

from ambermq.engine.entries.entry_word import entry_of, unpack_words
from ambermq.engine.events import (
    Acquired,
    Damaged,
    Discarded,
    Due,
    Duplicated,
    Event,
    Moved,
    Published,
    Scheduled,
    SetAside,
    Settled,
)
from ambermq.engine.history.message_story import find_message, open_search
from ambermq.engine.history.past import Past, open_past
from ambermq.engine.model.state import EMPTY_STATE
from ambermq.engine.records.event_fields import next_after
from ambermq.protocol.amqp10.message.publish_outline import message_id_hash
from ambermq.tools.client.broker_option import data_option
from ambermq.tools.history.event_text import EVENT_TYPES, Line, event_line, type_of
from ambermq.tools.messages.message_ids import message_id_of, possible_ids
from ambermq.tools.past.background_storage import storage_of
from ambermq.tools.past.id_names import IdNames
from ambermq.tools.past.moment_option import parse_offset
from ambermq.tools.past.past_access import opened_past, state_of
from ambermq.tools.past.past_names import PastNames
from ambermq.tools.past.queue_rows import no_such_queue
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode
from ambermq.tools.terminal.output import print_json, print_words, stream_output_option

__all__ = ["tail"]

_LIMIT: Final = 20
_WINDOW_OFFSETS: Final = 4096
_WINDOW_GROWTH: Final = 4
_FOLLOW_SECONDS: Final = 0.5
_OFFSET_PREFIX: Final = "offset:"


@dataclass(frozen=True, slots=True)
class _Filter:
    """The conditions for the events that are printed."""

    types: frozenset[str]
    """Only events of these types; empty for all."""
    queue: str | None
    """Only events of the queue with this name; None for all."""
    entries: set[int] | None
    """Only events that name one of these messages; None for all. A move adds the new offset of its message."""

    def passes(self, event: Event, names: IdNames) -> bool:
        """Return whether an event matches; `names` has the names of its queues."""
        if self.entries is not None and type(event) is Moved:
            moved = enumerate(unpack_words(event.words), event.offset)
            self.entries.update([offset for offset, word in moved if entry_of(word) in self.entries])
        return (
            (not self.types or type_of(event) in self.types)
            and (self.queue is None or self.queue in names.queues_of(event))
            and (self.entries is None or not self.entries.isdisjoint(_entries_of(event)))
        )


def _entries_of(event: Event) -> Iterable[int]:
    match event:
        case Published():
            return range(event.offset, next_after(event))
        case Moved():
            return [*map(entry_of, unpack_words(event.words)), *range(event.offset, next_after(event))]
        case Acquired() | Settled() | Damaged() | Discarded() | Due() | Duplicated() | Scheduled() | SetAside():
            return [entry_of(word) for word in unpack_words(event.words)]
    return ()


@click.command("tail", epilog="Example: ambermq history tail --queue orders --type settled --limit 50 --data ./data")
@data_option
@click.option("--follow", is_flag=True, help="Print new events until interrupted.")
@click.option("--queue", metavar="NAME", help="Only events of this queue.")
@click.option(
    "--type", "types", multiple=True, type=click.Choice(EVENT_TYPES), help="Only events of this type; may be repeated."
)
@click.option("--message", metavar="ID", help="Only events of this message: its message-id, or offset:N.")
@click.option(
    "--limit",
    type=click.IntRange(1),
    metavar="N",
    help=f"Number of past events. Default: {_LIMIT}, and 0 with --follow.",
)
@stream_output_option
def tail(
    data: str | None,
    follow: bool,
    queue: str | None,
    types: tuple[str, ...],
    message: str | None,
    limit: int | None,
    output: str,
) -> None:
    """Print the last events, one a line; --follow prints new ones.

    --output json or ndjson prints NDJSON. With --message only events that name the message are shown. `ambermq log
    dump` prints all events from offset 0. Exits 6 if no queue has the name or no message has the id.
    """
    with opened_past(None, data) as past:
        wanted = _Filter(frozenset(types), queue, None if message is None else _entries(past, message))
        count = limit or (0 if follow else _LIMIT)
        names = PastNames(past)
        lines = list(_last(past, names, wanted, count))
        if not lines and not follow and queue is not None:
            _check_queue(past, wanted, queue)
        _print_all(lines, output)
        directory, following = past.reader.directory, past.end
    if follow:
        try:
            _print_all(_new_lines(directory, following, wanted), output)
        except KeyboardInterrupt:
            return


def _check_queue(past: Past, wanted: _Filter, name: str) -> None:
    """Raise ToolError if the log never had a queue of this name."""
    state = EMPTY_STATE if past.last_offset is None else state_of(past, past.last_offset)
    queue_only = _Filter(frozenset(), name, None)
    is_known = wanted != queue_only and any(_last(past, PastNames(past), queue_only, 1))
    if state.queue_named(name) is None and not is_known:
        raise no_such_queue(name, "in this history")


def _print_all(lines: Iterable[Line], output: str) -> None:
    for line in lines:
        if output != "table":
            print_json(line.as_json())
        else:
            print_words(str(line))


def _entries(past: Past, message: str) -> set[int]:
    """Return the offsets of the messages with an id, or of `offset:N`; ToolError if there are none."""
    if message.startswith(_OFFSET_PREFIX):
        offset = parse_offset(message.removeprefix(_OFFSET_PREFIX))
        found = [] if offset is None or type(past.event_at(offset)) not in (Published, Moved) else [offset]
    else:
        found = _with_id(past, message)
    if not found:
        raise ToolError("no such message", where=message, code=ExitCode.NOT_FOUND)
    return set(found)


def _with_id(past: Past, text: str) -> list[int]:
    meanings = possible_ids(text)
    search = open_search(past)
    try:
        hashes = {message_id_hash(meaning) for meaning in meanings}
        return find_message(past, search, hashes, lambda payload: message_id_of(payload) in meanings)
    finally:
        search.close()


def _last(past: Past, names: IdNames, wanted: _Filter, count: int) -> Iterator[Line]:
    """Yield the last events that match, oldest first."""
    last, window = past.last_offset, _WINDOW_OFFSETS
    pieces: deque[list[Line]] = deque()
    while last is not None and last >= past.horizon.offset and count > 0:
        first = max(past.horizon.offset, _batch_start(past, last - window + 1))
        piece = list(_lines(past.events(first, last), names, wanted))[-count:]
        pieces.appendleft(piece)
        count -= len(piece)
        last = past.reader.floor(first - 1)
        window *= _WINDOW_GROWTH
    for piece in pieces:
        yield from piece


def _batch_start(past: Past, offset: int) -> int:
    """Return the first offset of the batch at or before an offset, 0 if there is none; no event spans batches."""
    floor = past.reader.floor(offset)
    batch = None if floor is None else past.reader.find_batch(floor)
    return 0 if batch is None else batch.batch.header.base_offset


def _lines(events: Iterable[Event], names: IdNames, wanted: _Filter) -> Iterator[Line]:
    for event in events:
        names.add(event)
        if wanted.passes(event, names):
            yield event_line(event, names)


def _new_lines(directory: str, following: int, wanted: _Filter) -> Iterator[Line]:
    """Yield the lines of events from the offset `following` on, without end."""
    while True:
        with open_past(directory, storage=storage_of(directory)) as past:
            names = PastNames(past)
            while True:
                if past.end > following:
                    yield from _lines(past.events(following, past.end - 1), names, wanted)
                    following = past.end
                time.sleep(_FOLLOW_SECONDS)
                if not past.extend():
                    break
