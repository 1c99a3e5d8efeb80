"""Wiring and routes of a past state, as a broker in that state would return them."""

from collections.abc import Mapping
from typing import Any

from ambermq.engine.config import EngineConfig
from ambermq.engine.decide.context import DecisionContext
from ambermq.engine.decide.explain_route import explain
from ambermq.engine.errors import Refused
from ambermq.engine.model.state import State
from ambermq.engine.routing.router import Router
from ambermq.protocol.gateway.links.routing_fields import RoutingFields
from ambermq.protocol.management.attachments import attachment_attributes
from ambermq.protocol.management.muxers import muxer_attributes
from ambermq.protocol.management.routes import route_attributes
from ambermq.protocol.management.sample_message import encode_sample_message
from ambermq.tools.past.past_access import offset_of, opened_past, state_of
from ambermq.tools.past.queue_rows import queue_rows
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode
from ambermq.tools.wiring.rows import WiringRows

__all__ = ["route_at", "rows_at", "rows_of"]


def rows_at(url: str | None, data: str | None, at: str) -> WiringRows:
    """Return the wiring at a moment. Raises as `state_of`."""
    return rows_of(_state_at(url, data, at))


def rows_of(state: State) -> WiringRows:
    """Return the wiring in a state."""
    muxers = [muxer for _, muxer in sorted(state.muxers.items())]
    attachments = [
        attachment_attributes(state, muxer, attachment)
        for muxer in muxers
        for _, attachment in sorted(muxer.attachments.items())
    ]
    found = [muxer_attributes(state, muxer) for muxer in muxers]
    return WiringRows(found, list(queue_rows(state)), attachments)


def route_at(
    url: str | None,
    data: str | None,
    at: str,
    address: str,
    fields: Mapping[str, Any],
    results_max: int,
    config: EngineConfig,
) -> dict[str, Any]:
    """Return the route of a message with these fields at a moment. Raises as `state_of`, and ToolError.

    `config` is the broker's configuration, which its log does not have.
    """
    state = _state_at(url, data, at)
    try:
        body = encode_sample_message(fields)
        moment = DecisionContext(state.time_us, 0, 0, config, Router(RoutingFields))
        explained = explain(state, address, RoutingFields(body), moment)
    except Refused as refusal:
        code = ExitCode.NOT_FOUND if refusal.condition == "amqp:not-found" else ExitCode.FAILED
        raise ToolError(refusal.description, where=address or "anonymous", code=code) from refusal
    return route_attributes(state, explained, results_max=results_max)


def _state_at(url: str | None, data: str | None, at: str) -> State:
    with opened_past(url, data) as past:
        return state_of(past, offset_of(past, at))
