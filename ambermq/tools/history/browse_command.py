"""`ambermq queue browse`: the messages on a queue, now or at a moment, read from the log without acquiring them.

Rule 1. Messages are listed in the order of their offsets, acquired ones too: the column `state` shows them.
Rule 2. A message with a wrong checksum, or lost by a repair, is listed as damaged. The command then ends with the exit
code of damage.
Rule 3. No message above 16 MiB is read as a whole: its first piece has what is shown.
"""

from collections.abc import Iterator, Sequence
from heapq import merge
from itertools import islice
from typing import Any, Final

import click

from ambermq.engine.entries.entry import PLAIN, Entry
from ambermq.engine.entries.entry_word import entry_of, size_of
from ambermq.engine.history.past import Past, PastError
from ambermq.engine.history.timestamps import iso_time
from ambermq.engine.model.queue import Queue
from ambermq.engine.model.state import State
from ambermq.log.buffer import Buffer
from ambermq.log.read.body_store import DAMAGED
from ambermq.protocol.amqp10.types.decode import decode
from ambermq.protocol.gateway.links.outgoing_message import redelivered
from ambermq.tools.client.broker_option import broker_options
from ambermq.tools.client.queue_completion import complete_queue
from ambermq.tools.messages.message_preview import (
    WHOLE_BYTES_MAX,
    beginning_facts,
    message_facts,
    one_line,
    pairs_text,
)
from ambermq.tools.messages.message_text import plain, presented
from ambermq.tools.past.moment_option import at_option
from ambermq.tools.past.past_access import offset_of, opened_past, state_of
from ambermq.tools.past.queue_rows import queue_of
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode
from ambermq.tools.terminal.output import list_output_option, print_json, print_rows

__all__ = ["browse"]

_COLUMNS: Final = ("offset", "time", "message_id", "state", "delivery_count", "bytes")
_PAIRS: Final = ("header", "properties", "application_properties", "annotations")
_LIMIT: Final = 20


@click.command("browse", epilog="Example: ambermq queue browse orders --at now --limit 5 --data ./data")
@click.argument("name", shell_complete=complete_queue)
@at_option
@click.option(
    "--limit",
    type=click.IntRange(1),
    default=_LIMIT,
    show_default=True,
    metavar="N",
    help="Maximum number of messages.",
)
@click.option(
    "--ndjson", is_flag=True, help="Print whole messages, one JSON object a line, as `receive` does for `send`."
)
@broker_options
@list_output_option
def browse(name: str, at: str | None, limit: int, ndjson: bool, url: str | None, data: str | None, output: str) -> None:
    """Show the messages on queue NAME from its head.

    The command acquires none of them. --at shows the messages that were on the queue at that moment. It needs the data
    directory, of a running broker or of a stopped one. Exits 6 if there was no such queue. Of a message above 16 MiB
    --ndjson prints the beginning.
    """
    with opened_past(url, data) as past:
        state = state_of(past, offset_of(past, at or "now"))
        queue = queue_of(state, name)
        if ndjson:
            damaged = _print_messages(past, queue, limit)
        else:
            rows = list(_rows(past, state, queue, limit))
            damaged = [row["offset"] for row in rows if row["state"] == "damaged"]
    if not ndjson:
        _print_listing(rows, output)
    if damaged:
        raise ToolError("damaged messages", where=name, found=", ".join(map(str, damaged)), code=ExitCode.DAMAGED)


def _print_listing(rows: list[dict[str, Any]], output: str) -> None:
    if output != "table":
        print_rows(rows, (), output)
    else:
        print_rows(map(_shown, rows), (*_COLUMNS, *_pairs_in(rows), "body"), output)


def _print_messages(past: Past, queue: Queue, limit: int) -> list[int]:
    """Print messages as a receiver would get them; return the offsets of the damaged ones, which are left out."""
    damaged = []
    for word, _ in islice(_words(queue), limit):
        offset = entry_of(word)
        entry = queue.entries.get(offset, PLAIN)
        is_cut = bool(entry.chunks) and size_of(word) > WHOLE_BYTES_MAX
        payload = (
            _first_piece(past, offset, entry) if is_cut else _payload_of(past, entry.origin or offset, entry.chunks)
        )
        if payload is DAMAGED:
            damaged.append(offset)
        elif is_cut:
            print_json(beginning_facts(redelivered(payload, entry), size_of(word)))
        else:
            print_json(presented(redelivered(payload, entry)))
    return damaged


def _rows(past: Past, state: State, queue: Queue, limit: int) -> Iterator[dict[str, Any]]:
    for word, consumer in islice(_words(queue), limit):
        link = state.consumers.get(consumer) or state.suspended.get(consumer)
        yield {
            "offset": entry_of(word),
            "time": _time_of(past, entry_of(word)),
            "state": _state_of(queue, word, consumer),
            "consumer": f"{link.container}/{link.link}" if link else None,
            "delivery_count": queue.entries.get(entry_of(word), PLAIN).count,
            "bytes": size_of(word),
        } | _message(past, entry_of(word), queue.entries.get(entry_of(word), PLAIN))


def _state_of(queue: Queue, word: int, consumer: int) -> str:
    if consumer:
        return "acquired"
    return queue.state_of(word)


def _time_of(past: Past, offset: int) -> str | None:
    try:
        return iso_time(past.published_us(offset))
    except PastError:
        return None


def _payload_of(past: Past, offset: int, chunks: Sequence[int] = ()) -> Buffer:
    try:
        return past.body(offset, chunks)
    except PastError:
        return DAMAGED


def _first_piece(past: Past, offset: int, entry: Entry) -> Buffer:
    return _payload_of(past, entry.chunks[0] if entry.chunks else entry.origin or offset)


def _words(queue: Queue) -> Iterator[tuple[int, int]]:
    """Yield the words on a queue by their offsets, each with the consumer that has acquired it, or 0."""
    acquired = sorted((word, consumer) for consumer, words in queue.acquired.items() for word in words)
    return merge(acquired, *(((word, 0) for word in words) for words in queue.waiting_lists))


def _message(past: Past, offset: int, entry: Entry) -> dict[str, Any]:
    payload = _first_piece(past, offset, entry)
    if payload is DAMAGED:
        return {"state": "damaged", "message_id": None, **{name: {} for name in _PAIRS}, "body": ""}
    facts = message_facts(payload, is_whole=not entry.chunks)
    added = {str(plain(decode(key)[0])): plain(decode(value)[0]) for key, value in entry.added}
    facts["annotations"] |= added
    return facts


def _pairs_in(rows: list[dict[str, Any]]) -> list[str]:
    return [name for name in _PAIRS if any(row[name] for row in rows)]


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row for a table: maps as text, and texts of clients escaped."""
    pairs = {name: pairs_text(row[name]) for name in _PAIRS}
    message_id = None if row["message_id"] is None else one_line(str(row["message_id"]))
    return row | pairs | {"message_id": message_id}
