"""The attachments in the broker's `$management` node: what requests of type `org.ambermq.attachment` become.

    muxer         its name                         destination    of a DESTINATION muxer
    member        a queue's address, or            pattern        of a WILD DESTINATION muxer
                  muxer:NAME                       selector       of a SELECTOR muxer
                                                   conditions     of PROPERTY and WILD PROPERTY muxers: a list of maps
                                                                  {name, value}; without `value` it must be there

Rule 1. An attachment is what it says: CREATE and DELETE name muxer, member and argument in the body. It has an id too,
which never changes, and which READ and DELETE take as `name`. Where a repair of the log could not save the member, it
is null, and the id is how such an attachment is deleted.
Rule 2. One is listed before another where its muxer is the older one, then where it is the older one itself.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any, Final

from ambermq.engine.address import member_address
from ambermq.engine.commands import AttachMember, Command, DetachMember, Inspect
from ambermq.engine.decide.attachment_arguments import CALLED
from ambermq.engine.errors import Refused
from ambermq.engine.model.attachment import Argument, Attachment, Condition
from ambermq.engine.model.muxer import Muxer
from ambermq.engine.model.state import State
from ambermq.protocol.management.paging import asked_window, page_of
from ambermq.protocol.management.request_fields import refuse_unknown
from ambermq.protocol.management.sorted_ids import SortedIds

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
    """Return what `$management` says of an attachment; null is what its muxer's class does not know."""
    row: dict[str, Any] = dict.fromkeys(ATTACHMENT_ATTRIBUTES)
    row |= {"name": str(attachment.id), "id": attachment.id, "muxer": muxer.name, "class": muxer.kind.text}
    row["member"] = _member(state, attachment.member)
    called = CALLED.get(muxer.kind)
    if called is not None:
        row[called] = argument_value(attachment.argument)
    return row


def _member(state: State, member: int) -> str | None:
    muxer, queue = state.muxers.get(member), state.queues.get(member)
    if muxer is not None:
        return f"muxer:{muxer.name}"
    return None if queue is None else member_address(queue.name)


def argument_value(argument: Argument) -> Any:
    """Return an argument as its attribute has it: text, or a list of conditions."""
    if isinstance(argument, tuple):
        return [{"name": one.name, "value": one.value} if one.has_value else {"name": one.name} for one in argument]
    return argument


def _create(request: Any, asked: Mapping[str, Any], body: Mapping[str, Any], _max: int) -> Command:
    if "name" in asked:
        raise Refused("amqp:invalid-field", "an attachment has no name but its id: leave `name` out")
    request.status = 201
    return AttachMember(request, *_said(body))


def _delete(request: Any, asked: Mapping[str, Any], body: Mapping[str, Any], _max: int) -> Command:
    request.status = 204
    if "name" not in asked:
        return DetachMember(request, *_said(body))
    state = request.peer.gateway.engine.state
    found = _found(state, _id(asked))
    if found is None:
        raise Refused("amqp:not-found", f"no attachment {asked['name']!r:.80}")
    muxer, attachment = found
    member = _member(state, attachment.member) or ""
    return DetachMember(request, muxer.name, member, attachment.argument, attachment=attachment.id)


def _said(body: Mapping[str, Any]) -> tuple[str, str, Argument, str]:
    """Return muxer, member, argument, and what that is called."""
    refuse_unknown(body, _NOUN, "muxer", "member", *_ARGUMENTS)
    given = [name for name in _ARGUMENTS if body.get(name) is not None]
    if len(given) > 1:
        raise Refused("amqp:invalid-field", f"an attachment says one thing, found {' and '.join(given)}")
    called = given[0] if given else ""
    argument: Argument = None
    if called:
        argument = _conditions(body[called]) if called == "conditions" else _text(body, called)
    return _text(body, "muxer"), _text(body, "member"), argument, called


def _text(body: Mapping[str, Any], name: str) -> str:
    value = body.get(name)
    if not isinstance(value, str):
        raise Refused("amqp:invalid-field", f"{name!r} must be text, found {value!r:.80}")
    return str(value)


def _conditions(value: Any) -> tuple[Condition, ...]:
    if not isinstance(value, list):
        raise Refused("amqp:invalid-field", f"'conditions' must be a list of maps, found {value!r:.80}")
    return tuple(map(_condition, value))


def _condition(said: Any) -> Condition:
    if not isinstance(said, dict) or not isinstance(said.get("name"), str) or said.keys() - {"name", "value"}:
        raise Refused("amqp:invalid-field", f"a condition is a map of name and value, found {said!r:.80}")
    name = str(said["name"])
    if "value" not in said:
        return Condition(name)
    value = said["value"]
    if value is None:
        return Condition(name, True)
    for kind in (bool, int, float, str):
        if isinstance(value, kind):
            # The types of AMQP end here: numbers compare by value, a symbol equals its string.
            return Condition(name, True, kind(value))
    raise Refused("amqp:invalid-field", f"condition {name!r:.80} wants null, true, false, a number or text")


def _read(request: Any, asked: Mapping[str, Any], _body: Mapping[str, Any], _max: int) -> Command:
    return Inspect(request, partial(_attachment_of, _id(asked)))


def _id(asked: Mapping[str, Any]) -> int:
    name = asked.get("name")
    if not isinstance(name, str) or not name.isascii() or not name.isdigit() or len(name) > 19:
        raise Refused("amqp:invalid-field", f"the application property `name` must be an attachment's id: {name!r:.80}")
    return int(name)


def _found(state: State, attachment: int) -> tuple[Muxer, Attachment] | None:
    for muxer in state.muxers.values():
        if attachment in muxer.attachments:
            return muxer, muxer.attachments[attachment]
    return None


def _attachment_of(attachment: int, state: State) -> dict[str, Any] | None:
    found = _found(state, attachment)
    return None if found is None else attachment_attributes(state, *found)


def _query(request: Any, asked: Mapping[str, Any], body: Mapping[str, Any], results_max: int) -> Command:
    name = asked.get("muxer")
    if name is not None and not isinstance(name, str):
        raise Refused("amqp:invalid-field", f"'muxer' must be the name of one, found {name!r:.80}")
    orders = request.peer.gateway.orders
    return Inspect(request, partial(_page, orders, name, *asked_window(asked, body, _NOUN, results_max)))


def _page(
    orders: SortedIds, name: str | None, offset: int, count: int, names: tuple[str, ...], state: State
) -> dict[str, Any] | None:
    if name is None:
        total, places = orders.attachment_count(state), orders.places(state, offset)
    else:
        muxer = state.muxer_named(name)
        if muxer is None:
            return None
        total, places = len(muxer.attachments), iter([(muxer, orders.attachments(muxer)[offset:])])
    return page_of(_rows(state, places, count), total, names, ATTACHMENT_ATTRIBUTES)


def _rows(state: State, places: Iterable[tuple[Muxer, Sequence[int]]], count: int) -> Iterator[dict[str, Any]]:
    """Yield attributes of at most `count` attachments, of one muxer after the other."""
    found = ((muxer, one) for muxer, ids in places for one in ids)
    for muxer, one in islice(found, count):
        yield attachment_attributes(state, muxer, muxer.attachments[one])


ATTACHMENT_OPERATIONS: Final[Mapping[str, Callable[[Any, Mapping[str, Any], Mapping[str, Any], int], Command]]] = {
    "CREATE": _create,
    "READ": _read,
    "DELETE": _delete,
    "QUERY": _query,
}
"""Operation to what makes its command of request, application properties, body, and the most results of a page."""
