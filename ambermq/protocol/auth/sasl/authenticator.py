"""What a broker offers to a peer, and who the peer is.

    mechanism         offered to                                                 identity
    EXTERNAL          a peer whose certificate or user id names a user           the user, or `local`
    SCRAM-SHA-512     every peer, if the broker has users                        the user
    SCRAM-SHA-256     every peer, if the broker has users                        the user
    PLAIN             the same, over loopback, a unix socket or TLS              the user
    ANONYMOUS         local peers of a broker without users; else if allowed     none; `anonymous` if there are users
    MSSBCBS           as PLAIN, if a user has a token key                        the user of the tokens that are put
    MSSBCBS           without such a key: as ANONYMOUS                           as ANONYMOUS
    AMBERMQ-TOKEN     no peer: a child process of the broker knows of it         a scope

Rule 1. The table of users may change at any time. A connection has the mechanisms of the time of its accept.
Rule 2. A process with the user id of the broker, or of root, is the user `local` over a unix socket.
Rule 3. Each failure is counted, and answered after the delay of the throttle. A locked login never succeeds.
"""

from collections.abc import Callable
from typing import Final, Protocol, final

from ambermq.protocol.auth.exchange import Answer, Challenge, Exchange, Failure, Success
from ambermq.protocol.auth.identity import Identity, ManagementScope
from ambermq.protocol.auth.peer import Peer
from ambermq.protocol.auth.sas_token import TokenGrant, covers, decoy_key, parse_audience, parse_token, signing_key
from ambermq.protocol.auth.sasl.login_throttle import LoginThrottle
from ambermq.protocol.auth.sasl.scram_exchange import SCRAM_MECHANISMS, ScramExchange
from ambermq.protocol.auth.sasl.simple_exchanges import (
    TOKEN_MECHANISM,
    AnonymousExchange,
    ExternalExchange,
    LoginWork,
    PlainExchange,
    TokenExchange,
)
from ambermq.protocol.auth.users import Users
from ambermq.protocol.auth.verifier import NAME_BYTES_MAX

__all__ = ["ANONYMOUS_USER", "LOCAL_USER", "BrokerAuthenticator"]

LOCAL_USER: Final = "local"
"""The user of a process with the broker's own user id, or root's, over a unix socket."""
ANONYMOUS_USER: Final = "anonymous"
"""The user of a client without a name, where the broker has users."""
TOKENS_MECHANISM: Final = "MSSBCBS"
"""The mechanism of a client that logs in by tokens; without users as ANONYMOUS."""
_ANONYMOUS_MECHANISMS: Final = ("ANONYMOUS", TOKENS_MECHANISM)
_ROOT: Final = 0


class _NamingExchange(Protocol):
    """The steps of an exchange, which knows the name that the peer gave."""

    user: str

    def step(self, response: bytes | None, answer: Callable[[Answer], None]) -> None:
        """See Exchange."""


