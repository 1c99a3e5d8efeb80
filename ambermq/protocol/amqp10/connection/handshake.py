"""The protocol headers before the first frame, and SASL between them (transport, 2.2; security, 5.3).

Rule 1. The answer to an unsupported header is a supported header; then the connection ends.
Rule 2. A bare AMQP header is accepted if SASL is optional, and after a successful SASL negotiation.
Rule 3. The first byte that cannot belong to a header is refused; the other seven are not awaited.
"""

from typing import Final

from ambermq.protocol.amqp10.connection.foreign_protocol import foreign_protocol, may_be_foreign
from ambermq.protocol.amqp10.connection.sasl import (
    ClientNegotiation,
    SaslClient,
    SaslServer,
    SaslState,
    ServerNegotiation,
)
from ambermq.protocol.amqp10.errors import FramingError
from ambermq.protocol.amqp10.events import Authenticating
from ambermq.protocol.amqp10.framing.frames import AMQP_HEADER, SASL_FRAME, SASL_HEADER, encode_frame
from ambermq.protocol.amqp10.performatives.base import Composite
from ambermq.protocol.amqp10.performatives.classes import SaslMechanisms

__all__ = ["ClientHandshake", "Handshake", "ServerHandshake"]

_TLS_HEADER_START: Final = b"AMQP\x02"
"""The header of protocol id 2."""


class Handshake:
    """The exchange of one end, from the first byte to the AMQP header."""

    __slots__ = ("failure", "is_done", "is_sasl")

    def __init__(self) -> None:
        self.is_sasl = False
        """Whether the next input is a SASL frame, not a header."""
        self.is_done = False
        """Whether the peer's AMQP header was accepted."""
        self.failure: str | None = None
        """Why SASL failed; None while it has not."""

    def check(self, start: bytes) -> None:
        """Raise FramingError if `start`, less than a header, cannot be the beginning of a header."""
        if not AMQP_HEADER.startswith(start[:4]):
            raise FramingError(f"no protocol header begins with {start.hex()}")

    def receive_header(self, header: bytes) -> bytes:
        """Process a header of eight bytes, and return the answer. Raises FramingError for an unsupported header."""
        raise NotImplementedError

    def receive_frame(self, frame: Composite) -> tuple[bytes, Authenticating | None]:
        """Process a SASL frame; return the answer and the question. Raises FramingError if it is misplaced."""
        raise NotImplementedError

    @property
    def supported(self) -> bytes:
        """The answer to an unsupported header; empty for a client, which sent its header first."""
        return b""


class ServerHandshake(Handshake):
    """The server's end."""

    __slots__ = ("_allow_bare", "_foreign_answer", "_negotiation", "_sasl")

    def __init__(self, sasl: SaslServer | None, *, allow_bare: bool) -> None:
        super().__init__()
        self._sasl = sasl
        self._allow_bare = allow_bare or sasl is None
        self._negotiation: ServerNegotiation | None = None
        self._foreign_answer = b""
        """The answer to a peer of another protocol."""

    @property
    def supported(self) -> bytes:
        """See Handshake."""
        if self._foreign_answer:
            return self._foreign_answer
        return AMQP_HEADER if self._allow_bare or self._negotiation is not None else SASL_HEADER

    def check(self, start: bytes) -> None:
        """See Handshake. The whole header of HTTP is awaited, since HTTP has an answer."""
        if not may_be_foreign(start):
            self._check_foreign(start)
            super().check(start)

    def _check_foreign(self, header: bytes) -> None:
        """Raise FramingError for another protocol, and for TLS within AMQP (transport, 5.2.1)."""
        found = foreign_protocol(header)
        if found is not None:
            self._foreign_answer = found.answer
            raise FramingError(found.name)
        if header.startswith(_TLS_HEADER_START):
            self._foreign_answer = AMQP_HEADER
            raise FramingError("a TLS header within AMQP: TLS needs a listener amqps://")

    def receive_header(self, header: bytes) -> bytes:
        """See Handshake."""
        self._check_foreign(header)
        if header == AMQP_HEADER and self.supported == AMQP_HEADER:
            self.is_done = True
            return AMQP_HEADER
        if header == SASL_HEADER and self._sasl is not None and self._negotiation is None:
            self._negotiation = ServerNegotiation()
            self.is_sasl = True
            mechanisms = SaslMechanisms(sasl_server_mechanisms=self._sasl.mechanisms)
            return SASL_HEADER + encode_frame(0, mechanisms, frame_type=SASL_FRAME)
        raise FramingError(f"protocol header {header.hex()}, expected {self.supported.hex()}")

    def receive_frame(self, frame: Composite) -> tuple[bytes, Authenticating | None]:
        """See Handshake."""
        assert self._negotiation is not None
        return b"", self._negotiation.receive(frame)

    def challenge(self, data: bytes) -> bytes:
        """Answer the question by a challenge, and return its frame."""
        assert self._negotiation is not None
        return encode_frame(0, self._negotiation.challenge(data), frame_type=SASL_FRAME)

    def authenticated(self, *, ok: bool, data: bytes) -> bytes:
        """Answer the question, and return the outcome frame."""
        assert self._negotiation is not None
        self.is_sasl = not ok
        return encode_frame(0, self._negotiation.outcome(ok=ok, data=data), frame_type=SASL_FRAME)


class ClientHandshake(Handshake):
    """The client's end."""

    __slots__ = ("_negotiation",)

    def __init__(self, sasl: SaslClient | None, hostname: str | None) -> None:
        super().__init__()
        self._negotiation = None if sasl is None else ClientNegotiation(sasl, hostname)

    @property
    def first_header(self) -> bytes:
        """The header that the client begins with."""
        return AMQP_HEADER if self._negotiation is None else SASL_HEADER

    def receive_header(self, header: bytes) -> bytes:
        """See Handshake."""
        expected = AMQP_HEADER
        if self._negotiation is not None and self._negotiation.state is not SaslState.DONE:
            expected = SASL_HEADER
        if header != expected:
            raise FramingError(f"protocol header {header.hex()}, expected {expected.hex()}")
        self.is_sasl = header == SASL_HEADER
        self.is_done = not self.is_sasl
        return b""

    def receive_frame(self, frame: Composite) -> tuple[bytes, Authenticating | None]:
        """See Handshake."""
        assert self._negotiation is not None
        answer = self._negotiation.receive(frame)
        if self._negotiation.state is SaslState.DONE:
            self.is_sasl = False
        elif self._negotiation.state is SaslState.FAILED:
            self.failure = self._negotiation.reason
        return b"" if answer is None else encode_frame(0, answer, frame_type=SASL_FRAME), None
