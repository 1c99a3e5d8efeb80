"""`ambermq proxy record` between real clients and a real broker."""

import json
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from ambermq.tools.broker.child_broker import ChildBroker
from ambermq.tools.proxy.recording import Kind, Record, RecordingReader
from tests.interop.proton_peer import ProtonPeer
from tests.tools.conftest import Run
from tests.tools.proxy.conftest import ChildProxy, StartProxy

RHEA = Path(__file__).parents[2] / "interop" / "rhea"


def records(path: Path) -> list[Record]:
    with path.open("rb") as file:
        return list(RecordingReader(file, name=str(path)))


def connected(proxy: ChildProxy) -> socket.socket:
    place = urlsplit(proxy.url)
    return socket.create_connection((str(place.hostname), place.port or 0), timeout=30)


def echo_server() -> socket.socket:
    return socket.create_server(("127.0.0.1", 0))


def url_of(server: socket.socket) -> str:
    return f"amqp://127.0.0.1:{server.getsockname()[1]}"


def test_proton_through_the_proxy(start_proxy: StartProxy, run: Run) -> None:
    """Many connections at once; each is told apart, and the client notices nothing."""
    proxy = start_proxy()
    peers = [ProtonPeer(proxy.url) for _ in range(4)]
    for number, peer in enumerate(peers):
        peer.sender(f"proton-{number}").send(*[f"{number}-{count}" for count in range(20)])
    for number, peer in enumerate(peers):
        received = peer.receiver(f"proton-{number}", credit=20)
        bodies = []
        for got in received.wait(20):
            bodies.append(got.message.body)
            got.settle(0x24)
        assert bodies == [f"{number}-{count}" for count in range(20)]
        peer.blocking.close()
    code, output, errors = proxy.end()
    assert (code, errors) == (0, "")
    assert "recorded 4 connections in" in output
    shown = run("proxy", "print", proxy.path, "--connection", 2, "--only", "transfer", "--output", "json").stdout
    lines = [json.loads(line) for line in shown.splitlines()]
    assert len(lines) == 40
    assert {line["connection"] for line in lines} == {2}
    assert {line["direction"] for line in lines} == {"SEND", "RECV"}


