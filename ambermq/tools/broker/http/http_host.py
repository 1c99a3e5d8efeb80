"""The connections of the HTTP listener: uvicorn's protocol on accepted sockets, with TLS if the listener has it.

Rule 1. A connection counts from its accept on, before its TLS handshake.
Rule 2. A connection that makes no progress is closed: in the handshake, in the head, and in the answer.
Rule 3. With TLS the listener meets strangers. So an address has limits of its own, and at the limit of connections the
        oldest one without a login is dropped for a new one: strangers do not keep a probe out.
"""

import asyncio
import socket
import ssl
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, final

import structlog
from starlette.applications import Starlette
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from ambermq.protocol.server.listeners.acceptor import Acceptor
from ambermq.protocol.server.listeners.listener import Listener
from ambermq.protocol.server.listeners.listener_address import ListenerAddress
from ambermq.protocol.server.listeners.peer_address import address_of
from ambermq.protocol.server_limits import ServerLimits

__all__ = ["CONNECTION", "HttpConnection", "HttpHost"]

CONNECTION: Final = "connection"
"""The key of a request's state under which its connection is."""
_TLS_END_SECONDS: Final = 1.0


class HttpConnection(H11Protocol):
    """A connection of a client; it is closed when it makes no progress."""

    head_bytes_max = 0
    timeout_s = 0.0
    is_trusted = False
    """Whether a login on it succeeded."""
    _timer: asyncio.TimerHandle | None = None
    _seen: object = None
    _left: Callable[["HttpConnection"], None]

    def begin(self, limits: ServerLimits, left: Callable[["HttpConnection"], None]) -> None:
        """Set the limits of a connection that was accepted; `left` is called at its end."""
        self.head_bytes_max = limits.http_header_bytes_max
        self.timeout_s = limits.http_timeout_ms / 1000
        self._left = left
        self.app_state = {CONNECTION: self}

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to process input; the handshake is done."""
        super().connection_made(transport)
        self._timer = self.loop.call_later(self.timeout_s, self._check)

    def data_received(self, data: bytes) -> None:
        """Process input; close the connection for more than a head at once, which h11 would accept."""
        if len(data) > self.head_bytes_max:
            self.transport.abort()
            return
        super().data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        if self._timer is not None:
            self._timer.cancel()
        self._left(self)
        self.app_state = {}
        super().connection_lost(exc)

    def _check(self) -> None:
        """Close the connection if no request has ended since the last check."""
        state = (id(self.cycle), self.cycle is not None and self.cycle.response_complete)
        if state == self._seen or self.cycle is None:
            self.transport.abort()
            return
        self._seen = state
        self._timer = self.loop.call_later(self.timeout_s, self._check)


@final
@dataclass(slots=True)
class _Slot:
    """What is known of an open connection."""

    address: str
    task: asyncio.Task[None] | None = None
    """The handshake, while it runs."""


@final
class HttpHost:
    """Serves an application on listening sockets, in the event loop that runs."""

    def __init__(
        self, application: Starlette, limits: ServerLimits, tls: Callable[[], ssl.SSLContext] | None = None
    ) -> None:
        """`tls` returns the context for a new handshake; None: plain HTTP, for this machine alone."""
        self._config = _config(application, limits)
        self._state = ServerState()
        self._limits = limits
        self._tls = tls
        self._acceptor: Acceptor | None = None
        self._open: dict[HttpConnection, _Slot] = {}
        self._accepts: Counter[str] = Counter()
        self._second = 0

    async def start(self, sockets: Sequence[socket.socket]) -> None:
        """Accept connections. The sockets stay open when this host ends."""
        self._acceptor = Acceptor(self._accepted, _log_pause)
        self._acceptor.start([Listener(ListenerAddress("http"), [bound.dup() for bound in sockets])])

    async def close(self) -> None:
        """Accept no more connections, and cut those that are open."""
        if self._acceptor is not None:
            self._acceptor.close()
        tasks = [slot.task for slot in self._open.values() if slot.task is not None]
        for connection in list(self._open):
            self._drop(connection)
        if tasks:
            await asyncio.wait(tasks)
        await asyncio.sleep(0)

    def _accepted(self, stream: socket.socket, name: Any, _listener: Listener) -> None:
        address = address_of(name)
        if not self._has_room(address):
            stream.close()
            return
        connection = HttpConnection(config=self._config, server_state=self._state, app_state={})
        connection.begin(self._limits, self._forget)
        slot = self._open[connection] = _Slot(address)
        slot.task = asyncio.get_running_loop().create_task(self._connect(connection, stream))
        slot.task.add_done_callback(lambda task: self._handshake_ended(connection, stream, task))

    async def _connect(self, connection: HttpConnection, stream: socket.socket) -> None:
        """Run the handshake of an accepted connection, within the time of a request. Raises OSError."""
        timeout_s = self._limits.http_timeout_ms / 1000
        options: dict[str, Any] = {}
        if self._tls is not None:
            times = {"ssl_handshake_timeout": timeout_s, "ssl_shutdown_timeout": _TLS_END_SECONDS}
            options = {"ssl": self._tls(), **times}
        async with asyncio.timeout(timeout_s):
            await asyncio.get_running_loop().connect_accepted_socket(lambda: connection, stream, **options)

    def _handshake_ended(self, connection: HttpConnection, stream: socket.socket, task: asyncio.Task[None]) -> None:
        """Close the socket if the peer did not finish its handshake; a task may be cancelled before it begins."""
        slot = self._open.get(connection)
        if slot is not None:
            slot.task = None
        error = None if task.cancelled() else task.exception()
        if task.cancelled() or error is not None:
            self._forget(connection)
            stream.close()
        if error is not None and not isinstance(error, OSError):
            structlog.get_logger().error("HTTP handshake failed", error=repr(error))

    def _has_room(self, address: str) -> bool:
        """Return whether one more connection may be open; drop an older one for it."""
        limits = self._limits
        if self._tls is not None and self._is_excess(address):
            return False
        if len(self._open) < limits.http_connections_max:
            return True
        strangers = (one for one in self._open if self._tls is not None and not one.is_trusted)
        oldest = next(strangers, None)
        if oldest is not None:
            self._drop(oldest)
        return oldest is not None

    def _is_excess(self, address: str) -> bool:
        """Apply the limits of an address."""
        limits, second = self._limits, int(asyncio.get_running_loop().time())
        if second != self._second:
            self._second = second
            self._accepts.clear()
        self._accepts[address] += 1
        if 0 < limits.http_address_accepts_max < self._accepts[address]:
            return True
        count = sum(slot.address == address for slot in self._open.values())
        return 0 < limits.http_address_connections_max <= count

    def _drop(self, connection: HttpConnection) -> None:
        """End a connection at once; it counts no more."""
        slot = self._open.pop(connection, None)
        if slot is not None and slot.task is not None:
            slot.task.cancel()
        # None until the handshake is done.
        with suppress(AttributeError):
            connection.transport.abort()

    def _forget(self, connection: HttpConnection) -> None:
        self._open.pop(connection, None)


def _log_pause(error: OSError) -> None:
    structlog.get_logger().warning("HTTP accepts paused", reason=error.strerror or str(error))


def _config(application: Starlette, limits: ServerLimits) -> Config:
    config = Config(
        application,
        http=HttpConnection,
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        log_level="critical",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=max(1, limits.http_timeout_ms // 1000),
        h11_max_incomplete_event_size=limits.http_header_bytes_max,
    )
    config.load()
    return config
