"""The HTTP listener of the broker, in its event loop: starlette routes over uvicorn's connections.

Rule 1. Only `ambermq serve --http` imports this module: a start without it is as fast as before.
Rule 2. Everything is bounded: connections, the head of a request, the time of a request and of its answer, and the work
        of a scrape in one turn of the event loop. One scrape is built at a time.
Rule 3. While the broker recovers, a thread answers on the same port: the event loop does not run yet.
Rule 4. A request whose Host is no loopback name is refused: a web page may make a name of its own mean 127.0.0.1.
"""

import asyncio
import ipaddress
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, final

import structlog
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from ambermq.log.manifest.writer_lock import lock_path
from ambermq.protocol.http.histogram import LAG_BOUNDS_US, Histogram
from ambermq.protocol.http.measured_vhost import MeasuredVhost
from ambermq.protocol.http.metrics_text import CONTENT_TYPE, metrics_text, recovery_text
from ambermq.protocol.http.readiness import FENCED, RECOVERING, STOPPING, Readiness, worst
from ambermq.protocol.http.routes import HEALTH_PATH, METRICS_PATH, READY_PATH, health, ready
from ambermq.protocol.server.server import Server
from ambermq.protocol.server_limits import ServerLimits

__all__ = ["HttpListener", "recovery_listener"]

_LAG_SECONDS: Final = 0.1
"""The period of the timer whose delay is measured."""
_MISDIRECTED: Final = 421
_HEADERS: Final = {"cache-control": "no-store"}
Endpoint = Callable[[Request], Awaitable[Response]]


