"""By which muxers and attachments a message came to its queues, in the wiring that there was when it was published.

Rule: the queues are those that the log names. A LOSSY muxer on the way has passed the message on, for they got it.
"""

from collections.abc import Iterable
from typing import NamedTuple

from ambermq.engine.model.attachment import Attachment
from ambermq.engine.model.state import State
from ambermq.engine.routing.router import Hop

__all__ = ["Passage", "routes_taken"]


class Passage(NamedTuple):
    """One muxer on a way, and the attachment that it passed the message on by."""

    muxer: str
    """Its name."""
    attachment: Attachment


def routes_taken(state: State, hops: Iterable[Hop]) -> dict[int, tuple[Passage, ...]]:
    """Return the first way from the first muxer to each queue that it leads to; `hops` as routing went."""
    before: dict[int, tuple[Passage, ...]] = {}
    ways: dict[int, tuple[Passage, ...]] = {}
    for hop in hops:
        so_far, name = before.setdefault(hop.muxer, ()), state.muxers[hop.muxer].name
        for attachment in hop.attachments:
            reached = ways if attachment.member in state.queues else before
            reached.setdefault(attachment.member, (*so_far, Passage(name, attachment)))
    return ways
