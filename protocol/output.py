"""What waits to be written, in order.

Rule 1: small pieces are joined when taken, large ones handed out as they are.
Rule 2: while a client negotiates SASL, only the lead is handed out: what it pipelines behind waits.
"""

from protocol.decode import Buffer

__all__ = ["Output"]

_LARGE_BYTES = 16 * 1024


class Output:
    """The outgoing bytes of one connection."""

    __slots__ = ("_has_large", "_lead", "_pieces", "is_gated", "size")

    def __init__(self) -> None:
        self._pieces: list[Buffer] = []
        self._lead = b""
        self._has_large = False
        self.is_gated = False
        """True while only the lead may leave."""
        self.size = 0
        """Bytes that wait, the lead with them."""

    def add(self, piece: Buffer) -> None:
        """Write `piece` behind what waits; it must not change any more."""
        size = len(piece)
        self._pieces.append(piece)
        self.size += size
        if size >= _LARGE_BYTES:
            self._has_large = True

    def extend(self, pieces: list[Buffer]) -> None:
        """Write pieces in order, some of them large."""
        self._pieces += pieces
        self.size += sum(map(len, pieces))
        self._has_large = True

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
            self._pieces = []
            self.size = len(self._lead)

    def take(self) -> list[Buffer]:
        """Everything that may leave now."""
        if self._lead:
            return self._take_lead()
        if self.is_gated or not self.size:
            return []
        pieces, self._pieces = self._pieces, []
        self.size = 0
        if len(pieces) == 1:
            self._has_large = False
            return pieces
        if not self._has_large:
            return [b"".join(pieces)]
        self._has_large = False
        return _join_small(pieces)

    def _take_lead(self) -> list[Buffer]:
        lead, self._lead = self._lead, b""
        self.size -= len(lead)
        return [lead, *self.take()]


def _join_small(pieces: list[Buffer]) -> list[Buffer]:
    joined: list[Buffer] = []
    small: list[Buffer] = []
    for piece in pieces:
        if len(piece) < _LARGE_BYTES:
            small.append(piece)
            continue
        if small:
            joined.append(b"".join(small))
            small = []
        joined.append(piece)
    if small:
        joined.append(b"".join(small))
    return joined