@pytest.mark.skipif(
    shutil.which("node") is None or not (RHEA / "node_modules" / "rhea").is_dir(), reason="rhea is not installed"
)
def test_rhea_through_the_proxy(start_proxy: StartProxy, run: Run, fresh_broker: ChildBroker) -> None:
    """A client of another language; its replay on a new broker has no difference."""
    proxy = start_proxy()
    command = ["node", str(RHEA / "outcomes.js"), str(urlsplit(proxy.url).port), "rhea-queue"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert proxy.end()[0] == 0
    result = run("proxy", "replay", proxy.path, "--to", fresh_broker.url)
    assert result.exit_code == 0, result.stderr


def test_bytes_are_those_of_both_ends(start_proxy: StartProxy) -> None:
    """The proxy changes nothing, not even what is no AMQP; each half closes alone."""
    with echo_server() as server:
        proxy = start_proxy(target=url_of(server))
        with connected(proxy) as client:
            broker, _ = server.accept()
            with broker:
                client.sendall(b"GET / HTTP/1.1\r\n\r\n")
                client.shutdown(socket.SHUT_WR)
                assert b"".join(iter(lambda: broker.recv(100), b"")) == b"GET / HTTP/1.1\r\n\r\n"
                broker.sendall(b"no")
            assert b"".join(iter(lambda: client.recv(100), b"")) == b"no"
        proxy.end()
    kinds = [record.kind for record in records(proxy.path)]
    assert kinds == [Kind.OPENED, Kind.CLIENT, Kind.CLIENT_END, Kind.BROKER, Kind.BROKER_END, Kind.END]


def test_a_peer_that_does_not_read_stops_the_other(start_proxy: StartProxy) -> None:
    """The memory of the proxy stays bounded, in both directions."""
    with echo_server() as server:
        proxy = start_proxy(target=url_of(server))
        with connected(proxy) as client:
            broker, _ = server.accept()
            with broker:
                before = proxy.memory_bytes()
                sent = [_fill(each) for each in (client, broker)]
                assert max(sent) < 48 << 20
                assert proxy.memory_bytes() - before < 24 << 20
                client.settimeout(30)
                assert len(client.recv(1 << 16)) > 0


def _fill(stream: socket.socket) -> int:
    """Send until the peer takes nothing for half a second; return how much."""
    stream.settimeout(0.5)
    sent = 0
    try:
        while sent < 64 << 20:
            sent += stream.send(bytes(1 << 16))
    except TimeoutError:
        return sent
    return sent


def test_a_killed_proxy_leaves_what_it_forwarded(start_proxy: StartProxy, run: Run) -> None:
    """The recording is readable, and its trace says that it has no end."""
    proxy = start_proxy()
    peer = ProtonPeer(proxy.url)
    peer.sender("killed").send("one", "two")
    proxy.end(signal.SIGKILL)
    peer.drop()
    shown = run("proxy", "print", proxy.path)
    assert shown.exit_code == 0
    assert shown.stdout.count(" transfer(") == 2
    assert "has no end" in shown.stdout


def test_the_maximum_size_ends_the_recording_and_not_the_clients(start_proxy: StartProxy, run: Run) -> None:
    """Both the file and standard error say so."""
    proxy = start_proxy("--bytes-max", "2000")
    peer = ProtonPeer(proxy.url)
    peer.sender("limited").send(*["x" * 500] * 10)
    peer.blocking.close()
    code, output, errors = proxy.end()
    assert code == 0
    assert "the maximum size" in output
    assert "the recording ended" in errors
    assert proxy.path.stat().st_size <= 2000
    assert run("proxy", "print", proxy.path).stdout.endswith("the recording reached its maximum size\n")


def test_no_broker_at_the_target(start_proxy: StartProxy) -> None:
    """The client is reset, and the reason is told and recorded."""
    with echo_server() as server:
        target = url_of(server)
    proxy = start_proxy(target=target)
    with pytest.raises(ConnectionError), connected(proxy) as client:
        client.recv(1)
    time.sleep(0.1)
    code, _, errors = proxy.end(signal.SIGTERM)
    assert code == 0
    assert f"connection 1: cannot connect to {target}" in errors
    assert [record.kind for record in records(proxy.path)] == [Kind.OPENED, Kind.BROKER_END, Kind.END]


def test_a_connection_above_the_limit_is_reset(start_proxy: StartProxy) -> None:
    """The others go on."""
    proxy = start_proxy("--connections-max", "1")
    peer = ProtonPeer(proxy.url)
    with pytest.raises(ConnectionError), connected(proxy) as client:
        client.recv(1)
    peer.sender("alone").send("one")
    peer.blocking.close()


def test_the_live_trace(start_proxy: StartProxy) -> None:
    """`--print` prints the lines while they come."""
    proxy = start_proxy("--print")
    peer = ProtonPeer(proxy.url)
    peer.blocking.close()
    _, output, _ = proxy.end()
    assert "#1 SEND (ch=0) open(container-id:" in output
    assert "#1 RECV (ch=0) close()" in output


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (
            ["--listen", "nowhere", "--to", "amqp://127.0.0.1:1"],
            2,
            "expected HOST:PORT, amqp://HOST:PORT or amqps://HOST:PORT, found 'nowhere'",
        ),
        (["--listen", "127.0.0.1:1", "--to", "http://x"], 2, "no amqp:// at the start"),
        (["--listen", "192.0.2.1:5672", "--to", "amqp://127.0.0.1:1"], 1, "cannot listen"),
    ],
)
def test_wrong_addresses(run: Run, tmp_path: Path, arguments: list[str], code: int, message: str) -> None:
    """One line, and no file is left."""
    result = run("proxy", "record", tmp_path / "a.rec", *arguments)
    assert (result.exit_code, message in result.stderr) == (code, True), result.stderr
    assert not (tmp_path / "a.rec").exists()


def test_a_damaged_recording(start_proxy: StartProxy, run: Run) -> None:
    """What is before the damage is printed; the exit code is that of damage."""
    proxy = start_proxy()
    ProtonPeer(proxy.url).blocking.close()
    proxy.end()
    data = bytearray(proxy.path.read_bytes())
    data[-30] ^= 1
    proxy.path.write_bytes(data)
    result = run("proxy", "print", proxy.path)
    assert result.exit_code == 5
    assert "is damaged at position" in result.stderr
    assert "open(" in result.stdout