@final
class BrokerAuthenticator:
    """The authentication of one broker's connections."""

    def __init__(
        self,
        users: Users,
        throttle: LoginThrottle,
        work: LoginWork,
        *,
        redeem: Callable[[str], ManagementScope | None],
        allows_anonymous: bool | None = None,
        plain_without_tls: bool = False,
        cbs_anonymous: bool = False,
        own_uid: int = -1,
        name_of_uid: Callable[[int], str] = lambda _uid: "",
    ) -> None:
        """`allows_anonymous` None: local peers while there are no users. `name_of_uid` is the system's user table."""
        self.users = users
        self._throttle = throttle
        self._work = work
        self._redeem = redeem
        self._allows_anonymous = allows_anonymous
        self._plain_without_tls = plain_without_tls
        self._is_cbs_anonymous = cbs_anonymous
        self._own_uid = own_uid
        self._name_of_uid = name_of_uid

    def mechanisms(self, peer: Peer) -> tuple[str, ...]:
        """See Authenticator."""
        is_anonymous = self._is_anonymous_allowed(peer)
        names: tuple[str, ...] = () if self._external(peer) is None else ("EXTERNAL",)
        if len(self.users) or not is_anonymous:
            names += SCRAM_MECHANISMS
            if self._is_plain_allowed(peer):
                names += ("PLAIN",)
        if self._takes_tokens(peer):
            names += ("ANONYMOUS", TOKENS_MECHANISM) if is_anonymous or self._is_cbs_anonymous else (TOKENS_MECHANISM,)
            return names
        return names + (_ANONYMOUS_MECHANISMS if is_anonymous else ())

    def begin(self, mechanism: str, peer: Peer) -> Exchange | None:
        """See Authenticator."""
        if mechanism == TOKEN_MECHANISM:
            return self._guarded(peer, TokenExchange(self._redeem))
        if mechanism not in self.mechanisms(peer):
            return None
        if mechanism in SCRAM_MECHANISMS:
            return self._guarded(peer, ScramExchange(mechanism, self.users))
        if mechanism == "PLAIN":
            return self._guarded(peer, PlainExchange(self.users, self._work, lambda user: self._is_locked(peer, user)))
        identity = self._external(peer) if mechanism == "EXTERNAL" else self._nameless(mechanism, peer)
        assert identity is not None, "EXTERNAL is offered to a peer that has an identity"
        exchange = ExternalExchange if mechanism == "EXTERNAL" else AnonymousExchange
        return self._guarded(peer, exchange(identity))

    def bare(self, peer: Peer) -> Identity | None:
        """See Authenticator."""
        return self._anonymous(peer) if self._is_anonymous_allowed(peer) else None

    def _guarded(self, peer: Peer, exchange: _NamingExchange) -> Exchange:
        return _GuardedExchange(exchange, peer, self._throttle, self._work)

    def _is_locked(self, peer: Peer, user: str) -> bool:
        return self._throttle.is_locked(peer, user, self._work.now_ms())

    def _is_plain_allowed(self, peer: Peer) -> bool:
        return peer.is_local or peer.is_encrypted or self._plain_without_tls

    def _is_anonymous_allowed(self, peer: Peer) -> bool:
        if self._allows_anonymous is not None:
            return self._allows_anonymous
        return peer.is_local and not len(self.users)

    def check_token(self, text: str, audience: str, peer: Peer, now_s: int) -> TokenGrant | Failure:
        """See Authenticator."""
        token, wanted = parse_token(text), parse_audience(audience)
        if token is None:
            return self._refuse_token(peer, "", "the token is no shared access signature")
        user = next((found for name in token.users if (found := self.users.find(name)) is not None), None)
        name = token.users[0] if user is None else user.name
        keys = user.keys if user is not None and user.keys else (decoy_key(self.users.secret, name),)
        key = signing_key(token, keys)
        if key is None or user is None or not user.keys or self._is_locked(peer, name):
            return self._refuse_token(peer, name, "the user, the key or the signature of the token is wrong")
        grant = TokenGrant(user.name, key.id, wanted, token.expires_s)
        if not self.is_granted(grant, now_s):
            return Failure("the token has expired, or its user is disabled", name)
        is_for = token.audience.host.lower() == wanted.host.lower() and covers(token.audience.words, wanted.words)
        return grant if is_for else Failure("the token is for another audience", name)

    def is_granted(self, grant: TokenGrant, now_s: int) -> bool:
        """See Authenticator."""
        user = self.users.find(grant.user)
        is_there = user is not None and user.is_enabled and any(key.id == grant.key_id for key in user.keys)
        return is_there and now_s < grant.expires_s

    def _refuse_token(self, peer: Peer, user: str, reason: str) -> Failure:
        """Count a wrong token like a wrong password; it is not delayed, since no key can be guessed."""
        self._throttle.fail(peer, user, self._work.now_ms())
        return Failure(reason, user[:NAME_BYTES_MAX])

    def _takes_tokens(self, peer: Peer) -> bool:
        """Return whether a peer may log in by tokens: users have keys, and the transport hides them as for PLAIN."""
        return self.users.has_keys and self._is_plain_allowed(peer)

    def _nameless(self, mechanism: str, peer: Peer) -> Identity:
        """Return the identity of a peer that has proved nothing by SASL."""
        is_token = mechanism == TOKENS_MECHANISM or not self._is_anonymous_allowed(peer)
        return Identity(awaits_token=True) if is_token and self._takes_tokens(peer) else self._anonymous(peer)

    def _anonymous(self, peer: Peer) -> Identity:
        return Identity(ANONYMOUS_USER) if len(self.users) else Identity(is_remote=not peer.is_local)

    def _external(self, peer: Peer) -> Identity | None:
        """Return the identity that the transport of a peer has proved."""
        if peer.uid is not None and peer.uid in {self._own_uid, _ROOT}:
            return Identity(LOCAL_USER, is_local=True)
        names = (peer.certificate_user, None if peer.uid is None else self._name_of_uid(peer.uid))
        users = [self.users.find(name) for name in names if name]
        return next((Identity(user.name) for user in users if user is not None and user.is_enabled), None)


@final
class _GuardedExchange:
    """An exchange whose failures are counted and delayed."""

    __slots__ = ("_exchange", "_peer", "_throttle", "_work")

    def __init__(self, exchange: _NamingExchange, peer: Peer, throttle: LoginThrottle, work: LoginWork) -> None:
        self._exchange = exchange
        self._peer = peer
        self._throttle = throttle
        self._work = work

    def step(self, response: bytes | None, answer: Callable[[Answer], None]) -> None:
        """See Exchange."""
        self._exchange.step(response, lambda found: self._answered(found, answer))

    def end(self) -> None:
        """See Exchange. Only PLAIN has work that waits."""
        if isinstance(self._exchange, PlainExchange):
            self._exchange.end()

    def _answered(self, found: Answer, answer: Callable[[Answer], None]) -> None:
        if isinstance(found, Challenge):
            answer(found)
            return
        user, now_ms = self._exchange.user, self._work.now_ms()
        if isinstance(found, Success) and self._throttle.is_locked(self._peer, user, now_ms):
            found = Failure("locked after too many failures", user)
        if isinstance(found, Success):
            self._throttle.succeed(self._peer, user)
            answer(found)
            return
        self._work.later(self._throttle.fail(self._peer, user, now_ms), lambda: answer(found))
