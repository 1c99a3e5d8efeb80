"""The login of the HTTP listener on other interfaces than loopback: Basic with a user, or a bearer token.

Rule 1. Basic is the login of SASL PLAIN: the same throttle, threads and lock. A guess costs the same on both.
Rule 2. A user sees the metrics if its roles show every address of every virtual host: monitor, operator, administrator.
Rule 3. The logins in progress are bounded, in all and for each address, also after their clients have gone.
Rule 4. An answer to a refused login does not tell which users exist.
"""

import asyncio
import base64
import binascii
import hmac
from collections import Counter
from http import HTTPStatus
from typing import Any, Final, final

import structlog

from ambermq.protocol.auth.exchange import Answer, Failure, Success
from ambermq.protocol.auth.identity import Identity
from ambermq.protocol.auth.peer import Peer
from ambermq.protocol.server.limited_log import shown
from ambermq.protocol.server.listeners.listener import shown_name
from ambermq.protocol.server.listeners.peer_address import LOCAL, address_of
from ambermq.protocol.server.server import Server
from ambermq.protocol.server_limits import ServerLimits
from ambermq.tools.broker.http.http_terms import read_token
from ambermq.tools.terminal.errors import ToolError

__all__ = ["HttpAccess", "is_token", "peer_of"]

_FAILED: Final = "HTTP login failed"


@final
class HttpAccess:
    """The logins of one listener; the event loop's thread calls everything."""

    def __init__(self, server: Server, limits: ServerLimits, token: bytes) -> None:
        """Check logins with the users and rules of a server. An empty token is none."""
        self._server = server
        self._limits = limits
        self._token = token
        self._pending: Counter[str] = Counter()
        self._tasks: set[asyncio.Task[None]] = set()

    async def check(self, header: str, peer: Peer) -> HTTPStatus:
        """Return OK if the header `Authorization` of a peer lets it see the metrics, else the status of the answer."""
        scheme, _, value = header.strip().partition(" ")
        if not value:
            return HTTPStatus.UNAUTHORIZED
        limits, pending = self._limits, self._pending
        if pending.total() >= limits.http_connections_max or self._is_crowded(peer.address):
            return HTTPStatus.TOO_MANY_REQUESTS
        pending[peer.address] += 1
        try:
            if scheme.lower() == "bearer":
                return await self._check_token(value.strip(), peer)
            return await self._check_password(value, peer) if scheme.lower() == "basic" else HTTPStatus.UNAUTHORIZED
        finally:
            pending[peer.address] -= 1
            if not pending[peer.address]:
                del pending[peer.address]

    def reload_token(self) -> str:
        """Read the file of the token again, in a thread; a file that cannot be used keeps the old token and is logged.

        Return an empty text, as a hook of a reload without a failure does.
        """
        if self._limits.http_token_file and not self._tasks:
            task = asyncio.get_running_loop().create_task(self._reload_token())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return ""

    async def _reload_token(self) -> None:
        try:
            self._token = await asyncio.to_thread(read_token, self._limits.http_token_file)
        except ToolError as error:
            structlog.get_logger().warning("HTTP token not reloaded", reason=error.message)

    def _is_crowded(self, address: str) -> bool:
        return 0 < self._limits.http_address_connections_max <= self._pending[address]

    async def _check_token(self, text: str, peer: Peer) -> HTTPStatus:
        if is_token(text, self._token):
            return HTTPStatus.OK
        self._refused(peer, "", "the bearer token is wrong")
        # The connection of a guess is held, and the connections are bounded.
        await asyncio.sleep(self._limits.login_delay_ms / 1000)
        return HTTPStatus.UNAUTHORIZED

    async def _check_password(self, text: str, peer: Peer) -> HTTPStatus:
        try:
            name, colon, password = base64.b64decode(text.strip(), validate=True).partition(b":")
        except (binascii.Error, ValueError):
            return HTTPStatus.UNAUTHORIZED
        found = await self._login(b"\0" + name + b"\0" + password, peer) if colon and name else None
        if found is None:
            return HTTPStatus.UNAUTHORIZED
        if isinstance(found, Success):
            return HTTPStatus.OK if self._sees_all(found.identity) else HTTPStatus.FORBIDDEN
        if isinstance(found, Failure):
            self._refused(peer, found.user, found.reason)
        return HTTPStatus.UNAUTHORIZED

    async def _login(self, response: bytes, peer: Peer) -> Answer | None:
        """Return the result of PLAIN, None where it is not offered or takes longer than a request may."""
        exchange = self._server.authenticator.begin("PLAIN", peer)
        if exchange is None:
            return None
        answered: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()

        def answer(found: Answer) -> None:
            if not answered.done():
                answered.set_result(found)

        exchange.step(response, answer)
        try:
            async with asyncio.timeout(self._limits.http_timeout_ms / 1000):
                return await answered
        except TimeoutError:
            return None
        finally:
            exchange.end()

    def _sees_all(self, identity: Identity) -> bool:
        access = self._server.access
        return all(access.sees_all(identity, name) for name in self._server.hosts)

    def _refused(self, peer: Peer, user: str, reason: str) -> None:
        self._server.peer_log.warning(_FAILED, peer.address, user=shown(user), reason=shown(reason))
        self._server.default.gateway.audit.note("login-failed", Identity(user or None), peer, reason=reason)


def is_token(text: str, token: bytes) -> bool:
    """Return whether a text is a token, in the same time for each wrong one; False if there is no token."""
    return hmac.compare_digest(text.encode(), token) and bool(token)


def peer_of(name: Any) -> Peer:
    """Return the peer of a connection with TLS by the socket's name for it."""
    if not name:
        # The peer has gone already. Its answer is lost, whatever it is.
        return Peer(address="unknown", name="unknown", is_local=False, is_encrypted=True)
    address = address_of(tuple(name))
    return Peer(address=address, name=shown_name(name), is_local=address == LOCAL, is_encrypted=True)
