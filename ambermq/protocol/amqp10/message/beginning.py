"""The beginning of a large message, as a message: for a peer that looks at it and does not receive it."""

from typing import Final

from ambermq.protocol.amqp10.message.body_walk import head_end
from ambermq.protocol.amqp10.message.sections import Section, is_footer, read_descriptor
from ambermq.protocol.amqp10.types.decode import Buffer

__all__ = ["beginning", "leading_bytes"]

_DATA: Final = b"\x00\x53\x75\xb0"
"""The descriptor of a data section, and the constructor of a binary value with a size of four bytes."""
_SIZE_BYTES: Final = {b"\xa0": 1, b"\xa1": 1, b"\xb0": 4, b"\xb1": 4}
"""The bytes of the size of a binary value or a string, by its format code."""


def beginning(payload: Buffer, body_bytes_max: int) -> bytes:
    """Return the sections before the body of a message, and the first bytes of its first data section.

    Of a body that is no data the section is empty. `payload` is the first piece of a message. Raises DecodeError if its
    sections are malformed, or if the body does not begin in it.
    """
    position, last = head_end(payload)
    content: Buffer = b""
    if not is_footer(payload, position):
        code, start = read_descriptor(payload, position, len(payload), last)
        if code == Section.DATA:
            content = leading_bytes(payload, start, body_bytes_max)
    return b"".join((payload[:position], _DATA, len(content).to_bytes(4), content))


def leading_bytes(payload: Buffer, start: int, bytes_max: int) -> Buffer:
    """Return the first bytes of the binary or string at `start`, as far as they are here; none of another value."""
    width = _SIZE_BYTES.get(bytes(payload[start : start + 1]), 0)
    if not width:
        return b""
    first = start + 1 + width
    size = int.from_bytes(payload[start + 1 : first])
    return payload[first : first + min(size, bytes_max)]
