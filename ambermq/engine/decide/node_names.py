"""The nodes of addresses, and the names that the broker chooses: `$temporary.N` and `$subscription.N`.

N is the offset of the event that created the node.

Rule: an address with such a name never creates a node. So a reply to a temporary queue that has ended creates no queue.
"""

from typing import Final

from ambermq.engine.address import NodeKind, parse_address
from ambermq.engine.errors import Refused
from ambermq.engine.model.muxer import QUEUE_MUXER, TOPIC_MUXER
from ambermq.engine.model.state import State

__all__ = [
    "ADVANCED_MODE",
    "check_name_allowed",
    "message_destination",
    "muxer_id",
    "node_at",
    "queue_muxer",
    "subscription_name",
    "temporary_name",
    "topic_muxer",
]

_TEMPORARY: Final = "$temporary."
_SUBSCRIPTION: Final = "$subscription."
ADVANCED_MODE: Final = "this virtual host is in advanced mode"
"""The wording of refusals in an advanced virtual host."""
_INSTEAD: Final = "declare muxers, attach queues, and send to /muxers/NAME"


def temporary_name(offset: int) -> str:
    """Return the name of a temporary queue or topic."""
    return f"{_TEMPORARY}{offset}"


def subscription_name(offset: int) -> str:
    """Return the name of a subscription's queue, and of the muxer of its selector."""
    return f"{_SUBSCRIPTION}{offset}"


def check_name_allowed(name: str) -> None:
    """Raise Refused with amqp:not-found for a name that only the broker may choose; no queue has it."""
    if name.startswith("$"):
        raise Refused("amqp:not-found", f"no queue {name!r}: names that begin with $ are given by the broker")


def queue_muxer(state: State, name: str) -> int:
    """Return the id of the muxer for messages to a queue's address. Raises Refused."""
    muxer = state.muxer_names.get(QUEUE_MUXER)
    if muxer is None:
        raise Refused("amqp:not-found", f"nothing leads to {name!r:.80}: {ADVANCED_MODE}; {_INSTEAD}")
    return muxer


def topic_muxer(state: State, name: str) -> int:
    """Return the id of the muxer for messages to a topic: TOPIC, or the temporary topic itself. Raises Refused."""
    if not name.startswith("$"):
        muxer_of_all = state.muxer_names.get(TOPIC_MUXER)
        if muxer_of_all is None:
            raise Refused("amqp:not-found", f"no topic {name!r:.80}: {ADVANCED_MODE}; {_INSTEAD}")
        return muxer_of_all
    muxer = state.muxer_named(name) if name.startswith(_TEMPORARY) else None
    if muxer is None:
        raise Refused("amqp:not-found", f"no topic {name!r}: names that begin with $ are given by the broker")
    return muxer.id


def muxer_id(state: State, name: str) -> int:
    """Return the id of a muxer. Raises Refused."""
    muxer = state.muxer_names.get(name)
    if muxer is None:
        raise Refused("amqp:not-found", f"no muxer {name!r}")
    return muxer


def message_destination(muxer: str, to: str | None, subject: str | None, *, name_bytes_max: int) -> str:
    """Return the destination of a message that is sent to a muxer's address: its `to`, else its `subject`.

    JMS clients write the address of their link into `to`. Then the destination is the text after the muxer's name.
    """
    if to and to.startswith("/"):
        try:
            address = parse_address(to, name_bytes_max=name_bytes_max)
        except Refused:
            return to
        if (address.kind, address.name) == (NodeKind.MUXER, muxer):
            to = address.destination
    return to or subject or ""


def node_at(state: State, muxer: int, destination: str | None) -> int:
    """Return the queue or muxer that a producer sends to, if it has a lifetime policy; else 0."""
    if muxer == state.muxer_names.get(QUEUE_MUXER):
        queue = state.queue_named(destination or "")
        return queue.id if queue is not None and queue.lifetime else 0
    found = state.muxers.get(muxer)
    return muxer if found is not None and found.options.lifetime else 0
