"""The sections of an encoded message, found without decoding what is in them (messaging, 3.2).

    header? delivery-annotations? message-annotations?                      the broker's to change
    properties? application-properties? (data+ | sequence+ | value) footer? the bare message, footer: kept to the byte

Rule 1: a section is a descriptor and a list, map, binary or value; `scan` steps over it by its size.
Rule 2: order and number of sections are the specification's, anything else is a DecodeError; a value inside a section
is its reader's affair. A missing body is let pass where no footer follows: some clients leave an empty one out.
Rule 3: a rebuilt message differs in the first three sections alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from struct import Struct, error
from typing import Any, Final

from ambermq.protocol.amqp10.errors import DecodeError
from ambermq.protocol.amqp10.performatives.classes import Header, Properties
from ambermq.protocol.amqp10.performatives.read import decode_composite
from ambermq.protocol.amqp10.spec import DESCRIPTORS
from ambermq.protocol.amqp10.types.decode import Buffer, decode
from ambermq.protocol.amqp10.types.encode import encode
from ambermq.protocol.amqp10.types.values import Described, Symbol, ULong

__all__ = ["MessageSections", "Section", "read_descriptor", "read_section", "scan", "scan_head", "with_header"]


class Section:
    """Codes of the sections' descriptors."""

    HEADER: Final = Header.CODE
    DELIVERY_ANNOTATIONS: Final = DESCRIPTORS["delivery-annotations"][1]
    MESSAGE_ANNOTATIONS: Final = DESCRIPTORS["message-annotations"][1]
    PROPERTIES: Final = Properties.CODE
    APPLICATION_PROPERTIES: Final = DESCRIPTORS["application-properties"][1]
    DATA: Final = DESCRIPTORS["data"][1]
    AMQP_SEQUENCE: Final = DESCRIPTORS["amqp-sequence"][1]
    AMQP_VALUE: Final = DESCRIPTORS["amqp-value"][1]
    FOOTER: Final = DESCRIPTORS["footer"][1]


@dataclass(frozen=True, slots=True)
class MessageSections:
    """Where the sections of a message are: (start, end) with the descriptor, None where there is none."""

    header: tuple[int, int] | None
    delivery_annotations: tuple[int, int] | None
    message_annotations: tuple[int, int] | None
    bare_start: int
    """Where properties, application-properties or the body begin: all from here to `end` is forwarded as it is."""
    end: int
    """The size of the message."""


def scan(payload: Buffer) -> MessageSections:
    """Find the sections of a whole message; DecodeError when they are cut off, unknown, or in the wrong order."""
    sections = scan_head(payload)
    position, previous = sections.bare_start, 0
    while position < sections.end:
        code, _, stop = read_section(payload, position, sections.end)
        if code not in _FOLLOWERS[previous]:
            raise DecodeError(f"section 0x{code:02x} at byte {position} cannot follow 0x{previous:02x}")
        previous, position = code, stop
    return sections


def scan_head(payload: Buffer) -> MessageSections:
    """Find the sections before the bare message; what comes then is not looked at, and may be cut off."""
    end = len(payload)
    position, previous = 0, 0
    ranges: dict[int, tuple[int, int]] = {}
    while position < end:
        code, _ = read_descriptor(payload, position, end)
        if code not in _FOLLOWERS[previous]:
            raise DecodeError(f"section 0x{code:02x} at byte {position} cannot follow 0x{previous:02x}")
        if code >= Section.PROPERTIES:
            break
        stop = read_section(payload, position, end)[2]
        ranges[code] = (position, stop)
        previous, position = code, stop
    return MessageSections(
        ranges.get(Section.HEADER),
        ranges.get(Section.DELIVERY_ANNOTATIONS),
        ranges.get(Section.MESSAGE_ANNOTATIONS),
        position,
        end,
    )


def read_section(payload: Buffer, position: int, end: int) -> tuple[int, int, int]:
    """Step over the section at position: returns its code, where its value begins, and where it ends."""
    code, start = read_descriptor(payload, position, end)
    try:
        stop = _skip(payload, start, end, code)
    except (error, IndexError) as failure:
        raise DecodeError(f"a section at byte {position} is cut off at byte {end}") from failure
    if stop > end:
        raise DecodeError(f"a section at byte {position} reaches byte {stop} where {end} is the end")
    return code, start, stop


def read_descriptor(payload: Buffer, position: int, end: int) -> tuple[int, int]:
    """Read what section begins at position: returns its code and where its value begins."""
    if end - position < 3 or payload[position] != 0:
        raise DecodeError(f"no section begins at byte {position}")
    if payload[position + 1] == 0x53:
        code, start = payload[position + 2], position + 3
    else:
        descriptor, start = decode(payload, position + 1, end)
        code = _CODES.get(descriptor, 0) if isinstance(descriptor, ULong | Symbol) else 0
    if code not in _FOLLOWERS or not code:
        raise DecodeError(f"no section has the descriptor at byte {position}")
    return code, start


