"""The body of each message of a campaign: it follows from the message-id, so that a receiver checks every byte.

    63 of 64       1 to 400 bytes
    one of 64      4 KiB and more: larger than a page
    one of 16384   1.2 MiB and more: the log stores it in pieces (`chunk_bytes`)

Two messages differ in nearly every byte, so a body of another message is found too.
"""

import hashlib
from typing import Final

from ambermq.protocol.amqp10.message.message import Data, Message

__all__ = ["body_of", "wrong_body"]

_SMALL_BYTES_MAX: Final = 400
_PAGE_BYTES: Final = 4096
_PIECES_BYTES: Final = 1200 * 1024


def body_of(message_id: str) -> bytes:
    """Return the body of the message with this id."""
    draw = int.from_bytes(hashlib.sha256(message_id.encode()).digest()[:4])
    size = 1 + draw % _SMALL_BYTES_MAX
    if draw % 16384 == 1:
        size += _PIECES_BYTES
    elif draw % 64 == 1:
        size += _PAGE_BYTES
    return hashlib.shake_128(message_id.encode()).digest(size)


def wrong_body(message: Message, message_id: str) -> str:
    """Return what is wrong with the body that arrived for an id; empty if it is right, byte for byte."""
    expected = body_of(message_id)
    if len(message.body) != 1 or not isinstance(message.body[0], Data):
        return f"{message_id} arrived without its one data section"
    found = bytes(message.body[0].value)
    if found == expected:
        return ""
    if len(found) != len(expected):
        return f"{message_id} arrived with {len(found)} bytes instead of {len(expected)}"
    position = next(index for index, pair in enumerate(zip(found, expected, strict=True)) if pair[0] != pair[1])
    return f"{message_id} arrived with another byte at position {position} of {len(expected)}"
