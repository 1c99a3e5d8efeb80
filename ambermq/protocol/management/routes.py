"""The route of a message at the `$management` node: the operation ROUTE explains where a message would go.

Rule 1. `name` is an address, empty for the anonymous terminus. The body has the fields of the message, by the names
        that conditions use.
Rule 2. Nothing is sent, created or drawn. ROUTE refuses what publishing refuses.
Rule 3. A route may be long: the answer has as many attachments and queues as a page has rows, and counts the others.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

from ambermq.engine.address import member_address
from ambermq.engine.commands import Command, ExplainRoute
from ambermq.engine.decide.explain_route import Explained
from ambermq.engine.errors import Refused
from ambermq.engine.model.muxer import MuxerKind
from ambermq.engine.model.state import State
from ambermq.engine.routing.router import Hop
from ambermq.protocol.management.attachments import attachment_attributes
from ambermq.protocol.management.sample_message import encode_sample_message

__all__ = ["ROUTE", "route", "route_attributes"]

ROUTE: Final = "ROUTE"


def route(request: Any, properties: Mapping[str, Any], body: Mapping[str, Any], results_max: int) -> Command:
    """Return the command of a request. Raises Refused for a bad address or a bad message."""
    address = properties.get("name", "")
    if not isinstance(address, str):
        raise Refused(
            "amqp:invalid-field", f"the application property `name` must be an address, found {address!r:.80}"
        )
    read = partial(route_attributes, results_max=results_max)
    return ExplainRoute(request, str(address), encode_sample_message(body), read)


def route_attributes(state: State, explained: Explained, *, results_max: int) -> dict[str, Any]:
    """Return the description of a route, with at most `results_max` attachments and queues."""
    first = state.muxers.get(explained.muxer)
    return {
        "muxer": None if first is None else first.name,
        "destination": explained.destination,
        "hops": list(_hops(state, explained.hops, results_max)),
        "queues": [member_address(state.queues[one].name) for one in explained.queues[:results_max]],
        "queue_count": len(explained.queues),
        "creates": None if explained.creates is None else member_address(explained.creates),
        "lossy": [state.muxers[one].name for one in explained.lossy],
    }


def _hops(state: State, hops: tuple[Hop, ...], rows_max: int) -> Iterator[dict[str, Any]]:
    for hop in hops:
        muxer = state.muxers[hop.muxer]
        shown = hop.attachments[:rows_max]
        rows_max -= len(shown)
        yield {
            "muxer": muxer.name,
            "class": muxer.kind.text,
            "probability": muxer.options.probability if muxer.kind is MuxerKind.LOSSY else None,
            "matched": len(hop.attachments),
            "attachments": [attachment_attributes(state, muxer, one) for one in shown],
        }
