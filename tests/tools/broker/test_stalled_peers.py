"""Peers that stop at each stage of a connection: one deadline ends them all, and each counts once.

The stages are the header of the PROXY protocol, the handshake of TLS, the upgrade of WebSocket, SASL and the open.
"""

import json
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

import pytest
from wsproto.events import AcceptConnection, BytesMessage

from ambermq.protocol.amqp10.framing.frames import SASL_HEADER
from ambermq.tools.broker.child_broker import ChildBroker
from tests.tools.broker.test_listeners import Certificates, WebSocketClient, connected, serving
from tests.tools.conftest import Run

_HANDSHAKE_S: Final = 3.0
_PROXY: Final = b"PROXY TCP4 203.0.113.7 127.0.0.1 40000 5672\r\n"
_UPGRADE: Final = (
    b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: amqp\r\n\r\n"
)
Peer = Callable[[socket.socket, ssl.SSLContext], socket.socket]


def _in_proxy_header(stream: socket.socket, _tls: ssl.SSLContext) -> socket.socket:
    stream.sendall(_PROXY[:20])
    return stream


def _in_tls(stream: socket.socket, tls: ssl.SSLContext) -> socket.socket:
    stream.sendall(_PROXY)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with suppress(ssl.SSLWantReadError):
        tls.wrap_bio(incoming, outgoing, server_hostname="localhost").do_handshake()
    stream.sendall(outgoing.read()[:100])
    return stream


def _in_upgrade(stream: socket.socket, tls: ssl.SSLContext) -> socket.socket:
    stream.sendall(_PROXY)
    # Each stage but the last one takes a third of the time: a deadline for each stage would let the peer stay.
    time.sleep(_HANDSHAKE_S / 3)
    encrypted = tls.wrap_socket(stream, server_hostname="localhost")
    encrypted.sendall(_UPGRADE[:60])
    return encrypted


def _in_sasl(stream: socket.socket, tls: ssl.SSLContext) -> socket.socket:
    stream.sendall(_PROXY)
    time.sleep(_HANDSHAKE_S / 3)
    encrypted = tls.wrap_socket(stream, server_hostname="localhost")
    time.sleep(_HANDSHAKE_S / 3)
    client = WebSocketClient(encrypted)
    client.events(lambda event: isinstance(event, AcceptConnection))
    client.send(BytesMessage(data=SASL_HEADER))
    return encrypted


STAGES: Final[dict[str, Peer]] = {
    "the header of the proxy": _in_proxy_header,
    "TLS": _in_tls,
    "the upgrade of WebSocket": _in_upgrade,
    "SASL": _in_sasl,
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("stalled")


@pytest.fixture(scope="module")
def certificates(place: Path) -> Certificates:
    return Certificates(place)


@pytest.fixture(scope="module")
def broker(place: Path, certificates: Certificates) -> Iterator[ChildBroker]:
    config = place / "broker.toml"
    config.write_text(
        f'[server]\nhandshake_ms = {int(_HANDSHAKE_S * 1000)}\n[users]\na = "secret"\n'
        '[listeners]\nproxy_protocol = true\nproxy_trusted = ["127.0.0.0/8"]\n'
    )
    arguments = ("--listen", "wss://127.0.0.1:0", "--config", config, *certificates.arguments)
    with serving(place, *arguments) as found:
        yield found


def strangers(run: Run, broker: ChildBroker) -> int:
    """Return the connections without a login, as the broker counts them; the one that asks has one."""
    done = run("status", "--data", broker.directory, "--output", "json")
    assert done.exit_code == 0, done.output
    return int(json.loads(done.stdout)["figures"]["connections_unauthenticated"])


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("drips", [False, True], ids=["silent", "drips"])
def test_a_stalled_peer_is_ended_by_the_one_deadline(
    run: Run, broker: ChildBroker, certificates: Certificates, stage: str, drips: bool
) -> None:
    """From the accept on, whatever stages it has passed and whatever it sends; it counts once, and then no more."""
    before, count, tls = strangers(run, broker), 3, certificates.context()
    with ExitStack() as stack:
        began = time.monotonic()
        peer = stack.enter_context(STAGES[stage](stack.enter_context(connected(broker.url)), tls))
        for _ in range(count - 1):
            stack.enter_context(connected(broker.url)).sendall(_PROXY[:20])
        assert strangers(run, broker) - before == count
        peer.settimeout(0.2)
        while not _is_ended(peer, drips=drips):
            # Some stages have taken time already.
            assert time.monotonic() - began < _HANDSHAKE_S + 4, "it is still open"
    end = time.monotonic() + 10
    while strangers(run, broker) != before:
        assert time.monotonic() < end
        time.sleep(0.1)


def _is_ended(stream: socket.socket, *, drips: bool) -> bool:
    """Return whether the broker has closed a connection, after another byte and all that it still sends."""
    try:
        if drips:
            stream.send(b"\0")
        while stream.recv(65536):
            pass
    except TimeoutError:
        return False
    except OSError:
        return True
    return True
