"""`ambermq history message`: the story of one message, from its publish to its place now.

Rule 1. A message is named by its message-id, of any type, or by `offset:N`, the offset of its publish.
Rule 2. Ids need not be unique: the command shows the stories of all messages with the id, the newest last.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any, Final

import click

from ambermq.engine.history.message_story import MessageStory, find_message, open_search, story_of
from ambermq.engine.history.past import Past, PastError, PastKind
from ambermq.engine.history.timestamps import iso_time
from ambermq.log.buffer import Buffer
from ambermq.log.read.body_store import DAMAGED
from ambermq.log.read.search import Search
from ambermq.protocol.amqp10.message.publish_outline import message_id_hash
from ambermq.protocol.gateway.links.routing_fields import RoutingFields
from ambermq.tools.client.broker_option import data_option
from ambermq.tools.history.message_story import COLUMNS, place_lines, place_values, story_rows
from ambermq.tools.messages.message_ids import MessageId, id_text, message_id_of, possible_ids
from ambermq.tools.past.moment_option import parse_offset
from ambermq.tools.past.past_access import opened_past
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode
from ambermq.tools.terminal.output import output_option, print_json, print_line, print_rows, print_words, printable

__all__ = ["message"]

_OFFSET: Final = "offset:"
_LIMIT: Final = 20


@click.command("message", epilog="Example: ambermq history message order-4711 --data ./data")
@click.argument("message_id", metavar="ID")
@click.option(
    "--limit",
    type=click.IntRange(1),
    default=_LIMIT,
    show_default=True,
    metavar="N",
    help="Show at most N of the messages with this id, the newest first.",
)
@data_option
@output_option
def message(message_id: str, limit: int, data: str | None, output: str) -> None:
    """Show the whole story of the message with the message-id ID.

    Write offset:N for the message that was published at offset N. The story has each publish, route, acquisition,
    settlement and return, and where the message is now. Exits 6 if there is no such message.
    """
    with opened_past(None, data) as past:
        search = open_search(past)
        try:
            offsets = _offsets(past, search, message_id)
            stories = [story_of(past, search, offset, RoutingFields) for offset in offsets[-limit:]]
        except PastError as error:
            if error.kind is not PastKind.NO_SUCH_OFFSET:
                raise
            raise _missing(past, message_id) from error
        finally:
            search.close()
        if output == "json":
            print_json([_values(past, story) for story in stories], indent=True)
            return
        if len(offsets) > limit:
            print_line(f"{len(offsets) - limit:,} earlier messages with this id; --limit shows more\n")
        for number, story in enumerate(stories):
            _print_story(past, story, is_first=not number)


def _offsets(past: Past, search: Search, text: str) -> list[int]:
    offset = parse_offset(text.removeprefix(_OFFSET)) if text.startswith(_OFFSET) else None
    if offset is not None:
        return [offset]
    meanings = possible_ids(text)
    found = find_message(past, search, {message_id_hash(one) for one in meanings}, partial(_is_one_of, meanings))
    if not found:
        raise _missing(past, text)
    return found


def _is_one_of(meanings: list[MessageId], payload: Buffer) -> bool:
    return message_id_of(payload) in meanings


def _missing(past: Past, text: str) -> ToolError:
    horizon = past.horizon.offset
    advice = f"the log has no messages that ended before offset {horizon}" if horizon else ""
    return ToolError(
        f"no message {text!r}",
        where=past.reader.directory,
        advice=f"{advice}, its archive has them: run `ambermq log query`" if past.is_archived else advice,
        code=ExitCode.NOT_FOUND,
    )


def _head_of(past: Past, story: MessageStory) -> MessageId | None:
    chunks = story.published.chunks
    head = past.body(chunks[0] if chunks else story.offset)
    return None if head is DAMAGED else message_id_of(head)


def _print_story(past: Past, story: MessageStory, *, is_first: bool) -> None:
    message_id = id_text(_head_of(past, story))
    name = "a message without an id" if message_id is None else f"message {message_id}"
    print_line(f"{'' if is_first else chr(10)}{printable(name)}, offset {story.offset}")
    # In JSON the detail is `words`, as in the output of `log dump` and `history tail`.
    rows = ({**row, "detail": row["words"]} for row in story_rows(story, is_archived=past.is_archived))
    print_rows(rows, COLUMNS, "table", spare=("after", "offset"))
    for line in place_lines(story, past.now_us):
        print_words(f"now {line}")


def _values(past: Past, story: MessageStory) -> dict[str, Any]:
    published = story.published
    return {
        "message_id": id_text(_head_of(past, story)),
        "offset": story.offset,
        "time": iso_time(published.time_us),
        "bytes": published.size,
        "durable": published.durable,
        "horizon": story.horizon or None,
        "events": list(_events(past, story)),
        "now": place_values(story),
    }


def _events(past: Past, story: MessageStory) -> Iterator[dict[str, Any]]:
    for row in story_rows(story, is_archived=past.is_archived):
        yield {name: value for name, value in row.items() if name != "after"}
