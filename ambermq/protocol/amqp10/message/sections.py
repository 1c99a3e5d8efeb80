"""The scanner: the sections of an encoded message, found without decoding what is in them (messaging, 3.2).

    header? delivery-annotations? message-annotations?                      the broker's to change
    properties? application-properties? (data+ | sequence+ | value) footer? the bare message, footer: kept to the byte

Rule 1: a section is a descriptor and a list, map, binary or value; the scanner steps over it by its size.
Rule 2: order and number of sections are the specification's, anything else is a DecodeError. A missing body is
accepted where no footer follows: some clients omit an empty one.
Rule 3: the scanner reads as far as asked, and no further: what lies behind may be cut off, or no section at all.
Rule 4: for any bytes, an answer is what the codec reads there, or a DecodeError where the codec raises one.

`SectionScanner` answers readers of sections and their values. publish_outline.py reads each published message once,
with the functions of this module and without an object, for speed.
"""

from struct import Struct, error
from typing import Any, Final

from ambermq.protocol.amqp10.errors import DecodeError
from ambermq.protocol.amqp10.performatives.classes import Header, Properties
from ambermq.protocol.amqp10.performatives.read import decode_composite
from ambermq.protocol.amqp10.spec import DESCRIPTORS
from ambermq.protocol.amqp10.types.decode import Buffer, decode
from ambermq.protocol.amqp10.types.values import Symbol, ULong

__all__ = ["Section", "SectionScanner", "read_descriptor", "section_end"]


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


class SectionScanner:
    """The sections of one message or of its first frames, scanned from the beginning as far as asked.

    All methods may raise DecodeError; what was scanned before stays known.
    """

    __slots__ = ("_bare_start", "_end", "_next", "_previous", "_spans", "payload", "position", "value_start")

    def __init__(self, payload: Buffer) -> None:
        self.payload = payload
        self.position = 0
        """Where the next section begins."""
        self.value_start = 0
        """Where the value of the next section begins, once `next_code` was asked for."""
        self._end = len(payload)
        self._previous = self._next = 0
        self._bare_start = 0
        self._spans: dict[int, tuple[int, int]] = {}

    def next_code(self) -> int:
        """Return the code of the next section, 0 at the end of the message."""
        if self.position == self._end:
            return 0
        self._next, self.value_start = read_descriptor(self.payload, self.position, self._end, self._previous)
        return self._next

    def skip(self) -> int:
        """Step over the section that `next_code` has told, which is not 0; returns its end."""
        code, start = self._next, self.position
        stop = section_end(self.payload, self.value_start, self._end, code)
        if code < Section.PROPERTIES:
            self._bare_start = stop
        self._spans[code] = start, stop
        self._previous, self.position = code, stop
        return stop

    def bare_start(self) -> int:
        """Return where the bare message begins, the size of the message where it has none."""
        while self._previous < Section.PROPERTIES and 0 < self.next_code() < Section.PROPERTIES:
            self.skip()
        return self._bare_start

    def body_code(self) -> int:
        """Step over all sections before the body; returns the code of the section that is next then, 0 at the end."""
        while 0 < (code := self.next_code()) < Section.DATA:
            self.skip()
        return code

    def span(self, code: int) -> tuple[int, int] | None:
        """Return start and end of a section before the body, its descriptor included; None where there is none."""
        while self._previous < code and 0 < self.next_code() <= code:
            self.skip()
        return self._spans.get(code)

    def value(self, code: int) -> Any:
        """Return a section before the body as the codec reads it, a composite or a map; None where there is none."""
        span = self.span(code)
        if span is None:
            return None
        if code in _COMPOSITES:
            return decode_composite(self.payload, *span)[0]
        return decode(self.payload, *span)[0].value


def read_descriptor(payload: Buffer, position: int, end: int, previous: int) -> tuple[int, int]:
    """Read what section begins behind the section `previous`: returns its code and where its value begins."""
    if end - position < 3 or payload[position] != 0:
        raise DecodeError(f"no section begins at byte {position}")
    if payload[position + 1] == 0x53:
        code, start = payload[position + 2], position + 3
    else:
        descriptor, start = decode(payload, position + 1, end)
        code = _CODES.get(descriptor, 0) if isinstance(descriptor, ULong | Symbol) else 0
    if code not in _FOLLOWERS[previous]:
        if code not in _FOLLOWERS or not code:
            raise DecodeError(f"no section has the descriptor at byte {position}")
        raise DecodeError(f"section 0x{code:02x} at byte {position} cannot follow 0x{previous:02x}")
    return code, start


def section_end(payload: Buffer, position: int, end: int, section: int) -> int:
    """Return the end of the section's value at `position`, whose constructor is one that the section may have."""
    try:
        code = payload[position]
        if section == _AMQP_VALUE:
            stop = _skip_value(payload, position, end)
        elif code in _CONSTRUCTORS[section]:
            # Most sections are short lists and maps: for them no third call a section.
            short = code >> 4 == 0xC
            stop = position + 2 + payload[position + 1] if short else _skip_plain(payload, position, code)
        else:
            raise DecodeError(f"format code 0x{code:02x} at byte {position} in section 0x{section:02x}")
    except (error, IndexError) as failure:
        raise DecodeError(f"a section's value at byte {position} is cut off at byte {end}") from failure
    if stop > end:
        raise DecodeError(f"a section's value at byte {position} reaches byte {stop} where {end} is the end")
    return stop


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
        case 0xA | 0xC | 0xE:
            return position + 2 + payload[position + 1]
        case 0x4:
            return position + 1
        case 0xB | 0xD | 0xF:
            return position + 5 + int(_unpack_u32(payload, position + 1)[0])
        case 0x5 | 0x6 | 0x7 | 0x8 | 0x9:
            return position + 1 + (1 << (code >> 4) - 5)
        case _:
            raise DecodeError(f"0x{code:02x} at byte {position} is no format code")


_unpack_u32: Final = Struct(">I").unpack_from

_AMQP_VALUE: Final = Section.AMQP_VALUE
_COMPOSITES: Final = frozenset((Section.HEADER, Section.PROPERTIES))
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
