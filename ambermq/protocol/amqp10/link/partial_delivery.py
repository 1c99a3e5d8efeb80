"""A partial delivery: its frames are held separately, and joined once, after the last one.

Rule 1. Its cost includes an overhead for each frame. So a message in frames of one byte is bounded, too.
Rule 2. The join is linear in the size of the message, however small the frames are.
"""

from typing import Final

from ambermq.protocol.amqp10.performatives.classes import TransactionalState
from ambermq.protocol.amqp10.types.decode import Buffer

__all__ = ["PartialDelivery"]

_PIECES_MAX: Final = 512


class PartialDelivery:
    """The frames of one delivery that have arrived."""

    __slots__ = (
        "_pieces",
        "_whole",
        "cost",
        "delivery_id",
        "is_resumed",
        "is_second",
        "message_format",
        "settled",
        "size",
        "state",
        "tag",
    )

    def __init__(self, delivery_id: int, tag: bytes | None, message_format: int, *, is_second: bool) -> None:
        self.delivery_id = delivery_id
        self.tag = tag
        self.message_format = message_format
        self.is_second = is_second
        self.is_resumed = False
        """Whether its first frame resumed it."""
        self.settled = False
        """Whether a frame was sent settled."""
        self.state: TransactionalState | None = None
        """The transaction that its first frame names."""
        self.size = 0
        """The bytes of payload so far."""
        self.cost = 0
        """The bytes of memory so far, as counted against `partial_bytes_max`."""
        self._pieces: list[bytes] = []
        self._whole = bytearray()

    def add(self, payload: Buffer, overhead_bytes: int) -> None:
        """Add the payload of the next frame."""
        self.size += len(payload)
        self.cost += len(payload) + overhead_bytes
        # A view would keep the whole chunk of its read, which may be 64 times larger.
        self._pieces.append(bytes(payload))
        if len(self._pieces) == _PIECES_MAX:
            self._whole += b"".join(self._pieces)
            self._pieces.clear()

    def join(self) -> bytes:
        """Return the whole message."""
        if self._whole:
            return b"".join((self._whole, *self._pieces))
        return b"".join(self._pieces)
