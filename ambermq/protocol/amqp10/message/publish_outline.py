"""The outline of a message, which the engine needs to store it: durable, priority, expiry, group, the hash of its id.

    header | annotations | properties: list, its size, code of message-id | message-id | properties | … | body: its size
    the head: equal bytes mean the same outline                           | hashed     | the tail, up to the last size

Rule 1. `read_outline` scans a whole message in any encoding. It decodes the first three fields of the header, and the
        first of the properties, and annotations that schedule the message (delivery_time.py). If there are so many
        properties, it looks for an expiry and a group. Of all else it reads the structure: order, outer types and sizes
        of the sections. A message without a section is a DecodeError; one without a body is accepted, since some
        clients omit it.
Rule 2. For any bytes the result is that of the codec, or a DecodeError if the codec raises one for the structure. A
        property test compares the two.
Rule 3. The head of a message decides its outline, except for the message-id and the structure behind it. Equal bytes
        up to the last size, but for the id, and an equal size of the message, decide both. message_recogniser.py uses
        this.
Rule 4. The hash of a message-id depends on its type and value, not on its encoding:

    crc32("s" utf-8 | "b" bytes | "u" 16 bytes | "l" 8 bytes, big endian), 1 if that is 0; 0 if there is no id
"""

from struct import Struct, error
from typing import Final, NamedTuple
from uuid import UUID
from zlib import crc32

from ambermq.protocol.amqp10.errors import DecodeError
from ambermq.protocol.amqp10.message.delivery_time import AT_ONCE, DeliveryTime, delivery_time
from ambermq.protocol.amqp10.message.expiry_time import EXPIRY_FIELDS, expiry_time_at
from ambermq.protocol.amqp10.message.group_code import GROUP_FIELDS, group_code_at
from ambermq.protocol.amqp10.message.sections import Section, check_sections, is_footer, read_descriptor, section_end
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
    ttl_ms: int
    """The time to live in the header; 0 without one."""
    priority: int
    """The priority in the header, at most 9; 4 without one."""
    delivery: DeliveryTime
    """When the message is to be available, by its annotations."""
    id_hash: int
    """0 for a message without an id."""
    delivery_annotations: tuple[int, int] | None
    """Start and end of the section; None without one."""
    id_place: IdPlace | None
    head_bytes: int
    """The number of first bytes that decide everything except the id; 0 if the message ends before they do."""
    tail_start: int
    """The end of the properties; without them the start of the section after the head."""
    tail_after: int
    """The code of the section before `tail_start`; 0 at the beginning."""
    size_start: int
    """The position of the size of the last section; `fixed_end` if it has none."""
    fixed_end: int
    """The position of the contents of the last section: what follows has no structure that matters."""
    group: int = 0
    """Its group (group_code.py); 0 for none."""
    group_field: int = 0
    """The position of the first property, if a message with this head may have a group; else 0."""
    expires_ms: int = 0
    """When it expires by its properties, in milliseconds since 1970; 0 for never, or if it has a time to live."""
    expiry_field: int = 0
    """The position of the first property, if a message with this head may have such an expiry; else 0."""


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
    """Return the outline of a message.

    Raises DecodeError if the structure of a section, or the first field of header or properties, is bad.
    """
    end = len(payload)
    position = code = 0
    is_durable, ttl_ms, priority, delivery = False, 0, _PRIORITY_DEFAULT, AT_ONCE
    annotations: tuple[int, int] | None = None
    if not end:
        raise DecodeError("the message has no section")
    while position < end:
        previous = code
        if is_footer(payload, position):
            code, start = Section.FOOTER, position + 3
        else:
            code, start = read_descriptor(payload, position, end, code)
        if code > Section.PROPERTIES:
            size_place = _last_size(payload, check_sections(payload, position, previous))
            kind = (is_durable, ttl_ms, priority, delivery)
            return Outline(*kind, 0, annotations, None, start, position, previous, *size_place)
        stop = section_end(payload, start, end, code)
        if code == Section.PROPERTIES:
            place, head_bytes = _id_place(payload, start, stop)
            id_hash = _hash_at(payload, place)
            last = check_sections(payload, stop, code)
            size_place = _last_size(payload, last) if last > stop else (stop, stop)
            kind = (is_durable, ttl_ms, priority, delivery)
            head = (head_bytes, stop, code, *size_place)
            return Outline(*kind, id_hash, annotations, place, *head, *_later_fields(payload, start, stop, ttl_ms))
        if code == Section.HEADER:
            is_durable, priority, ttl_ms = _header_fields(payload, start, stop)
        elif code == Section.DELIVERY_ANNOTATIONS:
            annotations = position, stop
        elif code == Section.MESSAGE_ANNOTATIONS:
            delivery = delivery_time(payload, start, stop)
        position = stop
    return Outline(is_durable, ttl_ms, priority, delivery, 0, annotations, None, 0, end, code, end, end)


