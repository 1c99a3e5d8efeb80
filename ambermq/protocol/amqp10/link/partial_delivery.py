"""A partial delivery: its frames are held separately, and joined once, after the last one.

Rule 1. Its cost includes an overhead for each frame. So a message in frames of one byte is bounded, too.
Rule 2. The join is linear in the size of the message, however small the frames are.
Rule 3. A link may take what has arrived piece by piece. Then the last piece has at least one byte.
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
        "frame_ms",
        "is_resumed",
        "is_second",
        "message_format",
        "settled",
        "size",
        "state",
        "tag",
        "taken_bytes",
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
        """The bytes of memory now, as counted against `partial_bytes_max`."""
        self.taken_bytes = 0
        """The bytes of payload that the owner of the link has taken."""
        self.frame_ms = 0
        """When the last frame came, of a delivery of which pieces were taken."""
        self._pieces: list[bytes | memoryview] = []
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

    def take(self, size: int) -> bytes:
        """Return the next `size` bytes, which have arrived, and keep the others."""
        self.taken_bytes += size
        self.cost = self.size - self.taken_bytes
        if self._whole:
            whole = self.join()
            self._whole, self._pieces = bytearray(), [whole[size:]]
            return whole[:size]
        left, pieces = size, self._pieces
        for index, piece in enumerate(pieces):
            if len(piece) > left:
                # A view saves a copy; one of a small part would keep a large frame.
                rest = memoryview(piece)[left:]
                self._pieces = [rest if len(rest) > left else bytes(rest), *pieces[index + 1 :]]
                return b"".join((*pieces[:index], memoryview(piece)[:left]))
            left -= len(piece)
        self._pieces = []
        return b"".join(pieces)

    def join(self) -> bytes:
        """Return the message without the bytes that were taken."""
        if self._whole:
            return b"".join((self._whole, *self._pieces))
        return b"".join(self._pieces)
