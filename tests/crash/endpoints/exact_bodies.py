"""The messages of the campaigns with frames: the body of each follows from its number.

most           1 to 300 bytes
one of 16      20 to 80 KiB: several frames, and several chunk records where `chunk_bytes` is 16 KiB
"""

import hashlib
from typing import Final

from ambermq.protocol.amqp10.message.message import Data, Message
from ambermq.protocol.amqp10.performatives.classes import Header, Properties

__all__ = ["CHUNK_BYTES", "exact_body", "exact_message"]

CHUNK_BYTES: Final = 16 << 10
"""The size of a chunk record in these campaigns."""
_SMALL_BYTES_MAX: Final = 300
_LARGE_EACH: Final = 16


def exact_body(number: int) -> bytes:
    """Return the body of the message with this number."""
    key = b"%d" % number
    draw = int.from_bytes(hashlib.sha256(key).digest()[:4])
    size = 1 + draw % _SMALL_BYTES_MAX
    if draw % _LARGE_EACH == 1:
        size += (20 << 10) + draw % (60 << 10)
    return hashlib.shake_128(key).digest(size)


def exact_message(number: int, group: str | None = None) -> Message:
    """Return the message with this number, of a group if one is given."""
    properties = Properties(message_id=str(number), group_id=group)
    return Message(header=Header(durable=True), properties=properties, body=(Data(exact_body(number)),))
