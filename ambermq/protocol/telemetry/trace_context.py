"""The trace context of a message: the W3C fields `traceparent` and `tracestate`, where clients put them.

    application-properties   traceparent, then Diagnostic-Id of Azure
    message-annotations      traceparent, then x-opt-traceparent

Rule 1. Only the first 64 KiB of a message are read. Sections that do not end there count as absent.
Rule 2. A message without these words costs one search of its bytes, and is not decoded.
Rule 3. A context that is not valid counts as absent. No call raises.
"""

import re
from typing import Final, NamedTuple

from ambermq.protocol.amqp10.types.decode import Buffer
from ambermq.protocol.gateway.links.routing_fields import RoutingFields

__all__ = ["TraceContext", "message_head", "trace_context"]

_HEAD_BYTES: Final = 64 << 10
_NAMES: Final = ("traceparent", "Diagnostic-Id", "annotations.traceparent", "annotations.x-opt-traceparent")
_STATES: Final = ("tracestate", "annotations.tracestate", "annotations.x-opt-tracestate")
_STATE_LENGTH_MAX: Final = 512
_PARENT: Final = re.compile(r"(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.ASCII)
_PARENT_LENGTH_MAX: Final = 256


class TraceContext(NamedTuple):
    """The span that a message comes from."""

    trace_id: int
    span_id: int
    is_sampled: bool
    state: str
    """The `tracestate`; empty without one."""


def message_head(body: Buffer) -> bytes | None:
    """Return the first bytes of a message if they may have a trace context."""
    head = bytes(memoryview(body)[:_HEAD_BYTES])
    return head if b"traceparent" in head or b"Diagnostic-Id" in head else None


def trace_context(head: bytes) -> TraceContext | None:
    """Return the trace context of a message, by its first bytes; None if it has none that is valid."""
    fields = RoutingFields(head)
    for name in _NAMES:
        value = fields.get(name)
        if isinstance(value, str) and len(value) <= _PARENT_LENGTH_MAX:
            return _parsed(value, fields)
    return None


def _parsed(parent: str, fields: RoutingFields) -> TraceContext | None:
    found = _PARENT.fullmatch(parent)
    if found is None or (parent.startswith("00") and found[4]):
        return None
    trace_id, span_id = int(found[1], 16), int(found[2], 16)
    if not trace_id or not span_id:
        return None
    return TraceContext(trace_id, span_id, bool(int(found[3], 16) & 1), _state(fields))


def _state(fields: RoutingFields) -> str:
    for name in _STATES:
        value = fields.get(name)
        if isinstance(value, str) and len(value) <= _STATE_LENGTH_MAX:
            return str(value)
    return ""
