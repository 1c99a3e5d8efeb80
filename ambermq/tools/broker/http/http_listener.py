"""The HTTP listener of the broker, in its event loop: starlette routes.

Rule 1. Only `ambermq serve --http` imports this module: a start without it is as fast as before.
Rule 2. Everything is bounded: connections, the head of a request, the time of a request and of its answer, and the work
        of a scrape in one turn of the event loop. One scrape is built at a time.
Rule 3. While the broker recovers, a thread answers on the same port: the event loop does not run yet.
Rule 4. On loopback a request whose Host is no loopback name is refused: a web page may make a name of its own mean
        127.0.0.1.
Rule 5. On other interfaces the metrics need a login. An answer without one ends its connection, so that a stranger
        cannot send requests faster than it may connect.
"""

import asyncio
import ipaddress
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Final, final

import structlog
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ambermq.log.manifest.writer_lock import lock_path
from ambermq.protocol.http.histogram import LAG_BOUNDS_US, Histogram
from ambermq.protocol.http.measured_vhost import MeasuredVhost
from ambermq.protocol.http.metrics_text import CONTENT_TYPE, metrics_text, recovery_text
from ambermq.protocol.http.readiness import FENCED, RECOVERING, STOPPING, Readiness, worst
from ambermq.protocol.http.routes import HEALTH_PATH, METRICS_PATH, READY_PATH, health, ready
from ambermq.protocol.server.listeners.tls_contexts import TlsContexts
from ambermq.protocol.server.server import Server
from ambermq.protocol.server_limits import ServerLimits
from ambermq.tools.broker.http.http_access import HttpAccess, is_token, peer_of
from ambermq.tools.broker.http.http_host import CONNECTION, HttpHost

__all__ = ["HttpListener", "recovery_listener"]

_LAG_SECONDS: Final = 0.1
"""The period of the timer whose delay is measured."""
_MISDIRECTED: Final = 421
_HEADERS: Final = {"cache-control": "no-store"}
_REFUSALS: Final = {
    HTTPStatus.UNAUTHORIZED: "a login is needed: a user with the role monitor, or a bearer token",
    HTTPStatus.FORBIDDEN: "the user lacks the role monitor",
    HTTPStatus.TOO_MANY_REQUESTS: "too many logins are in progress",
    HTTPStatus.SERVICE_UNAVAILABLE: "the broker recovers: only a bearer token is a login",
}
_CHALLENGE: Final = 'Basic realm="ambermq", charset="UTF-8", Bearer'
Endpoint = Callable[[Request], Awaitable[Response]]
Guard = Callable[[Request], Awaitable[HTTPStatus]]
"""Returns OK for a request that may see the metrics."""


@final
class HttpListener:
    """The routes of a broker that serves."""

    def __init__(
        self,
        server: Server,
        directory: str,
        limits: ServerLimits,
        *,
        tls: TlsContexts | None = None,
        access: HttpAccess | None = None,
    ) -> None:
        """Answer for a server whose data directory is `directory`; `tls` and `access`: on other interfaces."""
        self._server = server
        self._directory = directory
        self._limits = limits
        self._lock_file = _identity(directory)
        self._building = asyncio.Lock()
        self.loop_lag = Histogram(LAG_BOUNDS_US)
        """The delays of a timer of the event loop."""
        self._due = 0.0
        self._timer: asyncio.TimerHandle | None = None
        guard = None if access is None else partial(_checked, access)
        context = None if tls is None else lambda: tls.context
        self._host = HttpHost(_application(self._ready, self._metrics, guard), limits, context)

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
    sockets: Sequence[socket.socket],
    limits: ServerLimits,
    scanned: Callable[[], tuple[int, int]],
    tls: TlsContexts | None = None,
    token: bytes = b"",
) -> Iterator[None]:
    """Answer on bound sockets during the block, in a thread: the broker lives, and is not ready.

    `scanned` returns how many bytes of the log the recovery has read, and how many it reads. With `tls` the metrics
    need the token: users cannot log in yet.
    """
    if not sockets:
        yield
        return
    recovery = _Recovery(sockets, limits, scanned, tls, token)
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
        self,
        sockets: Sequence[socket.socket],
        limits: ServerLimits,
        scanned: Callable[[], tuple[int, int]],
        tls: TlsContexts | None,
        token: bytes,
    ) -> None:
        self._sockets = sockets
        self._scanned = scanned
        self._token = token
        guard = None if tls is None else self._guard
        context = None if tls is None else lambda: tls.context
        self._host = HttpHost(_application(self._readiness, self._metrics, guard), limits, context)
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

    async def _guard(self, request: Request) -> HTTPStatus:
        scheme, _, value = request.headers.get("authorization", "").strip().partition(" ")
        if scheme.lower() != "bearer":
            return HTTPStatus.SERVICE_UNAVAILABLE if value else HTTPStatus.UNAUTHORIZED
        return HTTPStatus.OK if is_token(value.strip(), self._token) else HTTPStatus.UNAUTHORIZED

    async def _readiness(self, _request: Request) -> Response:
        done_bytes, total_bytes = self._scanned()
        answer = ready(Readiness(RECOVERING.word, f"{done_bytes} of {total_bytes} bytes of the log are read"))
        return PlainTextResponse(answer.text, answer.status, _HEADERS)

    async def _metrics(self, _request: Request) -> Response:
        return Response(recovery_text(*self._scanned()), headers={**_HEADERS, "content-type": CONTENT_TYPE})


def _application(readiness: Endpoint, metrics: Endpoint, guard: Guard | None) -> Starlette:
    async def healthy(_request: Request) -> Response:
        answer = health()
        return PlainTextResponse(answer.text, answer.status, _HEADERS)

    if guard is None:
        found = {HEALTH_PATH: _local(healthy), READY_PATH: _local(readiness), METRICS_PATH: _local(metrics)}
        return Starlette(routes=_routes(found))
    found = {HEALTH_PATH: healthy, READY_PATH: readiness, METRICS_PATH: _guarded(metrics, guard)}
    return Starlette(routes=_routes(found), middleware=[Middleware(_OneAnswer)])


def _routes(endpoints: Mapping[str, Endpoint]) -> list[Route]:
    return [Route(path, endpoint, methods=["GET"]) for path, endpoint in endpoints.items()]


@final
class _OneAnswer:
    """Ends the connection after an answer to a stranger, whatever the path."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and add the header to its answer."""

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start" and not scope["state"][CONNECTION].is_trusted:
                message = {**message, "headers": [*message["headers"], (b"connection", b"close")]}
            await send(message)

        await self._app(scope, receive, sent)


def _guarded(endpoint: Endpoint, guard: Guard) -> Endpoint:
    """Return an endpoint that answers only requests with a login."""

    async def checked(request: Request) -> Response:
        status = await guard(request)
        request.scope["state"][CONNECTION].is_trusted = status is HTTPStatus.OK
        if status is HTTPStatus.OK:
            return await endpoint(request)
        headers = {**_HEADERS, "www-authenticate": _CHALLENGE} if status is HTTPStatus.UNAUTHORIZED else _HEADERS
        return PlainTextResponse(f"{_REFUSALS[status]}\n", status, headers)

    return checked


async def _checked(access: HttpAccess, request: Request) -> HTTPStatus:
    return await access.check(request.headers.get("authorization", ""), peer_of(request.client))


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
