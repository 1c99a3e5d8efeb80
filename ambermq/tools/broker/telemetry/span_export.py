"""Spans of messages as OpenTelemetry has them, sent by OTLP over HTTP.

Rule 1. Attributes follow the conventions of OpenTelemetry for messaging. No body is in them.
Rule 2. The session follows no redirect, reads an answer once, and takes no proxy from the environment.
Rule 3. The library's own log lines are off: the counter tells what the collector did not get.
"""

import logging
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any, Final, final

from google.protobuf.message import DecodeError
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, TraceFlags, TraceState
from requests import PreparedRequest, Response, Session
from requests.exceptions import RequestException
from urllib3.exceptions import HTTPError

from ambermq import __version__
from ambermq.protocol.telemetry.span import Span
from ambermq.protocol.telemetry.trace_context import TraceContext
from ambermq.tools.config.telemetry_settings import TelemetryConfig

__all__ = ["SpanExport"]

_TYPES: Final = {"publish": "send", "deliver": "receive", "settle": "settle"}
"""The operation types of the conventions."""
_KINDS: Final = {"publish": SpanKind.SERVER, "deliver": SpanKind.PRODUCER, "settle": SpanKind.SERVER}
_ANSWER_BYTES_MAX: Final = 4096
_QUIET: Final = ("opentelemetry", "urllib3", "requests")


@final
class SpanExport:
    """Sends spans to a collector; for one thread."""

    def __init__(self, config: TelemetryConfig) -> None:
        for name in _QUIET:
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
        session = self._session = _Session()
        session.trust_env = False
        # An answer is read as it comes.
        session.headers["Accept-Encoding"] = "identity"
        self._exporter = OTLPSpanExporter(config.endpoint, session=session, timeout=config.timeout_ms / 1000)
        self._resource = Resource({"service.name": config.service_name, "service.version": __version__})
        self._scope = InstrumentationScope("ambermq", __version__)
        self._ids = RandomIdGenerator()

    def send(self, spans: Sequence[tuple[Span, int]]) -> int:
        """Send spans with the times of their ends; return how many the collector took."""
        self._session.rejected = 0
        readable = [one for each in spans if (one := self._readable_or_none(*each)) is not None]
        is_taken = self._exporter.export(readable) is SpanExportResult.SUCCESS
        return max(0, len(readable) - self._session.rejected) if is_taken else 0

    def _readable_or_none(self, span: Span, end_ns: int) -> ReadableSpan | None:
        """Return a span as the library has it; None if it cannot be made, which costs this span alone."""
        try:
            return self._readable(span, end_ns)
        except Exception:  # noqa: BLE001 - whatever the library dislikes of a client's text
            return None

    def _readable(self, span: Span, end_ns: int) -> ReadableSpan:
        parent = _context(span.parent)
        own = SpanContext(
            parent.trace_id,
            self._ids.generate_span_id(),
            is_remote=False,
            trace_flags=parent.trace_flags,
            trace_state=parent.trace_state,
        )
        return ReadableSpan(
            f"{span.operation} {span.destination}".rstrip(),
            context=own,
            parent=parent,
            resource=self._resource,
            attributes=_attributes(span),
            links=(Link(parent),),
            kind=_KINDS[span.operation],
            start_time=span.start_ns,
            end_time=max(end_ns, span.start_ns),
            instrumentation_scope=self._scope,
        )


class _Session(Session):
    """Requests whose answers are a status, headers, and the number of rejected spans."""

    rejected = 0
    """The spans that the last answer rejects: an answer 200 may take a part of them."""

    def send(self, request: PreparedRequest, **options: Any) -> Response:
        """Send a request. Raises RequestException for a redirect, which the exporter takes for a success."""
        found = super().send(request, **{**options, "stream": True, "allow_redirects": False})
        try:
            answer = Response()
            answer.status_code, answer.reason, answer.headers = found.status_code, found.reason, found.headers
            self.rejected = _rejected(found) if found.status_code == HTTPStatus.OK else 0
        finally:
            found.close()
        if 300 <= answer.status_code < 400:
            raise RequestException(f"redirected with status {answer.status_code}")
        return answer


def _rejected(found: Response) -> int:
    """Return the number of spans that an answer rejects; 0 if its first bytes do not say so.

    Only what one read gives is looked at, so an endless answer costs nothing.
    """
    try:
        told = ExportTraceServiceResponse.FromString(found.raw.read1(_ANSWER_BYTES_MAX))
    except (DecodeError, HTTPError, OSError):
        return 0
    rejected: int = told.partial_success.rejected_spans
    return max(0, rejected)


def _context(found: TraceContext) -> SpanContext:
    state = TraceState.from_header([found.state]) if found.state else None
    return SpanContext(found.trace_id, found.span_id, is_remote=True, trace_flags=TraceFlags(1), trace_state=state)


def _attributes(span: Span) -> dict[str, str | int]:
    attributes: dict[str, str | int] = {
        "messaging.system": "ambermq",
        "messaging.destination.name": span.destination,
        "messaging.operation.name": span.operation,
        "messaging.operation.type": _TYPES[span.operation],
        "messaging.message.envelope.size": span.size,
        "ambermq.vhost": span.vhost,
    }
    if span.outcome:
        attributes["ambermq.outcome"] = span.outcome
    return attributes
