"""The beginning of a large message, as a message: for a peer that looks at it and does not receive it."""

from ambermq.protocol.amqp10.message.body_walk import head_end
from ambermq.protocol.amqp10.message.sections import Section, is_footer, read_descriptor
from ambermq.protocol.amqp10.types.decode import Buffer

__all__ = ["beginning"]

_DATA = b"\x00\x53\x75\xb0"
"""The descriptor of a data section, and the constructor of a binary value with a size of four bytes."""


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
            width = 4 if payload[start : start + 1] == b"\xb0" else 1
            first = start + 1 + width
            size = int.from_bytes(payload[start + 1 : first])
            content = payload[first : first + min(size, body_bytes_max)]
    return b"".join((payload[:position], _DATA, len(content).to_bytes(4), content))