def with_header(payload: Buffer, *, delivery_count: int, annotations: Mapping[Any, Any] | None = None) -> bytes:
    """Rebuild a message for its next delivery.

    The header's delivery-count is set, annotations (keys are symbols, as such or as str) are merged into the message
    annotations, delivery-annotations, which were for us, are dropped; all from properties on is kept to the byte.
    The payload may be the first frames of a large message. DecodeError when the sections to be rebuilt are bad.
    """
    sections = scan_head(payload)
    header = _header(payload, sections)
    parts: list[Any] = []
    if header is not None or delivery_count:
        parts.append(replace(header or Header(), delivery_count=delivery_count).encode())
    if annotations:
        known = _message_annotations(payload, sections)
        merged = known | {key if isinstance(key, ULong) else Symbol(key): value for key, value in annotations.items()}
        parts.append(encode(Described(ULong(Section.MESSAGE_ANNOTATIONS), merged)))
    elif sections.message_annotations:
        start, stop = sections.message_annotations
        parts.append(payload[start:stop])
    parts.append(payload[sections.bare_start :])
    return b"".join(parts)


def _header(payload: Buffer, sections: MessageSections) -> Header | None:
    if sections.header is None:
        return None
    start, stop = sections.header
    header, _ = decode_composite(payload, start, stop)
    assert isinstance(header, Header)  # scan_head has read the descriptor
    return header


def _message_annotations(payload: Buffer, sections: MessageSections) -> dict[Any, Any]:
    if sections.message_annotations is None:
        return {}
    start, stop = sections.message_annotations
    described, _ = decode(payload, start, stop)
    if not isinstance(described.value, dict):
        raise DecodeError("message annotations with keys that are neither symbols nor numbers")
    return described.value


def _skip(payload: Buffer, position: int, end: int, section: int) -> int:
    """Return the end of the section's value, whose constructor must be one that the section may have."""
    code = payload[position]
    if section == Section.AMQP_VALUE:
        return _skip_value(payload, position, end)
    if code not in _CONSTRUCTORS.get(section, ()):
        raise DecodeError(f"format code 0x{code:02x} at byte {position} in section 0x{section:02x}")
    return _skip_plain(payload, position, code)


def _skip_value(payload: Buffer, position: int, end: int) -> int:
    """Step over any value: descriptors, each a value itself, then one more."""
    pending = 1
    while pending:
        if position >= end:
            raise DecodeError(f"a value is cut off at byte {end}")
        code = payload[position]
        if code == 0:
            pending += 1  # a descriptor and the value it describes, for one value
            position += 1
        else:
            position = _skip_plain(payload, position, code)
            pending -= 1
    return position


def _skip_plain(payload: Buffer, position: int, code: int) -> int:
    """Step over a value without descriptor: a format code's upper half says how its size is written (types, 1.2)."""
    match code >> 4:
        case 0x4:
            return position + 1
        case 0x5 | 0x6 | 0x7 | 0x8 | 0x9:
            return position + 1 + (1 << (code >> 4) - 5)
        case 0xA | 0xC | 0xE:
            return position + 2 + payload[position + 1]
        case 0xB | 0xD | 0xF:
            return position + 5 + int(_unpack_u32(payload, position + 1)[0])
        case _:
            raise DecodeError(f"0x{code:02x} at byte {position} is no format code")


_unpack_u32: Final = Struct(">I").unpack_from

_LISTS: Final = frozenset((0x45, 0xC0, 0xD0))
_MAPS: Final = frozenset((0xC1, 0xD1))
_CONSTRUCTORS: Final = {
    Section.HEADER: _LISTS,
    Section.DELIVERY_ANNOTATIONS: _MAPS,
    Section.MESSAGE_ANNOTATIONS: _MAPS,
    Section.PROPERTIES: _LISTS,
    Section.APPLICATION_PROPERTIES: _MAPS,
    Section.DATA: frozenset((0xA0, 0xB0)),
    Section.AMQP_SEQUENCE: _LISTS,
    Section.FOOTER: _MAPS,
}
_DESCRIBED: Final = (
    *DESCRIPTORS.values(),
    (Header.NAME, Section.HEADER),
    (Properties.NAME, Section.PROPERTIES),
)
_CODES: Final[dict[int | str, int]] = {
    descriptor: code for symbol, code in _DESCRIBED for descriptor in (Symbol(symbol), code)
}
_BEFORE_BODY: Final = range(Section.HEADER, Section.DATA)

# Section -> those that may come next; 0 is the beginning. Sections before the body come once and in ascending order.
_FOLLOWERS: Final[dict[int, frozenset[int]]] = {
    0: frozenset(_CODES.values()) - {Section.FOOTER},
    **{code: frozenset(range(code + 1, Section.FOOTER)) for code in _BEFORE_BODY},
    Section.DATA: frozenset((Section.DATA, Section.FOOTER)),
    Section.AMQP_SEQUENCE: frozenset((Section.AMQP_SEQUENCE, Section.FOOTER)),
    Section.AMQP_VALUE: frozenset((Section.FOOTER,)),
    Section.FOOTER: frozenset(),
}