class _Connection(H11Protocol):
    """A connection of a client; it is closed when it makes no progress."""

    connections_max = head_bytes_max = 0
    timeout_s = 0.0
    _timer: asyncio.TimerHandle | None = None
    _seen: object = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin a connection; close it if there are too many."""
        is_too_many = len(self.connections) >= self.connections_max
        super().connection_made(transport)
        if is_too_many:
            transport.abort()
            return
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
class _Host:
    """Serves an application on listening sockets, in the event loop that runs."""

    def __init__(self, application: Starlette, limits: ServerLimits) -> None:
        timeout_s = limits.http_timeout_ms / 1000
        self._config = Config(
            application,
            http=_Connection,
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            log_level="critical",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=False,
            timeout_keep_alive=max(1, int(timeout_s)),
            h11_max_incomplete_event_size=limits.http_header_bytes_max,
        )
        self._config.load()
        self._state = ServerState()
        self._limits = limits
        self._servers: list[asyncio.Server] = []

    async def start(self, sockets: Sequence[socket.socket]) -> None:
        """Accept connections. The sockets stay open when this host ends."""
        loop = asyncio.get_running_loop()
        for bound in sockets:
            self._servers.append(await loop.create_server(self._connect, sock=bound.dup(), backlog=64))

    async def close(self) -> None:
        """Accept no more connections, and cut those that are open."""
        for server in self._servers:
            server.close()
        for connection in list(self._state.connections):
            transport: asyncio.Transport = connection.transport
            transport.abort()
        await asyncio.sleep(0)

    def _connect(self) -> _Connection:
        connection = _Connection(config=self._config, server_state=self._state, app_state={})
        connection.connections_max = self._limits.http_connections_max
        connection.head_bytes_max = self._limits.http_header_bytes_max
        connection.timeout_s = self._limits.http_timeout_ms / 1000
        return connection


@final
class HttpListener:
    """The routes of a broker that serves."""

    def __init__(self, server: Server, directory: str, limits: ServerLimits) -> None:
        """Answer for a server whose data directory is `directory`."""
        self._server = server
        self._directory = directory
        self._limits = limits
        self._lock_file = _identity(directory)
        self._building = asyncio.Lock()
        self.loop_lag = Histogram(LAG_BOUNDS_US)
        """The delays of a timer of the event loop."""
        self._due = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._host = _Host(_application(self._ready, self._metrics), limits)

    async def start(self, sockets: Sequence[socket.socket]) -> None:
        """Accept connections on bound sockets, and begin to measure the event loop."""
        await self._host.start(sockets)
        self._arm()

    async def close(self) -> None:
        """End all connections."""
        if self._timer is not None:
            self._timer.cancel()
        await self._host.close()

    @property
    def vhosts(self) -> Mapping[str, MeasuredVhost]:
        """The virtual hosts by name, each at this moment."""
        return {name: MeasuredVhost(host) for name, host in self._server.hosts.items()}

    async def _ready(self, _request: Request) -> Response:
        answer = ready(await self._readiness())
        return PlainTextResponse(answer.text, answer.status, _HEADERS)

    async def _readiness(self) -> Readiness:
        server = self._server
        if server.failure is not None:
            return Readiness("failed", "the log failed")
        if server.is_ending:
            return STOPPING
        # In a thread, since a slow disk would hold the event loop.
        if await asyncio.to_thread(_identity, self._directory) != self._lock_file:
            return FENCED
        return worst(host.readiness() for host in server.hosts.values())

    async def _metrics(self, _request: Request) -> Response:
        async with self._building:
            parts: list[bytes] = []
            for part in metrics_text(self, queues_max=self._limits.metrics_queues_max):
                parts.append(part)
                await asyncio.sleep(0)
        return Response(b"".join(parts), headers={**_HEADERS, "content-type": CONTENT_TYPE})

    def _arm(self) -> None:
        loop = asyncio.get_running_loop()
        self._due = loop.time() + _LAG_SECONDS
        self._timer = loop.call_later(_LAG_SECONDS, self._measure_lag)

    def _measure_lag(self) -> None:
        self.loop_lag.observe(max(0, int((asyncio.get_running_loop().time() - self._due) * 1_000_000)))
        self._arm()


@contextmanager
def recovery_listener(
    sockets: Sequence[socket.socket], limits: ServerLimits, scanned: Callable[[], tuple[int, int]]
) -> Iterator[None]:
    """Answer on bound sockets during the block, in a thread: the broker lives, and is not ready.

    `scanned` returns how many bytes of the log the recovery has read, and how many it reads.
    """
    if not sockets:
        yield
        return
    recovery = _Recovery(sockets, limits, scanned)
    thread = threading.Thread(target=recovery.run, name="http-recovery", daemon=True)
    thread.start()
    try:
        yield
    finally:
        recovery.end()
        thread.join()


@final
class _Recovery:
    """The answers of a broker that recovers, in an event loop of their own."""

    def __init__(
        self, sockets: Sequence[socket.socket], limits: ServerLimits, scanned: Callable[[], tuple[int, int]]
    ) -> None:
        self._sockets = sockets
        self._scanned = scanned
        self._host = _Host(_application(self._readiness, self._metrics), limits)
        self._loop = asyncio.new_event_loop()
        self._is_over = asyncio.Event()

    def run(self) -> None:
        """Answer until `end` is called; the thread runs it."""
        try:
            self._loop.run_until_complete(self._answer())
        except OSError as error:
            structlog.get_logger().warning("no HTTP answers during the recovery", reason=str(error))
        finally:
            self._loop.close()

    def end(self) -> None:
        """End `run`; another thread calls it."""
        with suppress(RuntimeError):
            # The loop is closed if the listener failed.
            self._loop.call_soon_threadsafe(self._is_over.set)

    async def _answer(self) -> None:
        try:
            await self._host.start(self._sockets)
            await self._is_over.wait()
        finally:
            await self._host.close()

    async def _readiness(self, _request: Request) -> Response:
        done_bytes, total_bytes = self._scanned()
        answer = ready(Readiness(RECOVERING.word, f"{done_bytes} of {total_bytes} bytes of the log are read"))
        return PlainTextResponse(answer.text, answer.status, _HEADERS)

    async def _metrics(self, _request: Request) -> Response:
        return Response(recovery_text(*self._scanned()), headers={**_HEADERS, "content-type": CONTENT_TYPE})


def _application(readiness: Endpoint, metrics: Endpoint) -> Starlette:
    async def healthy(_request: Request) -> Response:
        answer = health()
        return PlainTextResponse(answer.text, answer.status, _HEADERS)

    paths = {HEALTH_PATH: healthy, READY_PATH: readiness, METRICS_PATH: metrics}
    return Starlette(routes=[Route(path, _local(endpoint), methods=["GET"]) for path, endpoint in paths.items()])


def _local(endpoint: Endpoint) -> Endpoint:
    """Return an endpoint that answers only requests to a loopback name."""

    async def checked(request: Request) -> Response:
        if not _is_local_name(request.headers.get("host", "")):
            return PlainTextResponse("the Host of the request is not of this machine\n", _MISDIRECTED)
        return await endpoint(request)

    return checked


def _is_local_name(host: str) -> bool:
    name = host.rpartition(":")[0] if not host.endswith("]") and ":" in host else host
    try:
        return ipaddress.ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return name in ("", "localhost")


def _identity(directory: str) -> tuple[int, int]:
    """Return what tells the lock file of a directory from another one; zeros if there is none."""
    try:
        found = Path(lock_path(directory)).stat()
    except OSError:
        return 0, 0
    return found.st_dev, found.st_ino
