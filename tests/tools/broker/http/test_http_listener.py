"""The HTTP listener of a real broker: health, readiness, metrics, and what it refuses."""

import contextlib
import http.client
import json
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ambermq.protocol.http.metric_table import METRICS, RECOVERY_METRICS
from ambermq.protocol.server_limits import ServerLimits
from ambermq.tools.broker.child_broker import ChildBroker
from ambermq.tools.broker.http.http_listener import recovery_listener
from ambermq.tools.broker.http.http_sockets import http_sockets
from tests.tools.conftest import Run

_ROOT = Path(__file__).parents[4]
_NAME = re.compile(r"\bambermq_\w+")


def free_port() -> int:
    """Return a port that was free a moment ago."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@pytest.fixture(scope="module")
def port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory, port: int) -> Iterator[ChildBroker]:
    place = tmp_path_factory.mktemp("http")
    config = place / "config.toml"
    config.write_text("[server]\nhttp_connections_max = 4\nhttp_timeout_ms = 500\nhttp_header_bytes_max = 2048\n")
    child = ChildBroker(place / "data", arguments=("--http", f"127.0.0.1:{port}", "--config", str(config)))
    child.start()
    yield child
    child.kill()


def _await_listener(port: int) -> None:
    """Wait until the thread of the listener listens."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        with contextlib.suppress(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port)).close()
            return
        time.sleep(0.01)


def get(port: int, path: str, **headers: str) -> tuple[int, str]:
    """Return the status and the text of an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


@pytest.mark.usefixtures("broker")
def test_a_broker_that_serves_is_ready(port: int) -> None:
    """And an unknown path is not found."""
    assert get(port, "/healthz") == (200, "ok\n")
    assert get(port, "/readyz") == (200, "ready\n")
    assert get(port, "/")[0] == 404


def test_messages_are_counted(on_broker: Run, port: int) -> None:
    """Those of the virtual host since the start, those of the queue since it was declared."""
    assert on_broker("send", "counted", "x").exit_code == 0
    assert on_broker("receive", "counted", "--count", "1").exit_code == 0
    text = get(port, "/metrics")[1]
    assert 'ambermq_queue_published_messages_total{queue="counted",vhost="default"} 1.0\n' in text
    for name in ("in", "out", "accepted"):
        assert re.search(rf'^ambermq_messages_{name}_total{{vhost="default"}} [1-9]', text, re.MULTILINE)


@pytest.mark.usefixtures("broker")
def test_every_metric_that_dashboard_and_alerts_name_is_there(port: int) -> None:
    """In the answer of a real broker; and the broker shows every metric of the table."""
    names = {line.split("{")[0].split()[0] for line in get(port, "/metrics")[1].splitlines() if line[:1] != "#"}
    dashboard = (_ROOT / "contrib/grafana/ambermq.json").read_text()
    alerts = (_ROOT / "contrib/prometheus/alerts.yml").read_text()
    json.loads(dashboard)
    named = {*_NAME.findall(dashboard), *_NAME.findall(alerts)}
    assert len(named) > 20
    assert sorted(named - names) == []
    told = {metric.full_name for metric in METRICS if metric not in RECOVERY_METRICS}
    assert {name.removesuffix("_count") for name in names} >= told - {"ambermq_queue_oldest_age_seconds"}


@pytest.mark.usefixtures("broker")
def test_a_name_that_a_web_page_chose_is_refused(port: int) -> None:
    """A page can make a name of its own mean 127.0.0.1, and would read the names of queues."""
    assert get(port, "/metrics", Host="evil.example")[0] == 421
    assert get(port, "/metrics", Host="localhost:9673")[0] == 200


@pytest.mark.usefixtures("broker")
def test_what_a_client_may_hold_is_bounded(port: int) -> None:
    """A long head is refused; a silent connection is closed in time, and makes room for others."""
    with pytest.raises((http.client.RemoteDisconnected, ConnectionError)):
        get(port, "/healthz", Long="x" * 4096)
    silent = [socket.create_connection(("127.0.0.1", port), timeout=10) for _ in range(4)]
    time.sleep(0.1)
    with pytest.raises((http.client.RemoteDisconnected, ConnectionError)):
        get(port, "/healthz")
    for one in silent:
        assert one.recv(1) == b""
        one.close()
    assert get(port, "/healthz")[0] == 200


@pytest.mark.parametrize("place", ["0.0.0.0:0", "192.0.2.1:80", "127.0.0.1", "nonsense", "127.0.0.1:99999", "a/b:1"])
def test_another_place_is_refused(tmp_path: Path, place: str) -> None:
    """With exit code 2 and one message; the directory is not touched."""
    command = [sys.executable, "-m", "ambermq", "serve", "--data", str(tmp_path / "data"), "--http", place]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "--http" in done.stderr
    assert not (tmp_path / "data").exists()


def test_a_broker_that_recovers_lives_and_is_not_ready() -> None:
    """The answer tells how far it is; the port stays bound for the broker."""
    with http_sockets(("127.0.0.1", 0)) as sockets:
        port = sockets[0].getsockname()[1]
        with recovery_listener(sockets, ServerLimits(), lambda: (40, 100)):
            _await_listener(port)
            assert get(port, "/healthz")[0] == 200
            assert get(port, "/readyz") == (503, "recovering: 40 of 100 bytes of the log are read\n")
            assert "ambermq_recovery_scanned_bytes 40.0" in get(port, "/metrics")[1]
        assert sockets[0].fileno() > 0
