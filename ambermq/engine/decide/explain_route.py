"""Where a message would go, and why: the way that publishing would take it, told and not gone.

Rule 1. It is what publishing does with a link to the address, by the same routing, in the same tick.
Rule 2. Nothing is drawn: a LOSSY muxer passes the message on, and says with what probability it would.
Rule 3. Nothing is made: where a link would create the queue of its address, that is said too.
Rule 4. Who sends is not known: what a subscription leaves out of its own container's messages, and whether anybody
        receives, is not looked at.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from ambermq.engine.address import NodeKind, parse_address
from ambermq.engine.commands import ExplainRoute
from ambermq.engine.decide.context import Decision, DecisionContext
from ambermq.engine.decide.node_names import destination_said, muxer_id, queue_muxer, topic_muxer
from ambermq.engine.decide.wiring import create_queue
from ambermq.engine.effects import Answered
from ambermq.engine.errors import Refused
from ambermq.engine.model.muxer import MuxerKind
from ambermq.engine.model.state import State
from ambermq.engine.routing.router import Hop
from ambermq.engine.selectors.fields import ABSENT, Fields

__all__ = ["EXPLAIN_DECISIONS", "Explained", "explain"]


class Explained(NamedTuple):
    """The way of one message."""

    muxer: int
    """Where it begins."""
    destination: str
    hops: tuple[Hop, ...]
    """The muxers that see it, in order."""
    queues: tuple[int, ...]
    """Those that it reaches, each once, in order."""
    lossy: tuple[int, ...]
    """Muxers on the way that would draw for it."""
    creates: str | None = None
    """The queue that a link to the address makes first, and that the message then reaches."""


def explain(state: State, address: str, fields: Fields, context: DecisionContext) -> Explained:
    """Return the way of a message that is sent to an address; to that of its own `to` where `address` is empty.

    Raises Refused as publishing does.
    """
    muxer, destination, creates = _start(state, address, fields, context)
    hops = tuple(context.router.hops(state, muxer, destination, fields, None))
    members = [one.member for hop in hops for one in hop.attachments]
    return Explained(
        muxer,
        destination,
        hops,
        tuple(dict.fromkeys(member for member in members if member in state.queues)),
        tuple(hop.muxer for hop in hops if state.muxers[hop.muxer].kind is MuxerKind.LOSSY),
        creates,
    )


def _start(state: State, address: str, fields: Fields, context: DecisionContext) -> tuple[int, str, str | None]:
    """Return the first muxer, the destination, and the name of the queue that would be made."""
    node = parse_address(address or _address_of(fields), name_bytes_max=context.config.name_bytes_max)
    if node.kind is NodeKind.QUEUE:
        first = queue_muxer(state, node.name)
        is_new = node.name not in state.queue_names
        if is_new:
            create_queue(state, node.name, context)  # or it is refused, as there
        return first, node.name, node.name if is_new else None
    if node.kind is NodeKind.TOPIC:
        return topic_muxer(state, node.name), node.name, None
    muxer = muxer_id(state, node.name)
    if node.destination is not None:
        return muxer, node.destination, None
    # Without a link's address `to` is the address, and says nothing more.
    to, subject = _text(fields, "properties.to") if address else None, _text(fields, "properties.subject")
    return muxer, destination_said(node.name, to, subject, name_bytes_max=context.config.name_bytes_max), None


def _address_of(fields: Fields) -> str:
    address = _text(fields, "properties.to")
    if not address:
        raise Refused("amqp:invalid-field", "a message to the anonymous terminus names no address in `to`")
    return address


def _text(fields: Fields, name: str) -> str | None:
    value = fields.get(name)
    return value if value is not ABSENT and isinstance(value, str) else None


def _explain_route(state: State, command: ExplainRoute, context: DecisionContext) -> Decision:
    explained = explain(state, command.address, context.router.fields_of(command.body), context)
    return [], [Answered(command.key, command.read(state, explained))]


EXPLAIN_DECISIONS: dict[type, Callable[[State, Any, DecisionContext], Decision]] = {ExplainRoute: _explain_route}
