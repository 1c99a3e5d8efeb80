"""A peer that reads nothing of its output is dropped after write_timeout_ms, whatever it sends meanwhile."""

import socket
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, Final

import pytest

from ambermq.protocol.amqp10.framing.frames import EMPTY_FRAME
from ambermq.protocol.amqp10.performatives.classes import Transfer
from ambermq.protocol.server.listeners.socket_options import configure_socket
from ambermq.tools.broker.child_broker import ChildBroker
from tests.protocol.server.test_server import RECEIVER, StartBroker, fill, start_broker
from tests.protocol.tcp import TcpWire, deadline

__all__ = ["start_broker"]

CONFIG: Final = "[server]\nwrite_timeout_ms = 2000\noutput_high_bytes = 262144\n"
COUNT: Final = 200
SIZE: Final = 100_000


@pytest.fixture(autouse=True)
def in_time() -> Iterator[None]:
    """No test hangs."""
    with deadline():
        yield


def receiver(broker: ChildBroker) -> TcpWire:
    """Attach a receiver with credit for everything."""
    wire = TcpWire.begun(broker.url, begin={"incoming_window": 100_000})
    wire.attach("big", role=RECEIVER)
    wire.flow(handle=0, delivery_count=0, link_credit=100_000, incoming_window=100_000)
    return wire


def is_dropped(wire: TcpWire, seconds: float) -> bool:
    """Send heartbeats without reading, until the broker hangs up or the time is over."""
    end = time.monotonic() + seconds
    try:
        while time.monotonic() < end:
            wire.give(EMPTY_FRAME)
            time.sleep(0.05)
    except OSError:
        return True
    return False


def test_what_it_acquired_goes_to_others(start_broker: StartBroker) -> None:
    """Heartbeats keep no peer alive that does not read; another receiver gets each message."""
    broker = start_broker(CONFIG)
    fill(broker.url, "big", count=COUNT, size=SIZE)
    with receiver(broker) as stuck:
        stuck.expect(Transfer)
        assert is_dropped(stuck, 15)
    with receiver(broker) as other:
        for _ in range(COUNT):
            other.expect(Transfer)
    assert "write_timeout_ms" in broker.stderr_path.read_text()


def test_a_slow_reader_stays(start_broker: StartBroker) -> None:
    """A peer that reads a little within each timeout is served for longer than that."""
    broker = start_broker(CONFIG)
    fill(broker.url, "big", count=COUNT, size=SIZE)
    with receiver(broker) as slow:
        for _ in range(6):
            time.sleep(1)
            slow.socket.recv(2 << 20)
            slow.give(EMPTY_FRAME)
    assert "write_timeout_ms" not in broker.stderr_path.read_text()


def test_the_kernel_finds_a_peer_that_vanished() -> None:
    """A socket gets keepalive and a bound for unread output, behind that of the broker; 0 is no bound."""
    for timeout_ms, kernel_ms in ((2000, 7000), (0, 0)):
        with socket.socket() as stream:
            transport: Any = SimpleNamespace(get_extra_info={"socket": stream, "peername": ("10.0.0.1", 1)}.get)
            configure_socket(transport, write_timeout_ms=timeout_ms)
            assert stream.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
            assert stream.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == kernel_ms
            assert stream.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 60
