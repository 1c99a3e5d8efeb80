"""Attachments at the `$management` node: requests of type `org.ambermq.attachment` become commands.

    muxer         its name                         destination    of a DESTINATION muxer
    member        a queue's address, or            pattern        of a WILD DESTINATION muxer
                  muxer:NAME                       selector       of a SELECTOR muxer
                                                   conditions     of PROPERTY and WILD PROPERTY muxers: a list of maps
                                                                  {name, value}; without `value` the field must exist

Rule 1. Muxer, member and argument identify an attachment: CREATE and DELETE name them in the body.
Rule 2. An attachment also has an id, which never changes. READ and DELETE take it as `name`.
Rule 3. The member is null if a repair of the log could not save it. Such an attachment is deleted by its id.
Rule 4. A listing is in the order of the ids of the muxers, and below a muxer in the order of the attachments' ids.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any, Final

from ambermq.engine.address import member_address
from ambermq.engine.commands import AttachMember, Command, DetachMember, Inspect
from ambermq.engine.decide.attachment_arguments import ARGUMENT_NAMES
from ambermq.engine.errors import Refused
from ambermq.engine.model.attachment import Argument, Attachment, Condition
from ambermq.engine.model.muxer import Muxer
from ambermq.engine.model.state import State
from ambermq.protocol.management.paging import page_of, query_window
from ambermq.protocol.management.request_fields import refuse_unknown
from ambermq.protocol.management.sorted_ids import Orders

__all__ = [
    "ATTACHMENT_ATTRIBUTES",
    "ATTACHMENT_OPERATIONS",
    "ATTACHMENT_TYPE",
    "argument_value",
    "attachment_attributes",
]

ATTACHMENT_TYPE: Final = "org.ambermq.attachment"
_ARGUMENTS: Final = ("destination", "pattern", "selector", "conditions")
ATTACHMENT_ATTRIBUTES: Final = ("name", "id", "muxer", "class", "member", *_ARGUMENTS)
_NOUN: Final = "attachment"


def attachment_attributes(state: State, muxer: Muxer, attachment: Attachment) -> dict[str, Any]:
    """Return the attributes of an attachment. An attribute that the muxer's class does not have is null."""
    row: dict[str, Any] = dict.fromkeys(ATTACHMENT_ATTRIBUTES)
    row |= {"name": str(attachment.id), "id": attachment.id, "muxer": muxer.name, "class": muxer.kind.text}
    row["member"] = _member(state, attachment.member)
    called = ARGUMENT_NAMES.get(muxer.kind)
    if called is not None:
        row[called] = argument_value(attachment.argument)
    return row


def _member(state: State, member: int) -> str | None:
    muxer, queue = state.muxers.get(member), state.queues.get(member)
    if muxer is not None:
        return f"muxer:{muxer.name}"
    return None if queue is None else member_address(queue.name)


def argument_value(argument: Argument) -> Any:
    """Return an argument as the value of its attribute: text, or a list of conditions."""
    if isinstance(argument, tuple):
        return [{"name": one.name, "value": one.value} if one.has_value else {"name": one.name} for one in argument]
    return argument


def _create(request: Any, properties: Mapping[str, Any], body: Mapping[str, Any], _max: int) -> Command:
    if "name" in properties:
        raise Refused("amqp:invalid-field", "the broker gives an attachment its id: leave out `name`")
    request.status = 201
    return AttachMember(request, *_definition(body))


def _delete(request: Any, properties: Mapping[str, Any], body: Mapping[str, Any], _max: int) -> Command:
    request.status = 204
    if "name" not in properties:
        return DetachMember(request, *_definition(body))
    state = request.peer.gateway.engine.state
    place = _attachment_by_id(state, _id(properties))
    if place is None:
        raise Refused("amqp:not-found", f"no attachment {properties['name']!r:.80}")
    muxer, attachment = place
    member = _member(state, attachment.member) or ""
    return DetachMember(request, muxer.name, member, attachment.argument, attachment=attachment.id)


