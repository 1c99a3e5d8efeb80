"""SASL (security, 5.3): the authentication of the peer, before the AMQP header.

    client   SASL header ->                              init ->   [response ->]
    server   SASL header, mechanisms ->                            [challenge ->]   outcome ->   then AMQP headers

Rule 1. A server needs no round trip: an init may arrive together with the header.
Rule 2. A client waits for mechanisms and outcome, since few servers accept a pipelined open.
Rule 3. This module does not check a name and a password: the event Authenticating asks the owner of the connection.
Rule 4. The mechanism AMBERMQ-TOKEN is accepted but not offered. Its response is a token that the server gave to a
        process which it started. The event reports the token as a password without a name.
"""

from dataclasses import dataclass, field
from enum import IntEnum

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

__all__ = ["TOKEN_MECHANISM", "SaslClient", "SaslServer", "SaslState"]

TOKEN_MECHANISM = "AMBERMQ-TOKEN"  # noqa: S105 - the name of a mechanism
"""The mechanism of a process that the server started."""

_ANONYMOUS = ("ANONYMOUS", "MSSBCBS")


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
    """What a server offers; one value serves all its connections."""

    mechanisms: tuple[str, ...] = ("PLAIN", "ANONYMOUS", "MSSBCBS")
    """In order of preference; MSSBCBS authenticates like ANONYMOUS."""
    takes_tokens: bool = False
    """Whether a client may choose AMBERMQ-TOKEN."""


@dataclass(frozen=True, slots=True)
class SaslClient:
    """The credentials of a client."""

    username: str | None = None
    """None: ANONYMOUS."""
    password: str = ""
    """PLAIN sends it in clear text."""
    token: str = field(default="", repr=False)
    """AMBERMQ-TOKEN sends it in clear text, instead of a user name and a password."""

    @property
    def mechanism(self) -> str:
        """The mechanism that this client uses."""
        if self.token:
            return TOKEN_MECHANISM
        return "ANONYMOUS" if self.username is None else "PLAIN"


class ServerNegotiation:
    """One connection's negotiation, from the server's end."""

    __slots__ = ("_mechanism", "_taken", "state")

    def __init__(self, offered: SaslServer) -> None:
        self._taken = (*offered.mechanisms, TOKEN_MECHANISM) if offered.takes_tokens else offered.mechanisms
        self.state = SaslState.WAITING
        self._mechanism = ""

    def receive(self, frame: Composite) -> tuple[Composite | None, Authenticating | None]:
        """Process a frame; return the answer and the question. Raises FramingError if the frame is misplaced."""
        if type(frame) is SaslInit and not self._mechanism and self.state is SaslState.WAITING:
            return self._begin(frame)
        if type(frame) is SaslResponse and self._mechanism and self.state is SaslState.WAITING:
            return self._ask(frame.response)
        raise FramingError(f"{frame.NAME} in SASL state {self.state.name}")

    def _begin(self, init: SaslInit) -> tuple[Composite | None, Authenticating | None]:
        if init.mechanism not in self._taken:
            return self._fail()
        self._mechanism = str(init.mechanism)
        if self._mechanism in _ANONYMOUS:
            return self._ask(b"")
        if init.initial_response is None:
            return SaslChallenge(challenge=b""), None
        return self._ask(init.initial_response)

    def _ask(self, response: bytes) -> tuple[Composite | None, Authenticating | None]:
        if self._mechanism in _ANONYMOUS:
            self.state = SaslState.ASKING
            return None, Authenticating(self._mechanism, None, None)
        if self._mechanism == TOKEN_MECHANISM:
            return self._ask_token(response)
        # PLAIN (RFC 4616): authorization identity, NUL, name, NUL, password.
        parts = bytes(response).split(b"\0")
        try:
            _, username, password = (part.decode() for part in parts)
        except ValueError:
            return self._fail()
        self.state = SaslState.ASKING
        return None, Authenticating(self._mechanism, username, password)

    def _ask_token(self, response: bytes) -> tuple[Composite | None, Authenticating | None]:
        try:
            token = bytes(response).decode("ascii")
        except UnicodeDecodeError:
            return self._fail()
        self.state = SaslState.ASKING
        return None, Authenticating(TOKEN_MECHANISM, None, token)

    def _fail(self) -> tuple[Composite | None, Authenticating | None]:
        self.state = SaslState.FAILED
        return SaslOutcome(code=SaslCode.AUTH), None

    def answer(self, *, ok: bool) -> SaslOutcome:
        """Return the outcome that answers the question."""
        self.state = SaslState.DONE if ok else SaslState.FAILED
        return SaslOutcome(code=SaslCode.OK if ok else SaslCode.AUTH)


class ClientNegotiation:
    """One connection's negotiation, from the client's end."""

    __slots__ = ("_client", "_hostname", "_is_begun", "reason", "state")

    def __init__(self, client: SaslClient, hostname: str | None) -> None:
        self._client = client
        self._hostname = hostname
        self._is_begun = False
        self.state = SaslState.WAITING
        self.reason = ""
        """Why the negotiation failed."""

    def receive(self, frame: Composite) -> Composite | None:
        """Process a frame, and return the answer. Raises FramingError if the frame is misplaced."""
        if self.state is SaslState.WAITING:
            if type(frame) is SaslMechanisms and not self._is_begun:
                return self._begin(frame)
            if type(frame) is SaslChallenge and self._is_begun:
                return SaslResponse(response=self._response())
            if type(frame) is SaslOutcome and self._is_begun:
                self.state = SaslState.DONE if frame.code == SaslCode.OK else SaslState.FAILED
                self.reason = f"the server refused {self._client.mechanism} with SASL code {frame.code}"
                return None
        raise FramingError(f"{frame.NAME} in SASL state {self.state.name}")

    def _begin(self, offered: SaslMechanisms) -> SaslInit | None:
        mechanism = self._client.mechanism
        if mechanism not in offered.sasl_server_mechanisms and mechanism != TOKEN_MECHANISM:
            self.state = SaslState.FAILED
            self.reason = f"the server offers {', '.join(offered.sasl_server_mechanisms)}, not {mechanism}"
            return None
        self._is_begun = True
        return SaslInit(mechanism=mechanism, initial_response=self._response(), hostname=self._hostname)

    def _response(self) -> bytes:
        if self._client.token:
            return self._client.token.encode()
        if self._client.username is None:
            return b"anonymous"
        return b"\0".join((b"", self._client.username.encode(), self._client.password.encode()))
