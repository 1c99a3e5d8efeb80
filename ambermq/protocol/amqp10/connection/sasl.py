"""SASL (security, 5.3): the frames of an authentication, before the AMQP header.

    client   SASL header ->                              init ->   [response ->]
    server   SASL header, mechanisms ->                            [challenge ->]   outcome ->   then AMQP headers

Rule 1. A server needs no round trip: an init may arrive together with the header.
Rule 2. A client waits for mechanisms and outcome, since few servers accept a pipelined open.
Rule 3. This module knows no mechanism. The event Authenticating has each init and each response of a client; the owner
        of the connection answers it by a challenge or an outcome. A client has the port SaslClient.
Rule 4. A client may choose a mechanism that is not offered: the owner of the server decides about that, too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, Protocol

from ambermq.protocol.amqp10.errors import FramingError
from ambermq.protocol.amqp10.events import Authenticating
from ambermq.protocol.amqp10.performatives.base import Composite
from ambermq.protocol.amqp10.performatives.classes import (
    SaslChallenge,
    SaslInit,
    SaslMechanisms,
    SaslOutcome,
    SaslResponse,
)
from ambermq.protocol.amqp10.spec import SaslCode

__all__ = ["RESPONSES_MAX", "SaslClient", "SaslClientExchange", "SaslServer", "SaslState"]

RESPONSES_MAX: Final = 8
"""The responses of one authentication: no mechanism needs as many."""


class SaslState(IntEnum):
    """The state of a negotiation."""

    WAITING = 0
    """The next frame of the peer is awaited: init, challenge, response or outcome."""
    ASKING = 1
    """Authenticating was appended and is not answered (server)."""
    DONE = 2
    FAILED = 3


@dataclass(frozen=True, slots=True)
class SaslServer:
    """What a server offers to one connection, or to all."""

    mechanisms: tuple[str, ...] = ("PLAIN", "ANONYMOUS", "MSSBCBS")
    """In order of preference."""


class SaslClientExchange(Protocol):
    """One authentication of a client by the mechanism that it has chosen."""

    @property
    def mechanism(self) -> str:
        """The name of the mechanism."""

    def first(self) -> bytes | None:
        """Return the initial response; None for none."""

    def respond(self, challenge: bytes) -> bytes | None:
        """Return the response to a challenge; None if the challenge is wrong, which ends the negotiation."""

    def is_proved(self, data: bytes) -> bool:
        """Return whether a server that accepts with this additional data has proved what the mechanism asks of it."""


class SaslClient(Protocol):
    """The credentials of a client."""

    def choose(self, offered: Sequence[str]) -> SaslClientExchange | str:
        """Begin an exchange by the best of the offered mechanisms; else return why none of them fits."""


class ServerNegotiation:
    """One connection's negotiation, from the server's end."""

    __slots__ = ("_mechanism", "_responses", "state")

    def __init__(self) -> None:
        self.state = SaslState.WAITING
        self._mechanism = ""
        self._responses = 0

    def receive(self, frame: Composite) -> Authenticating:
        """Process a frame and return the question. Raises FramingError if the frame is misplaced."""
        if type(frame) is SaslInit and not self._mechanism and self.state is SaslState.WAITING:
            self._mechanism = str(frame.mechanism) or "-"
            return self._ask(frame.initial_response)
        if type(frame) is SaslResponse and self._mechanism and self.state is SaslState.WAITING:
            self._responses += 1
            if self._responses > RESPONSES_MAX:
                raise FramingError(f"more than {RESPONSES_MAX} SASL responses")
            return self._ask(frame.response)
        raise FramingError(f"{frame.NAME} in SASL state {self.state.name}")

    def _ask(self, response: bytes | None) -> Authenticating:
        self.state = SaslState.ASKING
        return Authenticating(self._mechanism, None if response is None else bytes(response))

    def challenge(self, data: bytes) -> SaslChallenge:
        """Return the challenge that answers the question."""
        self.state = SaslState.WAITING
        return SaslChallenge(challenge=data)

    def outcome(self, *, ok: bool, data: bytes = b"") -> SaslOutcome:
        """Return the outcome that answers the question."""
        self.state = SaslState.DONE if ok else SaslState.FAILED
        return SaslOutcome(code=SaslCode.OK if ok else SaslCode.AUTH, additional_data=data or None)


class ClientNegotiation:
    """One connection's negotiation, from the client's end."""

    __slots__ = ("_client", "_exchange", "_hostname", "_responses", "reason", "state")

    def __init__(self, client: SaslClient, hostname: str | None) -> None:
        self._client = client
        self._hostname = hostname
        self._exchange: SaslClientExchange | None = None
        self._responses = 0
        self.state = SaslState.WAITING
        self.reason = ""
        """Why the negotiation failed."""

    def receive(self, frame: Composite) -> Composite | None:
        """Process a frame, and return the answer. Raises FramingError if the frame is misplaced."""
        exchange = self._exchange
        if self.state is SaslState.WAITING:
            if type(frame) is SaslMechanisms and exchange is None:
                return self._begin(frame)
            if type(frame) is SaslChallenge and exchange is not None:
                return self._respond(exchange, bytes(frame.challenge))
            if type(frame) is SaslOutcome and exchange is not None:
                self._end(exchange, frame)
                return None
        raise FramingError(f"{frame.NAME} in SASL state {self.state.name}")

    def _begin(self, offered: SaslMechanisms) -> SaslInit | None:
        chosen = self._client.choose(tuple(map(str, offered.sasl_server_mechanisms)))
        if isinstance(chosen, str):
            self._fail(chosen)
            return None
        self._exchange = chosen
        return SaslInit(mechanism=chosen.mechanism, initial_response=chosen.first(), hostname=self._hostname)

    def _respond(self, exchange: SaslClientExchange, challenge: bytes) -> SaslResponse | None:
        self._responses += 1
        response = exchange.respond(challenge) if self._responses <= RESPONSES_MAX else None
        if response is None:
            self._fail(f"the server's challenge for {exchange.mechanism} is wrong: is this the right server?")
            return None
        return SaslResponse(response=response)

    def _end(self, exchange: SaslClientExchange, outcome: SaslOutcome) -> None:
        if outcome.code != SaslCode.OK:
            why = "the user or the password is wrong"
            if outcome.code != SaslCode.AUTH:
                why = f"an error of the server, SASL code {outcome.code}"
            self._fail(f"the server refused {exchange.mechanism}: {why}")
        elif not exchange.is_proved(bytes(outcome.additional_data or b"")):
            self._fail(f"the server did not prove by {exchange.mechanism} that it knows the password")
        else:
            self.state = SaslState.DONE

    def _fail(self, reason: str) -> None:
        self.state = SaslState.FAILED
        self.reason = reason
