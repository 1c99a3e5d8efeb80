"""The listening sockets of the broker: bound before the recovery, so that a port in use is found first.

Rule: a bound socket refuses connections until the server listens on it. So no client waits for the recovery.
"""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from ambermq.protocol.server import acceptor
from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.terminal.errors import ToolError

__all__ = ["bound_sockets", "listen_errors"]


@contextmanager
def listen_errors(host: str, port: int) -> Iterator[None]:
    """Raise a ToolError with advice if the block cannot listen."""
    try:
        yield
    except OSError as error:
        raise ToolError(
            "cannot listen",
            where=str(BrokerUrl(host, port)),
            # asyncio puts a sentence with the address in front of the system's own message.
            found=(error.strerror or str(error)).rpartition(": ")[2],
            advice="use another --host or --port; port 0 chooses a free one",
        ) from error


@contextmanager
def bound_sockets(host: str, port: int) -> Iterator[list[socket.socket]]:
    """Yield sockets that are bound to every address of a host; raise ToolError if one cannot be bound."""
    with ExitStack() as stack:
        with listen_errors(host, port):
            sockets = [stack.enter_context(bound) for bound in acceptor.bound_sockets(host, port)]
        yield sockets
