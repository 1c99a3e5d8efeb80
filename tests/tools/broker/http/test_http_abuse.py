"""The HTTP listener on all interfaces under abuse: guesses, floods, held connections, and a token that is replaced."""

import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from proton import Message
from proton.utils import BlockingConnection

from ambermq.tools.broker.child_broker import ChildBroker
from ambermq.tools.terminal.exit_codes import ExitCode
from tests.tools.broker.http.test_http_access import TOKEN, Client, basic
from tests.tools.broker.http.test_http_listener import free_port
from tests.tools.broker.test_listeners import Certificates
from tests.tools.conftest import Run


@contextmanager
def broker(place: Path, *settings: str, address_accepts_max: int = 0) -> Iterator[tuple[Client, ChildBroker]]:
    """Run a broker with the user `a` and a token; the limits of an address are off unless they are given."""
    certificates, port = Certificates(place), free_port()
    (place / "token").write_text(TOKEN)
    (place / "token").chmod(0o600)
    lines = [f'http_token_file = "{place / "token"}"', f"http_address_accepts_max = {address_accepts_max}", *settings]
    text = "\n".join(lines)
    (place / "config.toml").write_text(f'[server]\n{text}\n[users]\na = "secret"\n')
    arguments = ("--http", f"0.0.0.0:{port}", "--config", str(place / "config.toml"), *certificates.arguments)
    child = ChildBroker(place / "data", arguments=arguments)
    child.start()
    try:
        yield Client(certificates, port), child
    finally:
        assert child.stop() == ExitCode.OK
    assert "Traceback" not in child.stderr_path.read_text()


def wait_until(is_so: Callable[[], bool]) -> None:
    """Wait until something holds, at most 15 seconds."""
    end = time.monotonic() + 15
    while not is_so():
        assert time.monotonic() < end, "it does not hold"
        time.sleep(0.05)


def connected(child: ChildBroker) -> BlockingConnection:
    """Return a connection of AMQP with the password of the user `a`."""
    return BlockingConnection(child.url, timeout=10, user="a", password="secret", allowed_mechs="PLAIN")


def test_a_user_without_the_role_sees_no_metrics(run: Run, tmp_path: Path) -> None:
    """It has logged in: 403, where a wrong password is 401."""
    password = tmp_path / "password"
    password.write_text("long-enough-word")
    for words in (("bob",), ("mona", "--role", "monitor")):
        done = run("user", "add", *words, "--password-file", password, "--data", tmp_path / "data")
        assert done.exit_code == 0, done.output
    with broker(tmp_path) as (client, _):
        assert client.status("/metrics", basic("bob", "long-enough-word")) == 403
        assert client.status("/metrics", basic("bob", "wrong")) == 401
        assert client.status("/metrics", basic("mona", "long-enough-word")) == 200
        assert client.status("/healthz", basic("bob", "wrong")) == 200


def own_address() -> str:
    """Return an address of this machine that is not loopback; skip the test if there is none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as found, suppress(OSError):
        # Nothing is sent: the kernel chooses the address that it would send from.
        found.connect(("198.51.100.1", 9))
        name = str(found.getsockname()[0])
        if not name.startswith("127."):
            return name
    pytest.skip("no address but loopback on this machine")


def test_a_guesser_is_locked_out_by_http_as_by_amqp(tmp_path: Path) -> None:
    """The lock is of the address that has guessed: the user gets in from another one, and by the token."""
    host = own_address()
    settings = ("login_failures_max = 3", "login_lock_s = 3", "login_delay_ms = 10")
    with broker(tmp_path, *settings) as (client, child):
        stranger = Client(client.certificates, client.port, host)
        assert stranger.status("/metrics", basic("a", "secret")) == 200
        for number in range(4):
            assert stranger.status("/metrics", basic("a", f"guess-{number}")) == 401
        assert stranger.status("/metrics", basic("a", "secret")) == 401
        assert stranger.status("/metrics", f"Bearer {TOKEN}") == 200
        assert client.status("/metrics", basic("a", "secret")) == 200
        connected(child).close()
        wait_until(lambda: stranger.status("/metrics", basic("a", "secret")) == 200)
        log = child.stderr_path.read_text()
        assert "guess-" not in log
        assert "HTTP login failed" in log


def test_an_address_may_connect_only_so_often(tmp_path: Path) -> None:
    """Further connections are closed before their handshake; AMQP has limits of its own."""
    with broker(tmp_path, address_accepts_max=3) as (client, child):
        statuses = [client.status("/healthz") for _ in range(20)]
        assert 1 <= statuses.count(200) < 20
        assert set(statuses) == {0, 200}
        connected(child).close()
        time.sleep(1.1)
        assert client.status("/healthz") == 200


def test_a_token_is_replaced_without_a_restart(tmp_path: Path) -> None:
    """The old one is refused after SIGHUP; a file that cannot be used keeps the one before."""
    with broker(tmp_path) as (client, child):
        assert client.status("/metrics", f"Bearer {TOKEN}") == 200
        (tmp_path / "token").write_text("z" * 32)
        os.kill(child.pid, signal.SIGHUP)
        wait_until(lambda: client.status("/metrics", f"Bearer {'z' * 32}") == 200)
        assert client.status("/metrics", f"Bearer {TOKEN}") == 401
        (tmp_path / "token").chmod(0o644)
        os.kill(child.pid, signal.SIGHUP)
        wait_until(lambda: "HTTP token not reloaded" in child.stderr_path.read_text())
        assert client.status("/metrics", f"Bearer {'z' * 32}") == 200


def test_messages_go_on_beside_many_slow_clients(tmp_path: Path) -> None:
    """200 clients stop in the TLS handshake or in a head; AMQP works meanwhile, and none of them stays."""
    with broker(tmp_path, "http_timeout_ms = 2000", "http_address_connections_max = 0") as (client, child):
        held: list[socket.socket] = []
        for number in range(200):
            held.append(client.plain())
            held[-1].sendall(b"\x16\x03\x01\x02\x00"[: number % 6])
        connection = connected(child)
        sender, receiver = connection.create_sender("orders"), connection.create_receiver("orders", credit=100)
        for number in range(100):
            sender.send(Message(body=number, durable=True))
            assert receiver.receive(timeout=10).body == number
            receiver.accept()
        connection.close()
        for one in held:
            one.settimeout(10)
            with suppress(ConnectionResetError):
                assert one.recv(1) == b""
            one.close()
        assert client.status("/healthz") == 200
