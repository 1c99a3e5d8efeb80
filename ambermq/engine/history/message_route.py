"""The muxers and attachments by which a message reached its queues, in the wiring at the time of its publish.

Rule: the log names the queues. If a route to one has a LOSSY muxer, that muxer has sent the message on.
"""

from collections.abc import Iterable
from typing import NamedTuple

from ambermq.engine.model.attachment import Attachment
from ambermq.engine.model.state import State
from ambermq.engine.routing.router import Hop

__all__ = ["Passage", "message_routes"]


class Passage(NamedTuple):
    """One muxer on a route, and the attachment by which it sent the message on."""

    muxer: str
    """The name of the muxer."""
    attachment: Attachment


def message_routes(state: State, hops: Iterable[Hop]) -> dict[int, tuple[Passage, ...]]:
    """Return the first route from the first muxer to each queue; `hops` are in the order of routing."""
    muxer_routes: dict[int, tuple[Passage, ...]] = {}
    queue_routes: dict[int, tuple[Passage, ...]] = {}
    for hop in hops:
        route, name = muxer_routes.setdefault(hop.muxer, ()), state.muxers[hop.muxer].name
        for attachment in hop.attachments:
            routes = queue_routes if attachment.member in state.queues else muxer_routes
            routes.setdefault(attachment.member, (*route, Passage(name, attachment)))
    return queue_routes
