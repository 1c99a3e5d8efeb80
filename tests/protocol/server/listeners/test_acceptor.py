"""The acceptor: it pauses without descriptors, accepts a bounded number in a turn, and binds what it is told."""

import asyncio
import errno
import socket
import time
from typing import Any

import pytest

from ambermq.protocol.server.listeners import acceptor as module
from ambermq.protocol.server.listeners.acceptor import Acceptor, bound_sockets
from ambermq.protocol.server.listeners.listener import Listener
from ambermq.protocol.server.listeners.listener_address import ListenerAddress


class _Listener(socket.socket):
    """A listener whose accepts fail while it has an error."""

    error: OSError | None = None
    attempts = 0

    def accept(self) -> tuple[socket.socket, Any]:
        self.attempts += 1
        if self.error is not None:
            raise self.error
        return super().accept()


def listener() -> _Listener:
    """Return a bound listener."""
    bound = _Listener()
    bound.bind(("127.0.0.1", 0))
    bound.setblocking(False)
    return bound


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOMEM])
def test_accepting_pauses_without_a_descriptor(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One try a pause, not a loop of tries; a client that waited is accepted afterwards."""
    monkeypatch.setattr(module, "PAUSE_SECONDS", 0.1)

    async def serve() -> tuple[int, int, int, float]:
        accepted: list[socket.socket] = []
        failures: list[OSError] = []
        acceptor = Acceptor(lambda stream, _name, _listener: accepted.append(stream), failures.append)
        bound = listener()
        bound.error = OSError(number, "none left")
        acceptor.start([Listener(ListenerAddress("amqp"), [bound])])
        client = socket.create_connection(bound.getsockname())
        used_s = time.process_time()
        await asyncio.sleep(0.55)
        used_s = time.process_time() - used_s
        attempts = bound.attempts
        bound.error = None
        await asyncio.sleep(0.2)
        acceptor.close()
        for stream in (client, *accepted):
            stream.close()
        return attempts, len(failures), len(accepted), used_s

    attempts, failures, accepted, used_s = asyncio.run(serve())
    assert 2 <= attempts <= 6
    assert (failures, accepted) == (attempts, 1)
    assert used_s < 0.2


def test_a_turn_accepts_a_bounded_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two parts of a flood the event loop serves others."""
    monkeypatch.setattr(module, "_TURN_ACCEPTS_MAX", 4)

    async def serve() -> list[int]:
        accepted: list[socket.socket] = []
        acceptor = Acceptor(lambda stream, _name, _listener: accepted.append(stream), lambda _error: None)
        bound = listener()
        acceptor.start([Listener(ListenerAddress("amqp"), [bound])])
        clients = [socket.create_connection(bound.getsockname()) for _ in range(10)]
        seen = []
        while len(accepted) < 10:
            await asyncio.sleep(0)
            seen.append(len(accepted))
        acceptor.close()
        for stream in (*clients, *accepted):
            stream.close()
        return seen

    seen = asyncio.run(serve())
    assert max(after - before for before, after in zip([0, *seen], seen, strict=False)) <= 4


def test_all_addresses_of_a_host_get_one_port() -> None:
    """Port 0 chooses one for all of them."""
    sockets = bound_sockets("localhost", 0)
    assert len({bound.getsockname()[1] for bound in sockets}) == 1
    for bound in sockets:
        bound.close()


def test_a_port_in_use_is_an_error_that_leaves_no_socket() -> None:
    """The error is the system's; the sockets that were bound before are closed."""
    with listener() as bound:
        bound.listen(1)
        with pytest.raises(OSError, match="in use"):
            bound_sockets("127.0.0.1", bound.getsockname()[1])
