"""The outgoing bytes of a connection, in order.

Rule 1. Consecutive small pieces are joined; a large piece leaves as it is.
Rule 2. While a client negotiates SASL, only the lead leaves: the pipelined frames after it wait.
"""

from typing import Final

from ambermq.protocol.amqp10.types.decode import Buffer

__all__ = ["LARGE_BYTES", "OutputBuffer"]

LARGE_BYTES: Final = 16 * 1024
"""The size from which a piece is not joined with others: its copy would cost more than a separate piece."""


class OutputBuffer:
    """The outgoing bytes of one connection."""

    __slots__ = ("_lead", "is_gated", "pieces", "size", "taken_bytes")

    def __init__(self) -> None:
        self.pieces: list[Buffer] = []
        """The pieces as they were added."""
        self._lead = b""
        """The bytes that leave while the rest is gated."""
        self.is_gated = False
        """Whether only the lead may leave."""
        self.size = 0
        """The waiting bytes, the lead included."""
        self.taken_bytes = 0
        """The bytes that were taken since the beginning."""

    def add(self, piece: Buffer) -> None:
        """Append `piece`, which must not change afterwards."""
        self.size += len(piece)
        self.pieces.append(piece)

    def lead(self, piece: bytes) -> None:
        """Append `piece` to the lead, or to the output if it is not gated."""
        if self.is_gated:
            self._lead += piece
            self.size += len(piece)
        elif piece:
            self.add(piece)

    def ungate(self) -> None:
        """Open the gate: the gated output leaves after the lead."""
        self.is_gated = False
        if self._lead:
            self.pieces.insert(0, self._lead)
            self._lead = b""

    def drop_gated(self) -> None:
        """Drop the gated output, because the negotiation failed."""
        if self.is_gated:
            self.pieces = []
            self.size = len(self._lead)
            self.ungate()

    def take(self) -> list[Buffer]:
        """Return all output that may leave now, and drop it."""
        if self.is_gated:
            return self._take_lead()
        pieces, self.pieces = self.pieces, []
        self.taken_bytes += self.size
        self.size = 0
        return _joined(pieces) if len(pieces) > 1 else pieces

    def _take_lead(self) -> list[Buffer]:
        lead, self._lead = self._lead, b""
        self.size -= len(lead)
        self.taken_bytes += len(lead)
        return [lead] if lead else []


def _joined(pieces: list[Buffer]) -> list[Buffer]:
    """Return the pieces with consecutive small ones joined."""
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
