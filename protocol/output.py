"""What waits to be written, in order.

Rule 1: small pieces that follow one another are joined, large ones handed out as they are.
Rule 2: while a client negotiates SASL, only the lead is handed out: what it pipelines behind waits.
"""

from typing import Final

from protocol.decode import Buffer

__all__ = ["LARGE_BYTES", "Output"]

LARGE_BYTES: Final = 16 * 1024
"""A piece of so many bytes is not joined with others: copying it would cost more than handing it out."""


class Output:
    """The outgoing bytes of one connection."""

    __slots__ = ("_lead", "_pieces", "_small", "is_gated", "size")

    def __init__(self) -> None:
        self._pieces: list[Buffer] = []
        """What leaves first, joined where it is small."""
        self._small: list[Buffer] = []
        """The small pieces behind them, yet to be joined."""
        self._lead = b""
        self.is_gated = False
        """True while only the lead may leave."""
        self.size = 0
        """Bytes that wait, the lead with them."""

    def add(self, piece: Buffer) -> None:
        """Write `piece` behind what waits; it must not change any more."""
        size = len(piece)
        self.size += size
        if size < LARGE_BYTES:
            self._small.append(piece)
            return
        self._join_small()
        self._pieces.append(piece)

    def lead(self, piece: bytes) -> None:
        """Write `piece` before what is gated, or behind what waits where nothing is."""
        if self.is_gated:
            self._lead += piece
            self.size += len(piece)
        elif piece:
            self.add(piece)

    def drop_gated(self) -> None:
        """Forget what must not leave any more, since the negotiation failed."""
        if self.is_gated:
            self.is_gated = False
            self._pieces, self._small = [], []
            self.size = len(self._lead)

    def take(self) -> list[Buffer]:
        """Everything that may leave now."""
        if self._lead:
            return self._take_lead()
        if self.is_gated or not self.size:
            return []
        self._join_small()
        pieces, self._pieces = self._pieces, []
        self.size = 0
        return pieces

    def _take_lead(self) -> list[Buffer]:
        lead, self._lead = self._lead, b""
        self.size -= len(lead)
        return [lead, *self.take()]

    def _join_small(self) -> None:
        small = self._small
        if small:
            self._pieces.append(small[0] if len(small) == 1 else b"".join(small))
            self._small = []
