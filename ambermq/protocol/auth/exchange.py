"""The seam between a connection's SASL frames and the broker's mechanisms.

    init -> Authenticator.begin -> Exchange.step -> Challenge -> response -> Exchange.step -> Success | Failure

Rule 1. An exchange answers each step once, through its callback: at once, or later from the event loop's thread. The
        connection holds its input meanwhile.
Rule 2. The reason of a Failure goes to the log, never to the peer.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol

from ambermq.protocol.auth.identity import Identity
from ambermq.protocol.auth.peer import Peer
from ambermq.protocol.auth.sas_token import TokenGrant

__all__ = ["Answer", "Authenticator", "Challenge", "Exchange", "Failure", "Success"]


class Challenge(NamedTuple):
    """The peer must respond to these bytes."""

    data: bytes


class Success(NamedTuple):
    """The peer has proved who it is."""

    identity: Identity
    data: bytes = b""
    """The additional data of the outcome: the server's signature of SCRAM."""


class Failure(NamedTuple):
    """The peer is refused."""

    reason: str
    """For the log of the broker."""
    user: str = ""
    """The name that the peer gave; empty if it gave none. It is text of a stranger."""


Answer = Challenge | Success | Failure


class Exchange(Protocol):
    """One authentication of one connection."""

    def step(self, response: bytes | None, answer: Callable[[Answer], None]) -> None:
        """Process the initial response (None: there is none) or a response; `answer` gets the result."""

    def end(self) -> None:
        """Drop the work that has not begun: the connection has ended, and no answer is awaited."""


class Authenticator(Protocol):
    """What a server offers to a peer, and how it checks it."""

    def mechanisms(self, peer: Peer) -> tuple[str, ...]:
        """Return the names of the mechanisms for this peer, the best first."""

    def begin(self, mechanism: str, peer: Peer) -> Exchange | None:
        """Begin an exchange; None if the mechanism is not offered to this peer."""

    def bare(self, peer: Peer) -> Identity | None:
        """Return the identity of a peer that comes without SASL; None if it must use SASL."""

    def check_token(self, text: str, audience: str, peer: Peer, now_s: int) -> TokenGrant | Failure:
        """Return what a token grants for an audience at a time, in Unix seconds; Failure if it is refused."""

    def is_granted(self, grant: TokenGrant, now_s: int) -> bool:
        """Return whether a token still holds: it has not expired, and its user and its key are still there."""
