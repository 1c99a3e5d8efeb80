"""The tokens of one connection that logs in by them: each link needs one that is for its address.

    SASL MSSBCBS -> open -> put-token at `$cbs` -> the connection has a user -> links -> renewal, or the end of links

Rule 1. Before the first token the connection may use `$cbs` alone, and counts as a stranger.
Rule 2. All tokens of a connection are of one user, whose rules hold for it.
Rule 3. A token for an audience replaces the one before. When it expires, its links are detached with
        amqp:unauthorized-access, and what they held returns uncounted.
Rule 4. The number of tokens is bounded (connection_tokens_max).
"""

from collections.abc import Callable
from typing import Final, Protocol, final

from ambermq.protocol.amqp10.performatives.classes import Error
from ambermq.protocol.amqp10.spec import AmqpCondition
from ambermq.protocol.amqp10.types.values import Symbol
from ambermq.protocol.auth.access import Access
from ambermq.protocol.auth.address_words import Words, address_words
from ambermq.protocol.auth.audit import AuditTrail
from ambermq.protocol.auth.exchange import Authenticator, Failure
from ambermq.protocol.auth.identity import Identity
from ambermq.protocol.auth.peer import Peer
from ambermq.protocol.auth.sas_token import TokenGrant, covers

__all__ = ["ConnectionTokens", "no_token", "unauthorized"]

_ACCEPTED: Final = (202, "Accepted")
_REFUSED: Final = 401
_DESCRIPTION_MAX: Final = 200


class TokenGateway(Protocol):
    """The gateway of a virtual host, as tokens use it."""

    access: Access
    vhost: str
    audit: AuditTrail
    now_s: Callable[[], int]

    def is_named_by(self, hostname: str) -> bool:
        """Return whether a host name means this virtual host."""


class TokenPeer(Protocol):
    """A connection's gateway, as its tokens use it."""

    identity: Identity
    peer_info: Peer
    mechanism: str

    @property
    def gateway(self) -> TokenGateway:
        """The gateway of the virtual host."""

    def log_in(self, identity: Identity) -> Error | None:
        """Set the identity that the first token proves; return an Error if the user may not connect."""


@final
class ConnectionTokens:
    """The tokens of one connection, by their addresses."""

    __slots__ = ("_authenticator", "_grants", "_tokens_max")

    def __init__(self, authenticator: Authenticator, tokens_max: int) -> None:
        self._authenticator = authenticator
        self._tokens_max = tokens_max
        self._grants: dict[Words, TokenGrant] = {}

    def __len__(self) -> int:
        return len(self._grants)

    def covers(self, address: str) -> bool:
        """Return whether a token is for an address; an empty one needs a token for the whole virtual host."""
        words = address_words(address) if address else ()
        return any(covers(resource, words) for resource in self._grants)

    def put(self, peer: TokenPeer, text: str, audience: str) -> tuple[int, str]:
        """Check a token and keep what it grants; return the status of the answer and its description."""
        gateway = peer.gateway
        found = self._authenticator.check_token(text, audience, peer.peer_info, gateway.now_s())
        refusal = found if isinstance(found, Failure) else self._refusal(peer, found)
        if refusal is None and isinstance(found, TokenGrant):
            if peer.identity.awaits_token:
                error = peer.log_in(Identity(found.user))
                if error is not None:
                    return _REFUSED, str(error.description)[:_DESCRIPTION_MAX]
                gateway.audit.note("login", peer.identity, peer.peer_info, mechanism=peer.mechanism)
            self._grants[found.audience.words] = found
            return _ACCEPTED
        assert refusal is not None
        stranger = Identity(refusal.user or None)
        gateway.audit.note("login-failed", stranger, peer.peer_info, reason=refusal.reason)
        return _REFUSED, refusal.reason

    def drop_ended(self, now_s: int) -> bool:
        """Forget the tokens that do not hold any more; return whether there were any."""
        ended = [words for words, grant in self._grants.items() if not self._authenticator.is_granted(grant, now_s)]
        for words in ended:
            del self._grants[words]
        return bool(ended)

    def _refusal(self, peer: TokenPeer, grant: TokenGrant) -> Failure | None:
        """Return why a right token is of no use for this connection."""
        gateway, identity = peer.gateway, Identity(grant.user)
        if not peer.identity.awaits_token and peer.identity.username != grant.user:
            return Failure("the tokens of a connection are of one user", grant.user)
        if grant.audience.host and not gateway.is_named_by(grant.audience.host):
            return Failure("the host of the token is of another virtual host", grant.user)
        if grant.audience.words not in self._grants and len(self._grants) >= self._tokens_max:
            return Failure(f"more than {self._tokens_max} tokens (connection_tokens_max)", grant.user)
        address = grant.audience.address
        access, vhost = gateway.access, gateway.vhost
        if not access.can_use(identity, vhost).is_allowed or (address and not access.sees(identity, vhost, address)):
            return Failure("no rule allows the user anything there", grant.user)
        return None


def unauthorized(address: str) -> Error:
    """Return the error of a link without a token."""
    return Error(condition=Symbol(AmqpCondition.UNAUTHORIZED_ACCESS), description=no_token(address))


def no_token(address: str) -> str:
    """Return why a link is refused: no token is for its address."""
    return f"no token for {address!r:.80}: put one to $cbs" if address else "no token for the whole virtual host"
