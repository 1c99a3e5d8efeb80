"""A span of a message, and where spans go."""

from typing import NamedTuple, Protocol

from ambermq.protocol.telemetry.trace_context import TraceContext

__all__ = ["Span", "SpanSink"]


class Span(NamedTuple):
    """What the broker did with one message of a trace."""

    operation: str
    """`publish`, `deliver` or `settle`."""
    parent: TraceContext
    """The context of the message."""
    vhost: str
    destination: str
    """The address of a publish, and otherwise the queue."""
    start_ns: int
    """The time in Unix nanoseconds."""
    size: int = 0
    """The bytes of the message; 0: not known."""
    outcome: str = ""
    """The outcome of a settle."""


class SpanSink(Protocol):
    """What takes spans; it never blocks and never raises."""

    sample_percent: int
    """Of 100 sampled traces so many have spans."""
    messages_max: int
    """The messages of a virtual host whose spans are under way."""

    def now_ns(self) -> int:
        """Return the time in Unix nanoseconds."""

    def add(self, span: Span) -> None:
        """Queue a span that ends now; drop it if the queue is full."""

    def drop(self, count: int) -> None:
        """Count spans that are not made."""