def _last_size(payload: Buffer, start: int) -> tuple[int, int]:
    """Return start and end of the size of the last value of a message, at `start`; both are equal without a size."""
    match payload[start] >> 4:
        case 0xA | 0xC | 0xE:
            return start + 1, start + 2
        case 0xB | 0xD | 0xF:
            return start + 1, start + 5
        case 0:
            return len(payload), len(payload)
        case _:
            return start + 1, start + 1


def _header_fields(payload: Buffer, start: int, stop: int) -> tuple[bool, int, int]:
    """Return durable, priority and ttl of the header whose list begins at `start`.

    Of the fields behind durable a bad one is none: a message with such a header is stored as it came.
    """
    field = _first_field(payload, start, stop)
    if field == stop:
        return False, _PRIORITY_DEFAULT, 0
    code = payload[field]
    if code in _FALSE or code == 0x41:
        is_durable, field = code == 0x41, field + 1
    elif code == 0x56 and field + 1 < stop and payload[field + 1] < 2:
        is_durable, field = payload[field + 1] == 1, field + 2
    else:
        raise DecodeError(f"header: durable: expected a boolean, found format code 0x{code:02x}")
    count = _count_of(payload, start)
    if field >= stop or count < _PRIORITY_FIELD:
        return is_durable, _PRIORITY_DEFAULT, 0
    has_priority = payload[field] == _UBYTE and field + 1 < stop
    priority = min(payload[field + 1], _PRIORITY_MAX) if has_priority else _PRIORITY_DEFAULT
    if count < _TTL_FIELD:
        return is_durable, priority, 0
    return is_durable, priority, _ttl_at(payload, field + _PRIORITY_BYTES.get(payload[field], stop), stop)


def _ttl_at(payload: Buffer, field: int, stop: int) -> int:
    """Return the milliseconds in the field at a position; 0 if there are none, or the header is bad there."""
    width = _TTL_BYTES.get(payload[field], 0) if field < stop else 0
    return int.from_bytes(payload[field + 1 : field + 1 + width], "big") if field + 1 + width <= stop else 0


def _count_of(payload: Buffer, start: int) -> int:
    """Return the number of values of the list at `start`, which is not the empty list."""
    return payload[start + 2] if payload[start] == 0xC0 else int(_UINT(payload, start + 5)[0])


def _later_fields(payload: Buffer, start: int, stop: int, ttl_ms: int) -> tuple[int, int, int, int]:
    """Return group, group_field, expires_ms and expiry_field of the properties whose list begins at `start`."""
    field = _first_field(payload, start, stop)
    if field == stop or (count := _count_of(payload, start)) < EXPIRY_FIELDS:
        return 0, 0, 0, 0
    group_field = field if count >= GROUP_FIELDS else 0
    group = group_code_at(payload, field, stop) if group_field else 0
    # A time to live has precedence: it goes by the clock of the broker alone.
    return (group, group_field, 0, 0) if ttl_ms else (group, group_field, expiry_time_at(payload, field, stop), field)


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
    count = _count_of(payload, start)
    if not count:
        return stop
    if first == stop:
        raise DecodeError(f"a list of {count} values at byte {start} has no bytes for them")
    return first


_UINT: Final = Struct(">I").unpack_from
_FALSE: Final = frozenset((0x40, 0x42))
_PRIORITY_FIELD: Final = 2
_TTL_FIELD: Final = 3
_PRIORITY_DEFAULT: Final = 4
_PRIORITY_MAX: Final = 9
_UBYTE: Final = 0x50
_PRIORITY_BYTES: Final = {0x40: 1, 0x50: 2}
"""The bytes of a ubyte or null, by its format code."""
_TTL_BYTES: Final = {0x40: 0, 0x43: 0, 0x52: 1, 0x70: 4}
"""The bytes of a uint or null behind its format code."""
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
