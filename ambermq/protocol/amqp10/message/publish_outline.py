"""What the engine needs to know of a message before it stores it: durable, the hash of its id, delivery annotations.

    header | delivery annotations | message annotations | properties: list, its size, code of message-id | message-id
    the head: equal bytes mean the same outline                                                          | hashed

Rule 1: `read_outline` scans one message in any encoding. It reads the sections up to the properties, the first field
of header and properties, and nothing else. So the first frames of a large message are enough. For any bytes it gives
the codec's answer, or a DecodeError where the codec raises one; a property test compares the two.
Rule 2: the head of a message decides its outline, but for the message-id itself: a message with the same head, and long
enough for its properties, has the same outline. So runs of messages are recognised (message_recogniser.py).
Rule 3: a message-id's hash depends on its type and value, not on how it was encoded:

    crc32("s" utf-8 | "b" bytes | "u" 16 bytes | "l" 8 bytes, big endian), 1 where that is 0; 0 where there is no id
"""

from struct import Struct, error
from typing import Final, NamedTuple
from uuid import UUID
from zlib import crc32

from ambermq.protocol.amqp10.errors import DecodeError
from ambermq.protocol.amqp10.message.sections import Section, read_descriptor, section_end
from ambermq.protocol.amqp10.types.decode import Buffer

__all__ = ["IdPlace", "Outline", "message_id_hash", "read_outline"]


class IdPlace(NamedTuple):
    """Where a message-id is, and what its hash begins with."""

    start: int
    stop: int
    seed: int
    """The CRC-32 of what stands for its type."""
    is_text: bool
    """Whether the bytes must be UTF-8."""


class Outline(NamedTuple):
    """The outline of one message."""

    is_durable: bool
    id_hash: int
    """0 for a message without an id."""
    delivery_annotations: tuple[int, int] | None
    """Start and end of the section; None where there is none."""
    id_place: IdPlace | None
    head_bytes: int
    """How many first bytes decide all but the id; 0 where the message ends before they do."""
    size_min: int
    """The size of a message up to the end of its properties: a shorter one is cut off in them."""


def message_id_hash(message_id: int | UUID | bytes | str | None) -> int:
    """Hash a message-id as an outline does: 1 to 2**32 - 1, or 0 for None."""
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


def read_outline(payload: Buffer) -> Outline:
    """Read the outline of a message, or of its first frames.

    DecodeError when the sections up to the properties cannot be read, or what is asked of header and properties.
    """
    end = len(payload)
    position = code = 0
    is_durable = False
    annotations: tuple[int, int] | None = None
    while position < end:
        code, start = read_descriptor(payload, position, end, code)
        if code > Section.PROPERTIES:
            return Outline(is_durable, 0, annotations, None, start, start)
        stop = section_end(payload, start, end, code)
        if code == Section.PROPERTIES:
            place, head_bytes = _id_place(payload, start, stop)
            return Outline(is_durable, _hash_at(payload, place), annotations, place, head_bytes, stop)
        if code == Section.HEADER:
            is_durable = _is_durable(payload, start, stop)
        elif code == Section.DELIVERY_ANNOTATIONS:
            annotations = position, stop
        position = stop
    return Outline(is_durable, 0, annotations, None, 0, end)


def _is_durable(payload: Buffer, start: int, stop: int) -> bool:
    """Read the first field of the header whose list begins at `start`."""
    field = _first_field(payload, start, stop)
    if field == stop:
        return False
    code = payload[field]
    if code == 0x41:
        return True
    if code in _FALSE:
        return False
    if code == 0x56 and field + 1 < stop and payload[field + 1] < 2:
        return payload[field + 1] == 1
    raise DecodeError(f"header: durable: a value with format code 0x{code:02x} does not belong here")


def _id_place(payload: Buffer, start: int, stop: int) -> tuple[IdPlace | None, int]:
    """Find the first field of the properties whose list begins at `start`: returns its place, None where it is null.

    Returns also how many bytes decide that: all up to the code of the field and its size.
    """
    field = _first_field(payload, start, stop)
    if field == stop:
        return None, stop
    code = payload[field]
    if code == 0x40:
        return None, field + 1
    if code not in _ID_CODES:
        raise DecodeError(f"properties: message_id: a value with format code 0x{code:02x} does not belong here")
    seed, width, size_bytes, is_text = _ID_CODES[code]
    begin = field + 1 + size_bytes
    try:
        if size_bytes:
            width = payload[field + 1] if size_bytes == 1 else int(_UINT(payload, field + 1)[0])
    except (error, IndexError) as failure:
        raise DecodeError(f"properties: message_id: it is cut off at byte {stop}") from failure
    if begin + width > stop:
        raise DecodeError(f"properties: message_id: it reaches byte {begin + width} where {stop} is the end")
    return IdPlace(begin, begin + width, seed, is_text), begin


def _hash_at(payload: Buffer, place: IdPlace | None) -> int:
    if place is None:
        return 0
    message_id = bytes(payload[place.start : place.stop])
    if place.is_text and not message_id.isascii():
        try:
            message_id.decode()
        except UnicodeDecodeError as failure:
            raise DecodeError(f"properties: message_id: {failure}") from failure
    return crc32(message_id, place.seed) or 1


def _first_field(payload: Buffer, start: int, stop: int) -> int:
    """Return where the first field of the list at `start` begins, `stop` where it has none."""
    code = payload[start]
    if code == 0x45:
        return stop
    first = start + (3 if code == 0xC0 else 9)
    if first > stop:
        raise DecodeError(f"a list at byte {start} ends at byte {stop}, before its count does")
    count = payload[start + 2] if code == 0xC0 else int(_UINT(payload, start + 5)[0])
    if not count:
        return stop
    if first == stop:
        raise DecodeError(f"a list of {count} values at byte {start} has no bytes for them")
    return first


_UINT: Final = Struct(">I").unpack_from
_FALSE: Final = frozenset((0x40, 0x42))
_STRING: Final = crc32(b"s")
_BINARY: Final = crc32(b"b")
_UUID: Final = crc32(b"u")
_ULONG: Final = crc32(b"l")
_ID_CODES: Final = {
    0x44: (crc32(bytes(8), _ULONG), 0, 0, False),
    0x53: (crc32(bytes(7), _ULONG), 1, 0, False),
    0x80: (_ULONG, 8, 0, False),
    0x98: (_UUID, 16, 0, False),
    0xA0: (_BINARY, 0, 1, False),
    0xB0: (_BINARY, 0, 4, False),
    0xA1: (_STRING, 0, 1, True),
    0xB1: (_STRING, 0, 4, True),
}
"""Each encoding of a message-id: what its hash begins with, its bytes, or those of its size, and whether it is text."""