def _definition(body: Mapping[str, Any]) -> tuple[str, str, Argument, str]:
    """Return muxer, member, argument, and the key of the argument."""
    refuse_unknown(body, _NOUN, "muxer", "member", *_ARGUMENTS)
    keys = [key for key in _ARGUMENTS if body.get(key) is not None]
    if len(keys) > 1:
        raise Refused("amqp:invalid-field", f"an attachment has at most one argument, found {' and '.join(keys)}")
    key = keys[0] if keys else ""
    argument: Argument = None
    if key:
        argument = _conditions(body[key]) if key == "conditions" else _text(body, key)
    return _text(body, "muxer"), _text(body, "member"), argument, key


def _text(body: Mapping[str, Any], name: str) -> str:
    value = body.get(name)
    if not isinstance(value, str):
        raise Refused("amqp:invalid-field", f"{name!r} must be text, found {value!r:.80}")
    return str(value)


def _conditions(value: Any) -> tuple[Condition, ...]:
    if not isinstance(value, list):
        raise Refused("amqp:invalid-field", f"'conditions' must be a list of maps, found {value!r:.80}")
    return tuple(map(_condition, value))


def _condition(pair: Any) -> Condition:
    if not isinstance(pair, dict) or not isinstance(pair.get("name"), str) or pair.keys() - {"name", "value"}:
        raise Refused("amqp:invalid-field", f"a condition must be a map of name and value, found {pair!r:.80}")
    name = str(pair["name"])
    if "value" not in pair:
        return Condition(name)
    value = pair["value"]
    if value is None:
        return Condition(name, True)
    for kind in (bool, int, float, str):
        if isinstance(value, kind):
            # Conditions drop the AMQP type: numbers compare by value, and a symbol equals its string.
            return Condition(name, True, kind(value))
    expected = "its value must be null, true, false, a number or text"
    raise Refused("amqp:invalid-field", f"condition {name!r:.80}: {expected}")


def _read(request: Any, properties: Mapping[str, Any], _body: Mapping[str, Any], _max: int) -> Command:
    return Inspect(request, partial(_attachment_of, _id(properties)))


def _id(properties: Mapping[str, Any]) -> int:
    name = properties.get("name")
    if not isinstance(name, str) or not name.isascii() or not name.isdigit() or len(name) > 19:
        raise Refused("amqp:invalid-field", f"the application property `name` must be an attachment's id: {name!r:.80}")
    return int(name)


def _attachment_by_id(state: State, attachment: int) -> tuple[Muxer, Attachment] | None:
    for muxer in state.muxers.values():
        if attachment in muxer.attachments:
            return muxer, muxer.attachments[attachment]
    return None


def _attachment_of(attachment: int, state: State) -> dict[str, Any] | None:
    place = _attachment_by_id(state, attachment)
    return None if place is None else attachment_attributes(state, *place)


def _query(request: Any, properties: Mapping[str, Any], body: Mapping[str, Any], results_max: int) -> Command:
    name = properties.get("muxer")
    if name is not None and not isinstance(name, str):
        raise Refused("amqp:invalid-field", f"'muxer' must be the name of a muxer, found {name!r:.80}")
    orders: Orders = request.orders
    return Inspect(request, partial(_page, orders, name, *query_window(properties, body, _NOUN, results_max)))


def _page(
    orders: Orders, name: str | None, offset: int, count: int, names: tuple[str, ...], state: State
) -> dict[str, Any] | None:
    if name is None:
        total, places = orders.attachment_count(state), orders.places(state, offset)
    else:
        muxer = state.muxer_named(name)
        if muxer is None:
            return None
        ids = orders.attachments(state, muxer)
        total, places = len(ids), iter([(muxer, ids[offset:])])
    return page_of(_rows(state, places, count), total, names, ATTACHMENT_ATTRIBUTES)


def _rows(state: State, places: Iterable[tuple[Muxer, Sequence[int]]], count: int) -> Iterator[dict[str, Any]]:
    """Yield the attributes of at most `count` attachments, muxer by muxer."""
    pairs = ((muxer, attachment) for muxer, ids in places for attachment in ids)
    for muxer, attachment in islice(pairs, count):
        yield attachment_attributes(state, muxer, muxer.attachments[attachment])


ATTACHMENT_OPERATIONS: Final[Mapping[str, Callable[[Any, Mapping[str, Any], Mapping[str, Any], int], Command]]] = {
    "CREATE": _create,
    "READ": _read,
    "DELETE": _delete,
    "QUERY": _query,
}
"""Operation to the function that makes its command of request, application properties, body, and page rows."""
