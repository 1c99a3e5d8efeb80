"""The listening sockets of the server: they accept connections, and pause when the process has no descriptor left.

Rule 1. An accept that fails for want of descriptors or memory would fail again at once, for ever. So accepting pauses
        for a second; the kernel holds the connections that wait.
Rule 2. One turn of the event loop accepts a bounded number of connections, so that a flood does not hold the others.
"""

import asyncio
import socket
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any, Final, final

from ambermq.protocol.server.listeners.listener import Listener

__all__ = ["BACKLOG", "PAUSE_SECONDS", "Acceptor", "bound_sockets"]

BACKLOG: Final = 1024
"""The connections that the kernel holds until they are accepted."""
PAUSE_SECONDS: Final = 1.0
_TURN_ACCEPTS_MAX: Final = 64


@final
class Acceptor:
    """The listening sockets of one server; the event loop's thread calls everything."""

    __slots__ = ("_accepted", "_failed", "_listeners", "_loop", "_timer")

    def __init__(
        self, accepted: Callable[[socket.socket, Any, Listener], None], failed: Callable[[OSError], None]
    ) -> None:
        """Create it without sockets.

        `accepted` gets each connection with the name of its peer and its listener, `failed` the error of each pause.
        """
        self._accepted = accepted
        self._failed = failed
        self._loop = asyncio.get_running_loop()
        self._listeners: list[Listener] = []
        self._timer: asyncio.TimerHandle | None = None

    def start(self, listeners: Sequence[Listener]) -> None:
        """Listen on bound sockets. Raises OSError."""
        for listener in listeners:
            for bound in listener.sockets:
                bound.listen(BACKLOG)
        self._listeners = list(listeners)
        self._resume()

    def close(self) -> None:
        """Stop listening, and close the sockets."""
        self._pause()
        for listener in self._listeners:
            for bound in listener.sockets:
                bound.close()
        self._listeners = []

    def _pause(self) -> None:
        for listener in self._listeners:
            for bound in listener.sockets:
                self._loop.remove_reader(bound)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _resume(self) -> None:
        self._timer = None
        for listener in self._listeners:
            for bound in listener.sockets:
                self._loop.add_reader(bound, self._accept, bound, listener)

    def _accept(self, bound: socket.socket, listener: Listener) -> None:
        for _ in range(_TURN_ACCEPTS_MAX):
            try:
                stream, name = bound.accept()
            except (BlockingIOError, InterruptedError):
                return
            except ConnectionError:
                continue  # The peer has gone; the next one waits.
            except OSError as error:
                self._pause()
                self._timer = self._loop.call_later(PAUSE_SECONDS, self._resume)
                self._failed(error)
                return
            stream.setblocking(False)
            self._accepted(stream, name, listener)


def bound_sockets(host: str, port: int) -> list[socket.socket]:
    """Return a socket for each address of a host, all bound to one port; 0: a free one. Raises OSError."""
    found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    with ExitStack() as stack:
        sockets: list[socket.socket] = []
        for family, kind, protocol, _, name in found:
            bound = stack.enter_context(socket.socket(family, kind, protocol))
            bound.setblocking(False)
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            bound.bind((name[0], port or _port_of(sockets), *name[2:]))
            sockets.append(bound)
        stack.pop_all()
    return sockets


def _port_of(sockets: Sequence[socket.socket]) -> int:
    """Return the port of the first socket; 0 without one."""
    return int(sockets[0].getsockname()[1]) if sockets else 0
