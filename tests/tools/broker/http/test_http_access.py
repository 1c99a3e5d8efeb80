"""The HTTP listener of a real broker on all interfaces: TLS, logins, and hostile clients."""

import base64
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from ambermq.tools.broker.child_broker import ChildBroker
from ambermq.tools.terminal.exit_codes import ExitCode
from tests.tools.broker.http.test_http_listener import free_port
from tests.tools.broker.test_listeners import Certificates
from tests.tools.conftest import Run

TOKEN = "0123456789abcdef" * 2


class Client:
    """A client of the listener."""

    def __init__(self, certificates: Certificates, port: int, host: str = "127.0.0.1") -> None:
        self.certificates, self.port, self.host = certificates, port, host

    def plain(self) -> socket.socket:
        """Return a connection without TLS."""
        return socket.create_connection((self.host, self.port), timeout=10)

    def ask(self, request: bytes) -> bytes:
        """Return everything that the broker sends for a request."""
        received = b""
        context = self.certificates.context()
        with suppress(OSError), context.wrap_socket(self.plain(), server_hostname="localhost") as stream:
            stream.sendall(request)
            while data := stream.recv(65536):
                received += data
        return received

    def status(self, path: str, authorization: str = "") -> int:
        """Return the status of an answer, 0 for none."""
        header = f"Authorization: {authorization}\r\n" if authorization else ""
        request = f"GET {path} HTTP/1.1\r\nHost: broker\r\nConnection: close\r\n{header}\r\n"
        return int((self.ask(request.encode()).split() or [b"", b"0"])[1])


def basic(name: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    place = tmp_path_factory.mktemp("https")
    certificates, port = Certificates(place), free_port()
    token, config = place / "token", place / "config.toml"
    token.write_text(TOKEN)
    token.chmod(0o600)
    config.write_text(
        f'[server]\nhttp_token_file = "{token}"\nhttp_timeout_ms = 1000\nhttp_address_accepts_max = 0\n'
        '[users]\na = "secret"\n'
    )
    arguments = ("--http", f"0.0.0.0:{port}", "--config", str(config), *certificates.arguments)
    child = ChildBroker(place / "data", arguments=arguments)
    child.start()
    yield Client(certificates, port)
    assert child.stop() == ExitCode.OK
    assert "Traceback" not in child.stderr_path.read_text()


def test_health_needs_no_login_and_the_metrics_do(client: Client) -> None:
    assert [client.status(path) for path in ("/healthz", "/readyz", "/metrics")] == [200, 200, 401]
    assert client.status("/metrics", basic("a", "secret")) == 200
    assert client.status("/metrics", f"Bearer {TOKEN}") == 200
    for wrong in (basic("a", "x"), basic("b", "secret"), f"Bearer {TOKEN}x", "Basic !", "Basic", "Digest x"):
        assert client.status("/metrics", wrong) == 401


def test_pipelined_requests_of_a_stranger_get_one_answer(client: Client) -> None:
    """Otherwise a stranger could send requests faster than it may connect."""
    answers = client.ask(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n" * 100)
    assert answers.count(b"HTTP/1.1 200") == 1


def test_a_long_or_slow_head_ends_the_connection(client: Client) -> None:
    assert client.ask(b"GET / HTTP/1.1\r\nLong: " + b"x" * 20_000) == b""
    began = time.monotonic()
    assert client.ask(b"GET / HTTP/1.1\r\n") == b""
    assert time.monotonic() - began < 5


def test_a_thousand_silent_connections_keep_no_probe_out(client: Client) -> None:
    """They count before their TLS handshake, those above the limit of an address are closed, the others in time."""
    silent = [client.plain() for _ in range(1000)]
    try:
        time.sleep(2)
        assert client.status("/healthz") == 200
    finally:
        for one in silent:
            one.close()


def test_another_interface_needs_tls_and_users(run: Run, tmp_path: Path) -> None:
    """And a token that other users read is refused; the directory is not touched."""
    options: tuple[object, ...] = ("serve", "--data", tmp_path / "data", "--port", 0, "--http", "0.0.0.0:0")
    found = run(*options)
    assert (found.exit_code, "needs TLS and users: give --tls-cert" in found.stderr) == (ExitCode.USAGE, True)
    options += Certificates(tmp_path).arguments
    found = run(*options)
    assert (found.exit_code, "ambermq user add NAME --role monitor" in found.stderr) == (ExitCode.USAGE, True)
    token = tmp_path / "token"
    token.write_text(TOKEN)
    token.chmod(0o644)
    found = run(*options, "--user", "a:b", "--set", f"server.http_token_file={token}")
    assert (found.exit_code, "run chmod 600" in found.stderr) == (ExitCode.USAGE, True)
    assert not (tmp_path / "data").exists()
