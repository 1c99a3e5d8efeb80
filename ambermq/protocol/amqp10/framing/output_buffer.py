"""What waits to be written, in order.

Rule 1: small pieces that follow one another are joined, large ones handed out as they are.
Rule 2: while a client negotiates SASL, only the lead is handed out: what it pipelines behind waits.
"""

from typing import Final

from ambermq.protocol.amqp10.types.decode import Buffer

__all__ = ["LARGE_BYTES", "OutputBuffer"]

LARGE_BYTES: Final = 16 * 1024
"""A piece of so many bytes is not joined with others: copying it would cost more than handing it out."""


class OutputBuffer:
    """The outgoing bytes of one connection."""

    __slots__ = ("_lead", "is_gated", "pieces", "size")

    def __init__(self) -> None:
        self.pieces: list[Buffer] = []
        """As they were written."""
        self._lead = b""
        """What leaves while the rest is gated."""
        self.is_gated = False
        """True while only the lead may leave."""
        self.size = 0
        """Bytes that wait, the lead with them."""

    def add(self, piece: Buffer) -> None:
        """Write `piece` behind what waits; it must not change any more."""
        self.size += len(piece)
        self.pieces.append(piece)

    def lead(self, piece: bytes) -> None:
        """Write `piece` before what is gated, or behind what waits where nothing is."""
        if self.is_gated:
            self._lead += piece
            self.size += len(piece)
        elif piece:
            self.add(piece)

    def ungate(self) -> None:
        """Let what was gated leave too, behind the lead."""
        self.is_gated = False
        if self._lead:
            self.pieces.insert(0, self._lead)
            self._lead = b""

    def drop_gated(self) -> None:
        """Forget what must not leave any more, since the negotiation failed."""
        if self.is_gated:
            self.pieces = []
            self.size = len(self._lead)
            self.ungate()

    def take(self) -> list[Buffer]:
        """Everything that may leave now."""
        if self.is_gated:
            return self._take_lead()
        pieces, self.pieces = self.pieces, []
        self.size = 0
        return _joined(pieces) if len(pieces) > 1 else pieces

    def _take_lead(self) -> list[Buffer]:
        lead, self._lead = self._lead, b""
        self.size -= len(lead)
        return [lead] if lead else []


def _joined(pieces: list[Buffer]) -> list[Buffer]:
    """Join the small ones that follow one another."""
    if max(map(len, pieces)) < LARGE_BYTES:
        return [b"".join(pieces)]
    joined: list[Buffer] = []
    small: list[Buffer] = []
    for piece in pieces:
        if len(piece) < LARGE_BYTES:
            small.append(piece)
            continue
        if small:
            joined.append(b"".join(small))
            small = []
        joined.append(piece)
    if small:
        joined.append(b"".join(small))
    return joined
