"""The queue of spans between the event loop and the collector.

    add (event loop) -> queue of at most queue_max -> thread: a batch each second, or each 512 spans -> collector

Rule 1. Two counters, each of one thread: the spans that found the queue full, and those that no collector got.
"""

import time
from collections import deque
from collections.abc import Callable, Sequence
from threading import Event, Thread
from typing import Final, final

import structlog

from ambermq.protocol.gateway.gateway import Gateway
from ambermq.protocol.telemetry.message_tracer import MessageTracer
from ambermq.protocol.telemetry.span import Span
from ambermq.protocol.telemetry.traced_engine import TracedEngine
from ambermq.tools.config.telemetry_settings import TelemetryConfig
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode

__all__ = ["EndedSpan", "Telemetry", "open_telemetry"]

_BATCH_MAX: Final = 512
_PAUSE_SECONDS: Final = 1.0
_NOTICE_SECONDS: Final = 60.0

EndedSpan = tuple[Span, int]
"""A span, and the time of its end in Unix nanoseconds."""


@final
class Telemetry:
    """Takes the spans of all virtual hosts."""

    def __init__(self, config: TelemetryConfig, send: Callable[[Sequence[EndedSpan]], int]) -> None:
        """`send` brings spans to the collector, and returns how many it took; the thread calls it."""
        self.sample_percent = config.sample_percent
        self.messages_max = config.messages_max
        self.now_ns = time.time_ns
        self._config = config
        self._send = send
        self._queue: deque[EndedSpan] = deque()
        self._refused = self._failed = 0
        self._sending = 0
        """The spans of the request under way."""
        self._told = 0
        """The dropped spans that the log has told."""
        self._notice_s = -_NOTICE_SECONDS
        self._wake = Event()
        self._is_ending = False
        self._thread = Thread(target=self._run, name="telemetry", daemon=True)
        self._thread.start()

    @property
    def dropped(self) -> int:
        """The spans that the collector did not get."""
        return self._refused + self._failed

    def add(self, span: Span) -> None:
        """Queue a span that ends now; drop it if the queue is full."""
        if len(self._queue) >= self._config.queue_max:
            self._refused += 1
            return
        self._queue.append((span, time.time_ns()))
        if len(self._queue) == _BATCH_MAX:
            self._wake.set()

    def drop(self, count: int) -> None:
        """Count spans that are not made."""
        self._refused += count

    def trace(self, gateway: Gateway) -> None:
        """Make spans of the messages of a virtual host, from its start on."""
        engine = gateway.engine

        def queue_name(queue_id: int) -> str:
            queue = engine.state.queues.get(queue_id)
            return "" if queue is None else queue.name

        tracer = MessageTracer(gateway.vhost, queue_name, self)
        gateway.engine = TracedEngine(engine, tracer)
        gateway.observe = tracer.observe
        gateway.figures["telemetry_spans_dropped"] = lambda: self.dropped

    def close(self) -> None:
        """Send the last spans, for at most the time of one request."""
        self._is_ending = True
        self._wake.set()
        self._thread.join(self._config.timeout_ms / 1000)
        spans = self.dropped - self._told + self._sending + len(self._queue)
        if spans:
            self._warn(spans)

    def _run(self) -> None:
        while not self._is_ending:
            self._wake.wait(_PAUSE_SECONDS)
            self._wake.clear()
            while self._queue and self._send_batch() and not self._is_ending:
                pass
            self._tell()
        while self._queue:
            self._send_batch()

    def _send_batch(self) -> bool:
        """Send some spans; return whether the collector took any."""
        batch = [self._queue.popleft() for _ in range(min(_BATCH_MAX, len(self._queue)))]
        try:
            self._sending = len(batch)
            taken = self._send(batch)
        except Exception:  # noqa: BLE001 - whatever the library or the collector does costs these spans alone
            taken = 0
        self._failed += len(batch) - taken
        self._sending = 0
        return taken > 0

    def _tell(self) -> None:
        now_s = time.monotonic()
        if self.dropped > self._told and now_s - self._notice_s >= _NOTICE_SECONDS:
            spans, self._told, self._notice_s = self.dropped - self._told, self.dropped, now_s
            self._warn(spans)

    def _warn(self, spans: int) -> None:
        structlog.get_logger().warning(
            "spans dropped", spans=spans, collector=self._config.collector, advice="check the collector"
        )


def open_telemetry(config: TelemetryConfig) -> Telemetry:
    """Return the queue of spans, with its thread. Raises ToolError without the extra `otel`."""
    try:
        from ambermq.tools.broker.telemetry.span_export import SpanExport  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise ToolError(
            f"telemetry.endpoint needs the package {error.name}, which is not installed",
            advice="run `pip install 'ambermq[otel]'`",
            code=ExitCode.USAGE,
        ) from error
    except ValueError as error:
        raise _wrong_environment(error) from error
    try:
        export = SpanExport(config)
    except ValueError as error:
        raise _wrong_environment(error) from error
    return Telemetry(config, export.send)


def _wrong_environment(error: ValueError) -> ToolError:
    """Return the error for a variable `OTEL_...` that OpenTelemetry cannot use."""
    return ToolError(
        "OpenTelemetry refuses the environment",
        where="the variables OTEL_*",
        found=str(error)[:200],
        advice="unset or correct them",
        code=ExitCode.USAGE,
    )
