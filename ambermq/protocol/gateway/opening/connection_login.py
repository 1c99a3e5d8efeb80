"""The authentication of one connection: the questions of SASL, and the answers of an exchange.

Rule 1. An answer may come later than its question, from the event loop's thread. After the end of the connection it is
        dropped.
Rule 2. Each login of a user and each failure is in the audit log.
"""

from collections.abc import Callable
from typing import Protocol, final

from ambermq.protocol.amqp10.connection.connection import Connection
from ambermq.protocol.amqp10.events import Authenticating
from ambermq.protocol.auth.audit import AuditTrail
from ambermq.protocol.auth.exchange import Answer, Authenticator, Challenge, Exchange, Failure, Success
from ambermq.protocol.auth.identity import Identity
from ambermq.protocol.auth.peer import Peer
from ambermq.protocol.gateway.nodes.connection_tokens import ConnectionTokens
from ambermq.protocol.server_limits import ServerLimits

__all__ = ["ConnectionLogin", "LoginPeer"]


class _LoginGateway(Protocol):
    """What a login needs of the gateway of its virtual host."""

    @property
    def audit(self) -> AuditTrail:
        """The audit log."""

    @property
    def limits(self) -> ServerLimits:
        """The limits of tokens."""


class LoginPeer(Protocol):
    """What a login needs of the gateway's side of its connection."""

    identity: Identity
    mechanism: str
    """The SASL mechanism that the peer has chosen."""
    login_failure: Failure | None
    """Why the peer was refused."""
    peer_info: Peer
    tokens: ConnectionTokens | None
    """The tokens of a connection that logs in by them; None for another one."""

    @property
    def connection(self) -> Connection:
        """The connection."""

    @property
    def gateway(self) -> _LoginGateway:
        """The gateway of the virtual host."""


@final
class ConnectionLogin:
    """The exchange of one connection."""

    __slots__ = ("_answered_late", "_authenticator", "_exchange", "_peer")

    def __init__(self, peer: LoginPeer, authenticator: Authenticator, answered_late: Callable[[], None] | None) -> None:
        """`answered_late` is called when an answer has come later than its frame, and made events."""
        self._peer = peer
        self._authenticator = authenticator
        self._answered_late = answered_late
        self._exchange: Exchange | None = None

    def ask(self, event: Authenticating) -> None:
        """Pass an init or a response on to the exchange."""
        if self._exchange is None:
            self._peer.mechanism = event.mechanism
            self._exchange = self._authenticator.begin(event.mechanism, self._peer.peer_info)
        exchange = self._exchange
        if exchange is None:
            self._answer(Failure("the mechanism is not offered"))
            return
        is_late = False

        def answer(found: Answer) -> None:
            if self._exchange is not exchange:
                return  # The connection has ended meanwhile.
            self._answer(found)
            if is_late and self._answered_late is not None:
                self._answered_late()

        exchange.step(event.response, answer)
        is_late = True

    def end(self) -> None:
        """Drop the exchange: the connection has ended."""
        if self._exchange is not None:
            self._exchange.end()
            self._exchange = None

    def release(self) -> None:
        """Free the connection at once: nothing but `end` may follow."""
        self._answered_late = None
        del self._peer

    def _answer(self, found: Answer) -> None:
        peer = self._peer
        match found:
            case Challenge():
                peer.connection.challenge(found.data)
            case Success():
                peer.identity = found.identity
                if found.identity.awaits_token:
                    peer.tokens = ConnectionTokens(self._authenticator, peer.gateway.limits.connection_tokens_max)
                if found.identity.username is not None:
                    peer.gateway.audit.note("login", found.identity, peer.peer_info, mechanism=peer.mechanism)
                peer.connection.authenticated(True, found.data)
            case Failure():
                peer.login_failure = found
                stranger = Identity(found.user or None)
                peer.gateway.audit.note("login-failed", stranger, peer.peer_info, reason=found.reason)
                peer.connection.authenticated(False)
