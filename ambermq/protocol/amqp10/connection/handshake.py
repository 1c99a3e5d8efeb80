"""What comes before the first frame: protocol headers, and SASL between them (transport, 2.2; security, 5.3).

Rule 1: a header that we do not speak is answered by one that we do, and that is the end.
Rule 2: a bare AMQP header is welcome where SASL may be left out, and behind a SASL negotiation that went well.
Rule 3: the first byte that cannot belong to a header is refused; nobody waits for the other seven.
"""

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


class Handshake:
    """One end's way from the first byte to the AMQP header."""

    __slots__ = ("failure", "is_done", "is_sasl")

    def __init__(self) -> None:
        self.is_sasl = False
        """SASL frames are due, not a header."""
        self.is_done = False
        """The peer's AMQP header came, in its place."""
        self.failure: str | None = None
        """Why SASL failed, once it has."""

    def check(self, start: bytes) -> None:
        """FramingError when `start` (less than a header) cannot become a header."""
        if not AMQP_HEADER.startswith(start[:4]):
            raise FramingError(f"no protocol header begins with {start.hex()}")

    def receive_header(self, header: bytes) -> bytes:
        """Take eight bytes; returns what to answer. FramingError when they are no header that we can go on from."""
        raise NotImplementedError

    def receive_frame(self, frame: Composite) -> tuple[bytes, Authenticating | None]:
        """Take a SASL frame; returns what to answer and what to ask. FramingError when it has no place here."""
        raise NotImplementedError

    @property
    def supported(self) -> bytes:
        """The header to answer a wrong one with; empty for a client, which has said its own."""
        return b""


class ServerHandshake(Handshake):
    """The server's end."""

    __slots__ = ("_allow_bare", "_negotiation", "_sasl")

    def __init__(self, sasl: SaslServer | None, *, allow_bare: bool) -> None:
        super().__init__()
        self._sasl = sasl
        self._allow_bare = allow_bare or sasl is None
        self._negotiation: ServerNegotiation | None = None

    @property
    def supported(self) -> bytes:
        """See Handshake."""
        return AMQP_HEADER if self._allow_bare or self._negotiation is not None else SASL_HEADER

    def receive_header(self, header: bytes) -> bytes:
        """See Handshake."""
        if header == AMQP_HEADER and self.supported == AMQP_HEADER:
            self.is_done = True
            return AMQP_HEADER
        if header == SASL_HEADER and self._sasl is not None and self._negotiation is None:
            self._negotiation = ServerNegotiation(self._sasl)
            self.is_sasl = True
            mechanisms = SaslMechanisms(sasl_server_mechanisms=self._sasl.mechanisms)
            return SASL_HEADER + encode_frame(0, mechanisms, frame_type=SASL_FRAME)
        raise FramingError(f"protocol header {header.hex()} where {self.supported.hex()} would do")

    def receive_frame(self, frame: Composite) -> tuple[bytes, Authenticating | None]:
        """See Handshake."""
        assert self._negotiation is not None
        answer, question = self._negotiation.receive(frame)
        if self._negotiation.state is SaslState.FAILED:
            self.failure = "no mechanism that we offer, or no way to read its response"
        return b"" if answer is None else encode_frame(0, answer, frame_type=SASL_FRAME), question

    def authenticated(self, *, ok: bool) -> bytes:
        """Answer the question asked; returns the outcome to send."""
        assert self._negotiation is not None
        self.is_sasl = not ok
        if not ok:
            self.failure = "name and password were not accepted"
        return encode_frame(0, self._negotiation.answer(ok=ok), frame_type=SASL_FRAME)


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
            raise FramingError(f"protocol header {header.hex()} where {expected.hex()} was expected")
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
