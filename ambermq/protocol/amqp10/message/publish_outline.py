"""The outline of a message, which the engine needs to store it: durable, the hash of its id, delivery annotations.

    header | delivery annotations | message annotations | properties: list, its size, code of message-id | message-id
    the head: equal bytes mean the same outline                                                          | hashed

Rule 1. `read_outline` scans a message in any encoding. It reads the sections up to the properties, and the first field
        of header and properties. So the first frames of a large message are enough.
Rule 2. For any bytes the result is that of the codec, or a DecodeError if the codec raises one. A property test
        compares the two.
Rule 3. The head of a message decides its outline, except for the message-id. A message with the same head that is long
        enough for its properties has the same outline. message_recogniser.py uses this.
Rule 4. The hash of a message-id depends on its type and value, not on its encoding:

    crc32("s" utf-8 | "b" bytes | "u" 16 bytes | "l" 8 bytes, big endian), 1 if that is 0; 0 if there is no id
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
    """The place of a message-id, and the seed of its hash."""

    start: int
    stop: int
    seed: int
    """The CRC-32 of the letter of its type."""
    is_text: bool
    """Whether the bytes must be UTF-8."""


class Outline(NamedTuple):
    """The outline of one message."""

    is_durable: bool
    id_hash: int
    """0 for a message without an id."""
    delivery_annotations: tuple[int, int] | None
    """Start and end of the section; None without one."""
    id_place: IdPlace | None
    head_bytes: int
    """The number of first bytes that decide everything except the id; 0 if the message ends before they do."""
    size_min: int
    """The size of the message up to the end of its properties: a shorter message with this head is cut off."""


def message_id_hash(message_id: int | UUID | bytes | str | None) -> int:
    """Return the hash of a message-id as in an outline: 1 to 2**32 - 1; 0 for None."""
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
    """Return the outline of a message, or of its first frames.

    Raises DecodeError if the sections up to the properties, or the first fields of header and properties, are bad.
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
    """Return the first field of the header whose list begins at `start`."""
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
    raise DecodeError(f"header: durable: expected a boolean, found format code 0x{code:02x}")


def _id_place(payload: Buffer, start: int, stop: int) -> tuple[IdPlace | None, int]:
    """Return the place of the first field of the properties whose list begins at `start`; None if it is null.

    The second value is the number of bytes that decide it: all bytes up to the field's format code and size.
    """
    field = _first_field(payload, start, stop)
    if field == stop:
        return None, stop
    code = payload[field]
    if code == 0x40:
        return None, field + 1
    if code not in _ID_CODES:
        raise DecodeError(f"properties: message_id: expected a message-id, found format code 0x{code:02x}")
    seed, width, size_bytes, is_text = _ID_CODES[code]
    begin = field + 1 + size_bytes
    try:
        if size_bytes:
            width = payload[field + 1] if size_bytes == 1 else int(_UINT(payload, field + 1)[0])
    except (error, IndexError) as failure:
        raise DecodeError(f"properties: message_id: it is cut off at byte {stop}") from failure
    if begin + width > stop:
        raise DecodeError(f"properties: message_id: it ends at byte {begin + width}, the properties at byte {stop}")
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
    """Return the position of the first field of the list at `start`; `stop` if the list is empty."""
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
"""Format code of a message-id -> seed of its hash, its bytes, the bytes of its size, and whether it is text."""
