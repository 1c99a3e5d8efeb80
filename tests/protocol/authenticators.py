"""Authenticators for gateways without a broker, and logins without threads."""

from collections.abc import Callable
from dataclasses import dataclass, field

from ambermq.protocol.auth.exchange import Answer, Exchange, Failure, Success
from ambermq.protocol.auth.identity import Identity
from ambermq.protocol.auth.peer import Peer
from ambermq.protocol.auth.sas_token import TokenGrant

__all__ = ["AnyPeer", "InlineLogins"]


@dataclass
class AnyPeer:
    """Accepts every peer that gives the right response, by any mechanism; with None also one without SASL."""

    identity: Identity = field(default_factory=Identity)
    response: bytes | None = None
    asked: list[tuple[str, bytes | None]] = field(default_factory=list)
    """Each mechanism with its response."""

    def mechanisms(self, peer: Peer) -> tuple[str, ...]:
        del peer
        return ("PLAIN", "ANONYMOUS", "MSSBCBS")

    def bare(self, peer: Peer) -> Identity | None:
        del peer
        return self.identity if self.response is None else None

    def check_token(self, text: str, audience: str, peer: Peer, now_s: int) -> TokenGrant | Failure:
        del text, audience, peer, now_s
        return Failure("this authenticator knows no tokens")

    def is_granted(self, grant: TokenGrant, now_s: int) -> bool:
        return now_s < grant.expires_s

    def begin(self, mechanism: str, peer: Peer) -> Exchange | None:
        del peer
        return _AnyExchange(self, mechanism)


@dataclass
class _AnyExchange:
    owner: AnyPeer
    mechanism: str

    def step(self, response: bytes | None, answer: Callable[[Answer], None]) -> None:
        self.owner.asked.append((self.mechanism, response))
        is_right = self.owner.response in {None, response}
        answer(Success(self.owner.identity) if is_right else Failure("not the right response"))

    def end(self) -> None: ...


class InlineLogins:
    """A LoginWork whose clock stands still until `advance`; checks run at once, unless they are held."""

    def __init__(self) -> None:
        self.time_ms = 0
        self.held: list[Callable[[], None]] | None = None
        """The checks that wait; None: they run at once."""
        self.checks = 0
        self._due: list[tuple[int, Callable[[], None]]] = []

    def check(self, is_right: Callable[[], bool], checked: Callable[[bool], None]) -> None:
        self.checks += 1
        if self.held is None:
            checked(is_right())
        else:
            self.held.append(lambda: checked(is_right()))

    def later(self, delay_ms: int, call: Callable[[], None]) -> None:
        if delay_ms:
            self._due.append((self.time_ms + delay_ms, call))
        else:
            call()

    def now_ms(self) -> int:
        return self.time_ms

    def advance(self, ms: int) -> None:
        self.time_ms += ms
        due = [call for at, call in self._due if at <= self.time_ms]
        self._due = [(at, call) for at, call in self._due if at > self.time_ms]
        for call in due:
            call()
