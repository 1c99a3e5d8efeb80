"""Peers that stall in a stage of the handshake, or send a frame byte by byte, are dropped; others are served."""

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ambermq.protocol.amqp10.framing.frames import AMQP_HEADER, SASL_HEADER
from ambermq.protocol.amqp10.performatives.classes import Open
from ambermq.tools.broker.child_broker import ChildBroker
from tests.protocol.peers import Wire
from tests.protocol.tcp import deadline

OPEN = AMQP_HEADER + Wire.frame(Open(container_id="slow"))


@pytest.fixture(autouse=True)
def in_time() -> Iterator[None]:
    """No test hangs."""
    with deadline():
        yield


def broker(tmp_path: Path, *settings: str) -> ChildBroker:
    """Start a broker with these settings."""
    child = ChildBroker(tmp_path / "data", arguments=[word for one in settings for word in ("--set", one)])
    child.start()
    return child


def connect(child: ChildBroker) -> socket.socket:
    """Return a connected socket."""
    host, port = child.url.removeprefix("amqp://").split(":")
    return socket.create_connection((host, int(port)), timeout=20)


def seconds_to_end(peer: socket.socket, trickle: bytes = b"") -> float:
    """Send a byte each half second; return when the broker has ended the connection."""
    began = time.monotonic()
    peer.settimeout(0.5)
    for at in range(60):
        try:
            peer.sendall(trickle[at : at + 1])
            if not peer.recv(4096):
                break
        except TimeoutError:
            continue
        except OSError:
            break
    return time.monotonic() - began


@pytest.mark.parametrize("start", [b"", AMQP_HEADER[:3], SASL_HEADER, SASL_HEADER + b"\x00\x00\x00\x20", AMQP_HEADER])
def test_a_stalled_handshake_ends(tmp_path: Path, start: bytes) -> None:
    """Within handshake_ms and a sweep, wherever it stalls."""
    child = broker(tmp_path, "server.handshake_ms=1500")
    peer = connect(child)
    peer.sendall(start)
    assert seconds_to_end(peer) < 5
    assert child.stop() == 0


def test_a_frame_byte_by_byte_ends(tmp_path: Path) -> None:
    """Two bytes a second are less than handshake_bytes_min; bytes arrive, so the idle timeout would never come."""
    child = broker(tmp_path, "connection.idle_timeout_ms=60000")
    slow, idle = connect(child), connect(child)
    slow.sendall(OPEN + b"\x00\x00\x10\x00\x02\x00\x00\x00")
    idle.sendall(OPEN)
    assert 4 < seconds_to_end(slow, bytes(60)) < 12
    assert "handshake_bytes_min" in child.stderr_path.read_text()
    idle.settimeout(0.5)
    idle.recv(4096)
    with pytest.raises(TimeoutError):
        idle.recv(4096)
    assert child.stop() == 0


def test_a_slow_peer_above_the_floor_stays(tmp_path: Path) -> None:
    """One byte a second is enough for a floor of one."""
    child = broker(tmp_path, "server.handshake_bytes_min=1")
    peer = connect(child)
    peer.sendall(OPEN + b"\x00\x00\x10\x00\x02\x00\x00\x00")
    peer.settimeout(0.2)
    for _ in range(40):
        peer.sendall(b"\x00")
        time.sleep(0.2)
    assert "peer dropped" not in child.stderr_path.read_text()
    assert child.stop() == 0
