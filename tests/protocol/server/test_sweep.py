"""The sweep of a server: the deadlines of very many connections are checked over several turns of the event loop."""

from types import SimpleNamespace
from typing import Any
from unittest import mock

from ambermq.protocol.server.server import Server


def _swept(count: int) -> tuple[Any, list[Any], list[Any]]:
    """Return a server in the middle of a sweep, its connections, and the calls that it has asked for."""
    sockets = [mock.Mock(peer=number) for number in range(count)]
    calls: list[Any] = []
    server: Any = SimpleNamespace(
        sockets={socket.peer: socket for socket in sockets},
        stopped=SimpleNamespace(is_set=lambda: False),
        _loop=SimpleNamespace(call_soon=calls.append),
        _unchecked=list(sockets),
        _checked_ms=2000,
        _stall_ms=30,
    )
    server._check_some = lambda: Server._check_some(server)
    return server, sockets, calls


def test_a_turn_checks_a_limited_number_of_connections() -> None:
    """Each is checked once, with the time of the sweep, after its deadlines were extended by the stall."""
    server, sockets, calls = _swept(1200)
    turns = 0
    server._check_some()
    while calls:
        turns += 1
        assert sum(socket.check_deadlines.call_count for socket in sockets) == 500 * turns
        calls.pop()()
    assert turns == 2
    for socket in sockets:
        assert socket.mock_calls == [mock.call.extend_deadlines(30, 2000), mock.call.check_deadlines(2000)]


def test_a_connection_that_has_ended_meanwhile_is_not_checked() -> None:
    """Nor is one whose place another connection has."""
    server, sockets, calls = _swept(600)
    server._check_some()
    del server.sockets[0]
    server.sockets[1] = mock.Mock(peer=1)
    calls.pop()()
    assert not calls
    assert [bool(socket.check_deadlines.called) for socket in sockets] == [False, False, *[True] * 598]
