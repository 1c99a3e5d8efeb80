"""A delivery that has not arrived whole: its frames are kept apart and joined once, at the end.

Rule 1: what it costs is counted with an overhead a frame, so that a message in frames of one byte is bounded as well.
Rule 2: joining is linear however small the frames are.
"""

from typing import Final

from ambermq.protocol.amqp10.types.decode import Buffer

__all__ = ["PartialDelivery"]

_PIECES_MAX: Final = 512


class PartialDelivery:
    """The frames of one delivery so far."""

    __slots__ = ("_pieces", "_whole", "cost", "delivery_id", "is_second", "message_format", "settled", "size", "tag")

    def __init__(self, delivery_id: int, tag: bytes | None, message_format: int, *, is_second: bool) -> None:
        self.delivery_id = delivery_id
        self.tag = tag
        self.message_format = message_format
        self.is_second = is_second
        self.settled = False
        """True once any frame said so."""
        self.size = 0
        """Bytes of payload so far."""
        self.cost = 0
        """Bytes of memory so far, as counted against `partial_bytes_max`."""
        self._pieces: list[Buffer] = []
        self._whole = bytearray()

    def add(self, payload: Buffer, overhead_bytes: int) -> None:
        """Take the payload of the next frame."""
        self.size += len(payload)
        self.cost += len(payload) + overhead_bytes
        self._pieces.append(payload)
        if len(self._pieces) == _PIECES_MAX:
            self._whole += b"".join(self._pieces)
            self._pieces.clear()

    def join(self) -> bytes:
        """Put the whole message together."""
        if self._whole:
            return b"".join((self._whole, *self._pieces))
        return b"".join(self._pieces)
