"""The operations of type `org.ambermq.queue` on single messages of the queue.

    FIND      the waiting messages that pass a filter, a page at a time
    MOVE      named messages go to another queue
    COPY      named messages come to another queue too
    REDRIVE   named messages, or edited copies of them, go back to the queue that each came from, or to another one
    REMOVE    named messages end
    CANCEL    named messages that are scheduled for later end

Rule 1. FIND names messages by their offsets, and the others take those. So a client sees what it moves, and a request
        is done wholly or not at all.
Rule 2. The rules decide about each queue that a message goes to.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from ambermq.engine.commands import Command, FindMessages, MessageFilter, MoveMessages, RemoveMessages
from ambermq.engine.entries.discard_reason import MoveReason
from ambermq.engine.errors import Refused
from ambermq.engine.selectors.selector import Selector, SelectorError, parse_selector
from ambermq.protocol.amqp10.types.values import Timestamp, ULong
from ambermq.protocol.management.messages.edits import edit_messages
from ambermq.protocol.management.request_fields import (
    flag_field,
    is_number,
    name_property,
    number_field,
    refuse_unknown,
)

__all__ = ["FIND", "MESSAGE_OPERATIONS", "found_messages"]

FIND: Final = "FIND"
_NOUN: Final = "queue"
_FILTERS: Final = ("selector", "reason", "source", "since", "scheduled")
_REASONS: Final = tuple(one.text for one in MoveReason if one.is_dead_letter)


def _find(request: Any, properties: Mapping[str, Any], body: Mapping[str, Any], results_max: int) -> Command:
    refuse_unknown(body, _NOUN, *_FILTERS, "after", "before", "count", "read")
    after = number_field(body, "after", 0)
    command = FindMessages(
        request,
        name_property(properties, _NOUN),
        _filter(request, body),
        after - 1,
        count_max=max(1, min(number_field(body, "count", results_max), results_max)),
        reads_messages=flag_field(body, "read"),
        read=found_messages,
    )
    if "before" in body:
        command.before = number_field(body, "before", 0)
    return command


def _filter(request: Any, body: Mapping[str, Any]) -> MessageFilter:
    """Return the filter of a request. Raises Refused."""
    reason = _text(body, "reason")
    if reason and reason not in _REASONS:
        raise Refused("amqp:invalid-field", f"'reason' must be one of {', '.join(_REASONS)}, found {reason!r:.80}")
    since = body.get("since")
    if since is not None and not isinstance(since, Timestamp):
        raise Refused("amqp:invalid-field", f"'since' must be a timestamp, found {since!r:.80}")
    selector = _selector(request, _text(body, "selector"))
    scheduled = flag_field(body, "scheduled")
    return MessageFilter(selector, reason, _text(body, "source"), 1000 * (since or 0), scheduled)


def _selector(request: Any, text: str) -> Selector | None:
    config = request.peer.gateway.engine.config
    if not text:
        return None
    try:
        return parse_selector(text, bytes_max=config.argument_bytes_max, tokens_max=config.selector_tokens_max)
    except SelectorError as error:
        raise Refused("amqp:invalid-field", f"the selector {text!r:.80}: {error}") from error


def _text(body: Mapping[str, Any], name: str) -> str:
    value = body.get(name)
    if value is not None and not isinstance(value, str):
        raise Refused("amqp:invalid-field", f"{name!r} must be a text, found {value!r:.80}")
    return "" if value is None else str(value)


def found_messages(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer to FIND in the types of AMQP: `next` is the least offset of the next page."""
    rows = []
    for row in answer["messages"]:
        values = {**row, "offset": ULong(row["offset"]), "bytes": ULong(row["bytes"])}
        if "time_us" in values:
            values["time"] = Timestamp(values.pop("time_us") // 1000)
        if "due_us" in values:
            values["due"] = Timestamp(values.pop("due_us") // 1000)
        rows.append(values)
    following, end = ULong(answer["next"] + 1), ULong(answer["end"])
    flags = {name: answer[name] for name in ("is_end", "is_reading")}
    return {"messages": rows, "next": following, "end": end, **flags}


def _offsets(body: Mapping[str, Any]) -> list[int]:
    offsets = body.get("offsets")
    if not isinstance(offsets, list) or not all(is_number(one) and one >= 0 for one in offsets):
        raise Refused("amqp:invalid-field", f"'offsets' must be a list of offsets, found {offsets!r:.80}")
    return list(map(int, offsets))


def _move(
    reason: MoveReason, request: Any, properties: Mapping[str, Any], body: Mapping[str, Any], _max: int
) -> Command:
    edits = ("edit",) if reason is MoveReason.REDRIVEN else ()
    refuse_unknown(body, _NOUN, "offsets", "to", "dry_run", "taken", *edits)
    to = _text(body, "to")
    if not to and reason is not MoveReason.REDRIVEN:
        raise Refused("amqp:invalid-field", "'to' must be the address of a queue")
    name = name_property(properties, _NOUN)
    dry_run = _dry_run(body)
    if body.get("edit") is not None:
        command = edit_messages(request, name, _offsets(body), to, body["edit"])
        command.dry_run = dry_run
        return command
    return MoveMessages(request, name, _offsets(body), to, reason, request.authorize_sending, dry_run)


def _dry_run(body: Mapping[str, Any]) -> bytes | None:
    """Return what a dry run would have added so far; None for a request that is none. Raises Refused."""
    taken = body.get("taken", b"")
    if not isinstance(taken, (bytes, bytearray, memoryview)):
        raise Refused("amqp:invalid-field", f"'taken' must be a binary value, found {taken!r:.80}")
    is_dry_run = flag_field(body, "dry_run")
    if taken and not is_dry_run:
        raise Refused("amqp:invalid-field", "'taken' goes with 'dry_run' = true alone")
    return bytes(taken) if is_dry_run else None


def _remove(
    request: Any, properties: Mapping[str, Any], body: Mapping[str, Any], _max: int, *, scheduled: bool = False
) -> Command:
    refuse_unknown(body, _NOUN, "offsets")
    return RemoveMessages(request, name_property(properties, _NOUN), _offsets(body), scheduled)


MESSAGE_OPERATIONS: Final[Mapping[str, Callable[[Any, Mapping[str, Any], Mapping[str, Any], int], Command]]] = {
    FIND: _find,
    "MOVE": partial(_move, MoveReason.MOVED),
    "COPY": partial(_move, MoveReason.COPIED),
    "REDRIVE": partial(_move, MoveReason.REDRIVEN),
    "REMOVE": _remove,
    "CANCEL": partial(_remove, scheduled=True),
}
"""Operation to the function that makes its command of request, application properties, body, and page rows."""
