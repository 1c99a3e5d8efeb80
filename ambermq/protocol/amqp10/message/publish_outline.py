"""What the engine needs to know of a message before it stores it, in about a microsecond.

Rule 1: `outline` reads bytes as nearly every client writes them; whatever else it meets, `outline_slowly` reads it
with the codec. Both give the same answer to every message: a property test holds them equal.
Rule 2: only what stands before the properties' end is looked at, so the first frames of a large message will do. Where
there are no properties, the bytes before the body decide alone: the next message that begins with them has the same
outline, which costs one comparison.
Rule 3: a message-id's hash depends on its type and value, not on how it was encoded:

    crc32("s" utf-8 | "b" bytes | "u" 16 bytes | "l" 8 bytes, big endian), 1 where that is 0; 0 where there is no id
"""

from typing import Final, TypeVar
from uuid import UUID
from zlib import crc32

from ambermq.protocol.amqp10.message.sections import Section, read_descriptor, scan_head
from ambermq.protocol.amqp10.performatives.classes import Header, Properties
from ambermq.protocol.amqp10.performatives.read import decode_composite
from ambermq.protocol.amqp10.types.decode import Buffer

__all__ = ["message_id_hash", "outline", "outline_slowly"]

Outline = tuple[bool, int, bool, int]
"""durable, message_id_hash, has_delivery_annotations, deciding_bytes"""


def message_id_hash(message_id: int | UUID | bytes | str | None) -> int:
    """Hash a message-id as `outline` does: 1 to 2**32 - 1, or 0 for None."""
    match message_id:
        case None:
            return 0
        case str():
            return crc32(message_id.encode(), _STRING) or 1
        case bytes():
            return crc32(message_id, _BINARY) or 1
        case UUID():
            return crc32(message_id.bytes, _UUID) or 1
        case _:
            return crc32(message_id.to_bytes(8, "big"), _ULONG) or 1


def outline(payload: bytes | memoryview) -> Outline:
    """Return (durable, message_id_hash, has_delivery_annotations, deciding_bytes) of a message or its first frames.

    Every message that begins with the same `deciding_bytes` bytes has the same outline; 0 where others have a say.
    DecodeError when the sections up to the properties cannot be read. What follows them is not looked at, and neither
    are the other fields of header and properties.
    """
    # Byte by byte and in one piece, for speed: a call a section would double the time, the codec takes ten times it.
    durable = False
    has_delivery_annotations = False
    position = 0
    try:
        if payload[0] or payload[1] != 0x53:
            return outline_slowly(payload)
        section = payload[2]
        if section == 0x70:
            if payload[3] == 0xC0:
                position = 5 + payload[4]
                if payload[5]:
                    code = payload[6]
                    if code == 0x41:
                        durable = True
                    elif code != 0x42 and code != 0x40:  # noqa: PLR1714  # two comparisons are faster than a tuple
                        return outline_slowly(payload)
            elif payload[3] == 0x45:
                position = 4
            else:
                return outline_slowly(payload)
            if payload[position] or payload[position + 1] != 0x53:
                return outline_slowly(payload)
            section = payload[position + 2]
        if section == 0x71:
            if payload[position + 3] != 0xC1:
                return outline_slowly(payload)
            has_delivery_annotations = True
            position += 5 + payload[position + 4]
            if payload[position] or payload[position + 1] != 0x53:
                return outline_slowly(payload)
            section = payload[position + 2]
        if section == 0x72:
            if payload[position + 3] != 0xC1:
                return outline_slowly(payload)
            position += 5 + payload[position + 4]
            if payload[position] or payload[position + 1] != 0x53:
                return outline_slowly(payload)
            section = payload[position + 2]
        if section != 0x73:
            if 0x73 < section < 0x78:
                return durable, 0, has_delivery_annotations, position + 3
            return outline_slowly(payload)
        if payload[position + 3] != 0xC0 or position + 5 + payload[position + 4] > len(payload):
            return outline_slowly(payload)
        if not payload[position + 5]:
            return durable, 0, has_delivery_annotations, 0
        code = payload[position + 6]
        if code == 0xA1:
            length = payload[position + 7]
            if length + 3 > payload[position + 4]:
                return outline_slowly(payload)
            start = position + 8
            return durable, crc32(payload[start : start + length], _STRING) or 1, has_delivery_annotations, 0
        if code == 0x40:
            return durable, 0, has_delivery_annotations, 0
        if code == 0x98 and payload[position + 4] > 17:
            return durable, crc32(payload[position + 7 : position + 23], _UUID) or 1, has_delivery_annotations, 0
    except IndexError:
        pass  # cut off: the codec says where
    return outline_slowly(payload)


def outline_slowly(payload: bytes | memoryview) -> Outline:
    """Answer as `outline` does, by the codec, whatever the encodings; `deciding_bytes` is 0."""
    sections = scan_head(payload)
    header = Header()
    properties = Properties()
    if sections.header is not None:
        header = _section(payload, sections.header[0], Header)
    start = sections.bare_start
    if start < sections.end and read_descriptor(payload, start, sections.end)[0] == Section.PROPERTIES:
        properties = _section(payload, start, Properties)
    return (
        bool(header.durable),
        message_id_hash(properties.message_id),
        sections.delivery_annotations is not None,
        0,
    )


_Read = TypeVar("_Read", Header, Properties)


def _section(payload: Buffer, start: int, section: type[_Read]) -> _Read:
    value, _ = decode_composite(payload, start, len(payload))
    assert isinstance(value, section)  # its descriptor was read before
    return value


_STRING: Final = crc32(b"s")
_BINARY: Final = crc32(b"b")
_UUID: Final = crc32(b"u")
_ULONG: Final = crc32(b"l")
