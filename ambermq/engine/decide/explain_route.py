"""The explanation of a route: where a message would go, and why, without publishing it.

Rule 1. The route is the same as that of a message on a link to the address, in the same tick.
Rule 2. Nothing is drawn: a LOSSY muxer keeps the message, and the explanation has its probability.
Rule 3. Nothing is created: if a link would create the queue of its address, the explanation says so.
Rule 4. The sender is unknown. So no-local subscriptions get the message, and the presence of consumers does not matter.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from ambermq.engine.address import NodeKind, parse_address
from ambermq.engine.commands import ExplainRoute
from ambermq.engine.decide.context import Decision, DecisionContext
from ambermq.engine.decide.node_names import message_destination, muxer_id, queue_muxer, topic_muxer
from ambermq.engine.decide.wiring import create_queue
from ambermq.engine.effects import Answered
from ambermq.engine.errors import Refused
from ambermq.engine.model.muxer import MuxerKind
from ambermq.engine.model.state import State
from ambermq.engine.routing.router import Hop
from ambermq.engine.selectors.fields import Fields, text_of

__all__ = ["EXPLAIN_DECISIONS", "Explained", "explain"]


class Explained(NamedTuple):
    """The route of one message."""

    muxer: int
    """The first muxer."""
    destination: str
    hops: tuple[Hop, ...]
    """The muxers that the message visits, in order."""
    queues: tuple[int, ...]
    """The queues that it reaches, each once, in order."""
    lossy: tuple[int, ...]
    """The muxers on the path that would draw for it."""
    creates: str | None = None
    """The queue that a link to the address creates; the message then reaches it too."""


def explain(state: State, address: str, fields: Fields, context: DecisionContext) -> Explained:
    """Return the route of a message to an address; if `address` is empty, to the address in its `to`.

    Raises Refused in the same cases as publishing.
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
    """Return the first muxer, the destination, and the name of the queue that would be created."""
    node = parse_address(address or _address_of(fields), name_bytes_max=context.config.name_bytes_max)
    if node.kind is NodeKind.QUEUE:
        first = queue_muxer(state, node.name)
        is_new = node.name not in state.queue_names
        if is_new:
            create_queue(state, node.name, context)  # only for its refusals
        return first, node.name, node.name if is_new else None
    if node.kind is NodeKind.TOPIC:
        return topic_muxer(state, node.name), node.name, None
    muxer = muxer_id(state, node.name)
    if node.destination is not None:
        return muxer, node.destination, None
    # Without a link's address `to` is the address, so it cannot name the destination too.
    to, subject = text_of(fields, "properties.to") if address else None, text_of(fields, "properties.subject")
    return muxer, message_destination(node.name, to, subject, name_bytes_max=context.config.name_bytes_max), None


def _address_of(fields: Fields) -> str:
    address = text_of(fields, "properties.to")
    if not address:
        raise Refused("amqp:invalid-field", "a message to the anonymous terminus names no address in `to`")
    return address


def _explain_route(state: State, command: ExplainRoute, context: DecisionContext) -> Decision:
    explained = explain(state, command.address, context.router.fields_of(command.body), context)
    return [], [Answered(command.key, command.read(state, explained))]


EXPLAIN_DECISIONS: dict[type, Callable[[State, Any, DecisionContext], Decision]] = {ExplainRoute: _explain_route}
