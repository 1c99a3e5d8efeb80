"""A socket's deadlines: moved by the time in which the broker stood still, and by no more."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

from ambermq.engine.loop.schedule import NEVER
from ambermq.protocol.amqp10.connection.connection import Connection
from ambermq.protocol.amqp10.connection.connection_role import ConnectionRole
from ambermq.protocol.amqp10.framing.frame_reader import ReadBuffer
from ambermq.protocol.amqp10.framing.frames import AMQP_HEADER
from ambermq.protocol.amqp10.limits import ConnectionLimits
from ambermq.protocol.amqp10.memory_budget import MemoryAccount, MemoryBudget
from ambermq.protocol.amqp10.performatives.classes import Open
from ambermq.protocol.amqp10.session.session import LINK_FRAME_COST
from ambermq.protocol.auth.identity import Identity
from ambermq.protocol.gateway.large.connection_uploads import ConnectionUploads
from ambermq.protocol.server.connections.connection_transport import ConnectionTransport
from ambermq.protocol.server.connections.peer_deadlines import PeerDeadlines
from ambermq.protocol.server.limited_log import LimitedLog
from ambermq.protocol.server_limits import ServerLimits
from tests.protocol.peers import Wire

HANDSHAKE_MS = 10_000
STALL_MS = 60_000


class _Transport:
    """A transport that only notes that it was cut."""

    def __init__(self, *, unsent_bytes: int = 0, is_closing: bool = False) -> None:
        self.unsent_bytes = unsent_bytes
        self.closing = is_closing
        self.is_cut = False

    def is_closing(self) -> bool:
        return self.closing

    def get_write_buffer_size(self) -> int:
        return self.unsent_bytes

    def is_reading(self) -> bool:
        return True

    def abort(self) -> None:
        self.is_cut = True


def accepted(transport: _Transport, *, open_deadline_ms: int = 0) -> ConnectionTransport:
    """A connection that was made at 0 and has sent nothing."""
    limits = ConnectionLimits(idle_timeout_ms=0, close_ms=5000)
    peer_log = LimitedLog(lambda: 0)
    server: Any = SimpleNamespace(
        limits=limits, server_limits=ServerLimits(handshake_ms=HANDSHAKE_MS), peer_log=peer_log
    )
    socket = ConnectionTransport(server)
    connection = Connection(ConnectionRole.SERVER, limits, now_ms=0, container_id="broker")
    stub: Any = transport
    peer: Any = SimpleNamespace(connection=connection, handle_events=lambda: None, identity=Identity(), tokens=None)
    peer.uploads = ConnectionUploads(SimpleNamespace(limits=ServerLimits(), low=frozenset()))
    socket.transport, socket.peer, socket._deadlines = stub, peer, PeerDeadlines(open_deadline_ms)
    return socket


@pytest.mark.parametrize("stall_ms", [0, 3, 1100, STALL_MS])
def test_the_deadline_of_an_open_excludes_pauses_of_the_broker(stall_ms: int) -> None:
    """The deadline moves by the time of the pauses and by no more, however many there are."""
    transport = _Transport()
    socket = accepted(transport, open_deadline_ms=HANDSHAKE_MS)
    for number in range(1, 11):
        now_ms = number * (1000 + stall_ms)
        socket.extend_deadlines(stall_ms, now_ms)
        socket.check_deadlines(now_ms)
        assert not transport.is_cut
    socket.check_deadlines(10 * (1000 + stall_ms) + 1)
    assert transport.is_cut


def test_a_pause_does_not_cut_a_peer_that_takes_its_last_bytes() -> None:
    """A closed connection has `close_ms` to take something, not counting what the broker stood still."""
    transport = _Transport(unsent_bytes=9, is_closing=True)
    socket = accepted(transport)
    socket.check_deadlines(1000)
    socket.extend_deadlines(STALL_MS, 2000 + STALL_MS)
    socket.check_deadlines(2000 + STALL_MS)
    assert not transport.is_cut
    socket.check_deadlines(6001 + STALL_MS)
    assert transport.is_cut


def test_a_pause_extends_no_deadline_beyond_its_own_time() -> None:
    """A peer that was heard right after the pause is silent a whole timeout later, not later than that."""
    connection = Connection(ConnectionRole.SERVER, ConnectionLimits(idle_timeout_ms=1000), now_ms=0, container_id="b")
    connection.receive(b"AMQP", now_ms=STALL_MS)
    connection.extend_deadlines(STALL_MS, STALL_MS)
    connection.poll(STALL_MS + 999)
    assert not connection.is_ended
    connection.poll(STALL_MS + 1000)
    assert connection.is_ended


def test_a_failed_allocation_ends_one_connection() -> None:
    """The connection is cut, and gives back what it held; no exception reaches the event loop."""
    transport, budget = _Transport(), MemoryBudget(1000)
    socket = accepted(transport)

    def receive(_data: memoryview, _now_ms: int) -> bool:
        raise MemoryError

    memory = MemoryAccount(budget)
    memory.change(500)
    connection: Any = SimpleNamespace(receive=receive, memory=memory)
    socket.peer.connection = connection
    server: Any = socket._server
    server.read_buffer = ReadBuffer()
    server.read_buffer.get_buffer()
    socket.buffer_updated(8)
    assert transport.is_cut
    assert budget.held_bytes == 0


def test_held_input_has_its_turns_in_later_iterations_of_the_event_loop() -> None:
    """The peer is not read until it has had them all; each turn is a call of the event loop, and one tick has room."""
    transport: Any = mock.Mock(is_closing=lambda: False)
    socket = accepted(transport)
    connection = socket.peer.connection
    connection.receive(AMQP_HEADER + Wire.frame(Open(container_id="c")), 0)
    connection.accept()
    connection.turn_cost_max = 10 * LINK_FRAME_COST
    connection.take_output()
    frames = b"".join(Wire.frame(Wire.begin(), channel=channel) for channel in range(30))
    soon: list[Callable[[], None]] = []
    server: Any = socket._server
    server.read_buffer, server.epoch_us, server.sockets = ReadBuffer(), 0, [socket.peer]
    server.call_soon = soon.append
    server.memory = SimpleNamespace(budget=MemoryBudget(1 << 20))
    host: Any = mock.Mock()
    host.gateway.touched = mock.MagicMock()
    host.gateway.sources.ready, host.engine.log.is_congested = [], False
    host.schedule.due = lambda _: NEVER
    socket.host = host
    server.read_buffer.get_buffer()[: len(frames)] = frames
    socket.buffer_updated(len(frames))
    counts = [len(connection.sessions())]
    while soon:
        assert (len(soon), transport.resume_reading.call_count) == (1, 0)
        socket.resume_reading()
        soon.pop()()
        counts.append(len(connection.sessions()))
    assert counts == [10, 20, 30]
    transport.resume_reading.assert_called_once_with()
