"""A socket's deadlines: moved by the time in which the broker stood still, and by no more."""

from types import SimpleNamespace
from typing import Any

import pytest

from ambermq.protocol.amqp10.connection.connection import Connection, ConnectionRole
from ambermq.protocol.amqp10.framing.frame_reader import ReadBuffer
from ambermq.protocol.amqp10.limits import ConnectionLimits
from ambermq.protocol.amqp10.memory_budget import MemoryAccount, MemoryBudget
from ambermq.protocol.server.connection_transport import ConnectionTransport
from ambermq.protocol.server.limited_log import LimitedLog
from ambermq.protocol.server_limits import ServerLimits

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
    peer: Any = SimpleNamespace(connection=connection, handle_events=lambda: None)
    socket.transport, socket.peer, socket._open_deadline_ms = stub, peer, open_deadline_ms
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
