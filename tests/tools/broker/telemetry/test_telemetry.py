"""Spans of messages: a real broker, a client that sends trace contexts, and collectors that are good, bad or absent."""

import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from proton import Message
from proton.utils import BlockingConnection

from ambermq.protocol.telemetry.span import Span
from ambermq.protocol.telemetry.trace_context import TraceContext
from ambermq.tools.broker.child_broker import ChildBroker
from ambermq.tools.broker.telemetry.span_export import SpanExport
from ambermq.tools.broker.telemetry.telemetry import open_telemetry
from ambermq.tools.config.telemetry_settings import TelemetryConfig
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode

_TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
_SPAN = "00f067aa0ba902b7"
_PARENT = f"00-{_TRACE}-{_SPAN}-01"
_SPANS_OF_A_MESSAGE = 3

Answer = Callable[[BaseHTTPRequestHandler], None]


class _Server(ThreadingHTTPServer):
    """It does not wait for its threads, and prints no error of them."""

    daemon_threads = True
    block_on_close = False

    def handle_error(self, *_: object) -> None:
        """Ignore a client that is gone."""


@contextmanager
def collector(answer: Answer) -> Iterator[tuple[str, list[Any]]]:
    """Run a collector; yield its URL, and the spans with their resources that it gets."""
    spans: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.path == "/v1/traces":
                for found in ExportTraceServiceRequest.FromString(body).resource_spans:
                    spans.extend((found.resource, one) for scope in found.scope_spans for one in scope.spans)
            else:
                spans.append("redirected")
            answer(self)

        def do_GET(self) -> None:
            spans.append("redirected")

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with _Server(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/v1/traces", spans
        server.shutdown()


def good(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "0")
    handler.end_headers()


def rejecting(handler: BaseHTTPRequestHandler) -> None:
    body = ExportTraceServiceResponse(partial_success={"rejected_spans": 2}).SerializeToString()
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


def failing(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(500)
    handler.end_headers()


def redirecting(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(307)
    handler.send_header("Location", "/elsewhere")
    handler.end_headers()


def silent(handler: BaseHTTPRequestHandler) -> None:
    time.sleep(30)


def endless_head(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
    while True:
        handler.wfile.write(b"x: " + b"y" * 1000 + b"\r\n")


def endless_body(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(500)
    handler.end_headers()
    while True:
        handler.wfile.write(b"y" * 65536)


@contextmanager
def broker(tmp_path: Path, endpoint: str, *settings: str) -> Iterator[tuple[ChildBroker, str]]:
    """Run a broker with telemetry; yield it, and the URL of its metrics."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{found.getsockname()[1]}"
    values = (f"telemetry.endpoint={endpoint}", "telemetry.timeout_ms=500", *settings)
    arguments = [word for value in values for word in ("--set", value)]
    child = ChildBroker(tmp_path / "data", arguments=("--http", place, *arguments))
    child.start()
    try:
        yield child, f"http://{place}/metrics"
    finally:
        child.stop()


def send_and_receive(url: str, *messages: Message, queue: str = "orders") -> list[Message]:
    """Send messages, receive as many, and accept them."""
    connection = BlockingConnection(url, timeout=10)
    try:
        sender = connection.create_sender(queue)
        for message in messages:
            sender.send(message)
        receiver = connection.create_receiver(queue, credit=len(messages))
        found = []
        for _ in messages:
            found.append(receiver.receive(timeout=10))
            receiver.accept()
        return found
    finally:
        connection.close()


def dropped(metrics: str) -> int:
    """Return the dropped spans of the metrics."""
    with urlopen(metrics, timeout=10) as answer:
        text = answer.read().decode()
    found = re.search(r"^ambermq_telemetry_spans_dropped_total (\S+)$", text, re.MULTILINE)
    assert found is not None
    return int(float(found[1]))


def wait_until(is_so: Callable[[], bool]) -> None:
    """Wait until something holds, at most 15 seconds."""
    end = time.monotonic() + 15
    while not is_so():
        assert time.monotonic() < end, "it does not hold"
        time.sleep(0.05)


def values(pairs: Any) -> dict[str, Any]:
    """Return attributes of the protobuf."""
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in pairs}


def test_publish_deliver_and_settle_of_a_message(tmp_path: Path) -> None:
    """Each is a child of the message's context and links it; messages without a sampled context have no spans."""
    messages = [
        Message(body="secret", durable=True, properties={"traceparent": _PARENT, "tracestate": "a=b"}),
        Message(body="plain", durable=True),
        Message(body="unsampled", durable=True, properties={"traceparent": _PARENT[:-1] + "0"}),
        Message(body="malformed", durable=True, properties={"traceparent": "00-" + "z" * 500}),
        Message(body="azure", durable=True, properties={"Diagnostic-Id": _PARENT}),
    ]
    with (
        collector(good) as (endpoint, spans),
        broker(tmp_path, endpoint, "telemetry.service_name=shop") as (child, metrics),
    ):
        assert [one.body for one in send_and_receive(child.url, *messages)] == [one.body for one in messages]
        wait_until(lambda: len(spans) >= 2 * _SPANS_OF_A_MESSAGE)
        assert dropped(metrics) == 0
    assert sorted(span.name for _, span in spans) == sorted(["publish orders", "deliver orders", "settle orders"] * 2)
    for resource, span in spans:
        assert values(resource.attributes)["service.name"] == "shop"
        assert (span.trace_id.hex(), span.parent_span_id.hex()) == (_TRACE, _SPAN)
        assert [(one.trace_id.hex(), one.span_id.hex()) for one in span.links] == [(_TRACE, _SPAN)]
        assert span.start_time_unix_nano <= span.end_time_unix_nano
        assert b"secret" not in span.SerializeToString()
        told = values(span.attributes)
        assert told["messaging.system"] == "ambermq"
        assert told["messaging.destination.name"] == "orders"
        assert told["messaging.operation.name"] == span.name.split()[0]
        assert told.get("ambermq.outcome") == ("accepted" if span.name.startswith("settle") else None)
    assert {span.trace_state for _, span in spans} == {"a=b", ""}


def test_of_a_trace_all_spans_or_none(tmp_path: Path) -> None:
    """The per cent are of traces."""
    traces = [f"{number * (1 << 64) // 40:032x}" for number in range(1, 40)]
    messages = [Message(body="x", properties={"traceparent": f"00-{one}-{_SPAN}-01"}) for one in traces]
    with (
        collector(good) as (endpoint, spans),
        broker(tmp_path, endpoint, "telemetry.sample_percent=50") as (child, _),
    ):
        send_and_receive(child.url, *messages)
    assert {span.trace_id.hex() for _, span in spans} == set(traces[:19])
    assert len(spans) == 19 * _SPANS_OF_A_MESSAGE


@pytest.mark.parametrize("answer", [failing, redirecting, silent, endless_head, endless_body])
def test_a_hostile_collector_costs_the_counter_alone(tmp_path: Path, answer: Answer) -> None:
    """Messages go on, each span is counted once, one log line tells it, and the stop waits for one timeout."""
    message = Message(body="x", durable=True, properties={"traceparent": _PARENT})
    with collector(answer) as (endpoint, spans):
        with broker(tmp_path, endpoint) as (child, metrics):
            send_and_receive(child.url, *[message] * 20)
            wait_until(lambda: dropped(metrics) == 20 * _SPANS_OF_A_MESSAGE)
            began = time.monotonic()
        assert time.monotonic() - began < 5
    assert "redirected" not in spans
    log = child.stderr_path.read_text()
    assert 1 <= log.count("spans dropped") <= 2
    assert "Traceback" not in log
    assert "Failed to export" not in log


def test_a_collector_that_is_down_and_a_full_queue(tmp_path: Path) -> None:
    """Every span counts once, whether the queue was full or the collector did not take it."""
    message = Message(body="x", properties={"traceparent": _PARENT})
    with broker(tmp_path, "http://127.0.0.1:9/v1/traces", "telemetry.queue_max=5") as (child, metrics):
        send_and_receive(child.url, *[message] * 30)
        wait_until(lambda: dropped(metrics) == 30 * _SPANS_OF_A_MESSAGE)


def test_spans_that_a_collector_rejects_are_counted(tmp_path: Path) -> None:
    """It takes a part of a request, and answers 200."""
    message = Message(body="x", properties={"traceparent": _PARENT})
    with collector(rejecting) as (endpoint, spans), broker(tmp_path, endpoint) as (child, metrics):
        send_and_receive(child.url, message)
        wait_until(lambda: len(spans) == _SPANS_OF_A_MESSAGE and dropped(metrics) > 0)
        assert dropped(metrics) % 2 == 0


def test_messages_under_way_are_bounded(tmp_path: Path) -> None:
    """A consumer that settles nothing holds spans for no more messages than the key allows."""
    message = Message(body="x", properties={"traceparent": _PARENT})
    with (
        collector(good) as (endpoint, _),
        broker(tmp_path, endpoint, "telemetry.messages_max=5") as (child, metrics),
    ):
        connection = BlockingConnection(child.url, timeout=10)
        sender, receiver = connection.create_sender("orders"), connection.create_receiver("orders", credit=20)
        for _ in range(20):
            sender.send(message)
        for _ in range(20):
            receiver.receive(timeout=10)
        wait_until(lambda: dropped(metrics) == 15)
        connection.close()


def test_a_start_without_the_extra(tmp_path: Path) -> None:
    """One message and exit code 2, before a data directory is made."""
    code = (
        "import sys; sys.modules['opentelemetry'] = None; "
        "from ambermq.tools.cli import main; main(sys.argv[1:], prog_name='ambermq')"
    )
    directory = tmp_path / "data"
    words = ("serve", "--data", str(directory), "--port", "0", "--set", "telemetry.endpoint=http://127.0.0.1:9/")
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == ExitCode.USAGE, done.stderr
    assert "pip install 'ambermq[otel]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_wrong_variable_of_opentelemetry_is_one_message(tmp_path: Path) -> None:
    """It reads some variables when it is imported."""
    words = ("-m", "ambermq", "serve", "--data", str(tmp_path / "data"), "--port", "0")
    words += ("--set", "telemetry.endpoint=http://127.0.0.1:9/")
    environment = os.environ | {"OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT": "q"}
    done = subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, timeout=60, check=False, env=environment
    )
    assert (done.returncode, "OTEL_*" in done.stderr) == (ExitCode.USAGE, True), done.stderr
    assert "Traceback" not in done.stderr


def test_a_span_that_cannot_be_made_costs_itself_alone() -> None:
    """The others of its batch are sent."""
    with collector(good) as (endpoint, spans):
        export = SpanExport(TelemetryConfig(endpoint=endpoint))
        context = TraceContext(int(_TRACE, 16), int(_SPAN, 16), is_sampled=True, state="")
        sent = [(Span(name, context, "default", "q", 1), 2) for name in ("publish", "unknown", "settle")]
        assert export.send(sent) == 2
    assert sorted(span.name for _, span in spans) == ["publish q", "settle q"]


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """One message names the extra."""
    monkeypatch.delitem(sys.modules, "ambermq.tools.broker.telemetry.span_export", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    with pytest.raises(ToolError, match=r"pip install 'ambermq\[otel\]'") as caught:
        open_telemetry(TelemetryConfig(endpoint="http://127.0.0.1/"))
    assert caught.value.exit_code == ExitCode.USAGE


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("endpoint=collector:4318", "a URL"),
        ("endpoint=http://x:99999/", "a URL"),
        ("sample_percent=101", "at most 100"),
        ("service_name=", "a name"),
    ],
)
def test_wrong_values(run: Any, tmp_path: Path, value: str, expected: str) -> None:
    """They are told at the start."""
    found = run("serve", "--data", str(tmp_path / "data"), "--port", "0", "--set", f"telemetry.{value}")
    assert found.exit_code == ExitCode.USAGE
    assert expected in found.stderr


@pytest.mark.parametrize("endpoint", ["http://ann:s3@cret@x:99999/?key=s3cret", "htp://ann:s3@cret@x/", "ann:s3cret@x"])
def test_the_error_of_an_endpoint_has_no_secret(run: Any, tmp_path: Path, endpoint: str) -> None:
    """Neither the password nor the query is in it."""
    found = run("serve", "--data", str(tmp_path / "data"), "--port", "0", "--set", f"telemetry.endpoint={endpoint}")
    assert found.exit_code == ExitCode.USAGE
    assert "found x" in found.stderr
    assert "s3" not in found.stderr
    assert "cret" not in found.stderr


def test_a_broker_without_an_endpoint_imports_no_telemetry() -> None:
    """The modules of a start hold the table of the configuration, and nothing else of it."""
    code = "import sys, ambermq.tools.broker.serve; print(*[name for name in sys.modules if 'telemetry' in name])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["ambermq.tools.config.telemetry_settings"]
