"""What addresses stand for, and names that the broker gives: `$temporary.N` and `$subscription.N`.

N is the offset of the record that made it.

Rule: nothing is made at such a name by asking for it. So who answers to a temporary queue that is gone makes no queue.
"""

from typing import Final

from ambermq.engine.address import NodeKind, parse_address
from ambermq.engine.errors import Refused
from ambermq.engine.model.muxer import QUEUE_MUXER, TOPIC_MUXER
from ambermq.engine.model.state import State

__all__ = [
    "BARE",
    "check_ungiven",
    "destination_said",
    "muxer_id",
    "node_at",
    "queue_muxer",
    "subscription_name",
    "temporary_name",
    "topic_muxer",
]

_TEMPORARY: Final = "$temporary."
_SUBSCRIPTION: Final = "$subscription."
BARE: Final = "this virtual host is in advanced mode"
"""As refusals say it."""
_INSTEAD: Final = "declare muxers, attach queues, and send to /muxers/NAME"


def temporary_name(offset: int) -> str:
    """Return the name of a temporary queue or topic."""
    return f"{_TEMPORARY}{offset}"


def subscription_name(offset: int) -> str:
    """Return the name of a subscription's queue, and of its muxer where it has a selector."""
    return f"{_SUBSCRIPTION}{offset}"


def check_ungiven(name: str) -> None:
    """Raise Refused with amqp:not-found for a name that nothing is made by: there is no such queue, or no more."""
    if name.startswith("$"):
        raise Refused("amqp:not-found", f"no queue {name!r}: names that begin with $ are given by the broker")


def queue_muxer(state: State, name: str) -> int:
    """Return the id of the muxer that messages to a queue's address go to. Raises Refused."""
    muxer = state.muxer_names.get(QUEUE_MUXER)
    if muxer is None:
        raise Refused("amqp:not-found", f"nothing leads to {name!r:.80}: {BARE}; {_INSTEAD}")
    return muxer


def topic_muxer(state: State, name: str) -> int:
    """Return the id of the muxer that messages to a topic go to: TOPIC, or a temporary topic's own. Raises Refused."""
    if not name.startswith("$"):
        muxer_of_all = state.muxer_names.get(TOPIC_MUXER)
        if muxer_of_all is None:
            raise Refused("amqp:not-found", f"no topic {name!r:.80}: {BARE}; {_INSTEAD}")
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


def destination_said(muxer: str, to: str | None, subject: str | None, *, name_bytes_max: int) -> str:
    """Return what a message is for that is sent to a muxer's address: its `to`, else its `subject`.

    Clients of JMS write the address of their link into `to`: what follows the muxer's name there is meant, if anything.
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
    """Return the queue or muxer with an end that a producer to a muxer, for a destination, sends to; 0 for others."""
    if muxer == state.muxer_names.get(QUEUE_MUXER):
        queue = state.queue_named(destination or "")
        return queue.id if queue is not None and queue.lifetime else 0
    found = state.muxers.get(muxer)
    return muxer if found is not None and found.options.lifetime else 0
