"""A mistake of ours in the layers below AMQP ends one connection, and does not keep its place."""

import asyncio
import socket
from types import SimpleNamespace
from typing import Any

from ambermq.protocol.server.server import Server


def test_a_mistake_in_a_layer_counts_the_connection_out() -> None:
    """The task of a handshake ends with an exception that no peer causes: the admission forgets the connection."""
    ours, theirs = socket.socketpair()
    left, logged = list[int](), list[str]()

    async def connect(*_arguments: Any) -> None:
        raise ValueError("a mistake")

    peer_info = SimpleNamespace(name="peer")
    transport = SimpleNamespace(handshake=None, address="", peer_info=peer_info, never_connected=lambda: left.append(1))
    server = SimpleNamespace(
        layers=SimpleNamespace(connect=connect, deadline=lambda: 0.0),
        peer_log=SimpleNamespace(error=lambda kind, _address, **values: logged.append(f"{kind}: {values['error']}")),
    )
    fake: Any = server
    asyncio.run(Server._connect_layers(fake, ours, transport, None, None))  # type: ignore[arg-type]
    assert left == [1]
    assert logged == ["connection failed: ValueError('a mistake')"]
    assert ours.fileno() == -1
    theirs.close()
