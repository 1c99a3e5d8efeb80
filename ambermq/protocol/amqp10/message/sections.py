"""The scanner: the sections of an encoded message, found without decoding their contents (messaging, 3.2).

    header? delivery-annotations? message-annotations?                      the broker may change them
    properties? application-properties? (data+ | sequence+ | value) footer? bare message and footer stay byte for byte

Rule 1. A section is a descriptor and a list, map, binary or value; the scanner skips it by its size.
Rule 2. Order and number of sections are those of the specification; anything else is a DecodeError. A missing body is
        accepted if no footer follows: some clients omit an empty one.
Rule 3. The scanner reads only as far as its caller asks. Later bytes may be missing, or not be a section.
Rule 4. For any bytes the result is that of the codec, or a DecodeError if the codec raises one.
Rule 5. `check_sections` reads to the end. It accepts structure: descriptors, outer types and sizes, not the contents
        of a section. So its time depends on the number of sections, not on the size of a body.
Rule 6. `check_sections` accepts a footer before the body, too, in the short encoding: rhea writes it there. The scanner
        finds the sections before that footer, and refuses the body behind it.

`SectionScanner` is for callers that read several sections or their values. publish_outline.py reads each published
message once, with the functions of this module and without an object, for speed.
"""

from struct import Struct, error
from typing import Any, Final

from ambermq.protocol.amqp10.errors import DecodeError
from ambermq.protocol.amqp10.performatives.classes import Header, Properties
from ambermq.protocol.amqp10.performatives.read import decode_composite
from ambermq.protocol.amqp10.spec import DESCRIPTORS, PRIMITIVES
from ambermq.protocol.amqp10.types.decode import Buffer, decode
from ambermq.protocol.amqp10.types.values import Symbol, ULong

__all__ = [
    "BODY_SECTIONS_MAX",
    "CONSTRUCTORS",
    "Section",
    "SectionScanner",
    "check_sections",
    "is_footer",
    "read_descriptor",
    "section_end",
    "skip_plain",
    "skip_value",
]

BODY_SECTIONS_MAX: Final = 16_384
"""The bound of the sections of a published message: each costs up to a microsecond of the event loop."""

_DESCRIPTORS_MAX: Final = 1_024
"""The bound of the descriptors around an amqp-value and inside each other; no known client decodes so many."""


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
    """The sections of a message or of its first frames, scanned from the beginning on demand.

    All methods may raise DecodeError; the sections that are scanned by then stay known.
    """

    __slots__ = ("_bare_start", "_end", "_next", "_previous", "_spans", "payload", "position", "value_start")

    def __init__(self, payload: Buffer) -> None:
        self.payload = payload
        self.position = 0
        """The position of the next section."""
        self.value_start = 0
        """The position of the value of the next section, after a call of `next_code`."""
        self._end = len(payload)
        self._previous = self._next = 0
        self._bare_start = 0
        self._spans: dict[int, tuple[int, int]] = {}

    def next_code(self) -> int:
        """Return the code of the next section; 0 at the end of the message."""
        if self.position == self._end:
            return 0
        self._next, self.value_start = read_descriptor(self.payload, self.position, self._end, self._previous)
        return self._next

    def skip(self) -> int:
        """Skip the section whose code `next_code` has returned, which must not be 0, and return its end."""
        code, start = self._next, self.position
        stop = section_end(self.payload, self.value_start, self._end, code)
        if code < Section.PROPERTIES:
            self._bare_start = stop
        self._spans[code] = start, stop
        self._previous, self.position = code, stop
        return stop

    def _head_code(self) -> int:
        """Return the code of the next section; 0 at the end, and at a footer: no section of the head follows it."""
        return 0 if is_footer(self.payload, self.position) else self.next_code()

    def bare_start(self) -> int:
        """Return the position of the bare message; the size of the message if there is none."""
        while self._previous < Section.PROPERTIES and 0 < self._head_code() < Section.PROPERTIES:
            self.skip()
        return self._bare_start

    def body_code(self) -> int:
        """Skip all sections before the body, and return the code of the next section; 0 at the end."""
        while 0 < (code := self.next_code()) < Section.DATA:
            self.skip()
        return code

    def span(self, code: int) -> tuple[int, int] | None:
        """Return start and end of a section before the body, with its descriptor; None without such a section."""
        while self._previous < code and 0 < self._head_code() <= code:
            self.skip()
        return self._spans.get(code)

    def value(self, code: int) -> Any:
        """Return a section before the body as the codec reads it, a composite or a map; None without such a section."""
        span = self.span(code)
        if span is None:
            return None
        if code in _COMPOSITES:
            return decode_composite(self.payload, *span)[0]
        return decode(self.payload, *span)[0].value


def read_descriptor(payload: Buffer, position: int, end: int, previous: int) -> tuple[int, int]:
    """Return the code of the section at `position` and the position of its value. It follows the section `previous`."""
    if end - position < 3 or payload[position] != 0:
        raise DecodeError(f"no section begins at byte {position}")
    form = payload[position + 1]
    if form == 0x53:
        code, start = payload[position + 2], position + 3
    elif form not in _DESCRIPTOR_FORMS:
        raise DecodeError(f"the descriptor at byte {position} is not that of a section")
    else:
        descriptor, start = decode(payload, position + 1, end)
        code = _CODES.get(descriptor, 0) if isinstance(descriptor, ULong | Symbol) else 0
    if code not in _FOLLOWERS[previous]:
        if code not in _FOLLOWERS or not code:
            raise DecodeError(f"the descriptor at byte {position} is not that of a section")
        raise DecodeError(f"section 0x{code:02x} at byte {position} cannot follow 0x{previous:02x}")
    return code, start


def check_sections(payload: Buffer, position: int, previous: int) -> int:
    """Scan the sections from `position`, after the section `previous`, to the end of the message.

    Return the position of the value of the last one. Raises DecodeError if the structure is bad.
    """
    end, start, has_early_footer = len(payload), position, False
    for _ in range(BODY_SECTIONS_MAX):
        if position >= end:
            break
        if not has_early_footer and previous < Section.DATA and is_footer(payload, position):
            has_early_footer, start = True, position + 3
            position = section_end(payload, start, end, Section.FOOTER)
            continue
        previous, start = read_descriptor(payload, position, end, previous)
        if has_early_footer and not Section.DATA <= previous < Section.FOOTER:
            raise DecodeError(f"section 0x{previous:02x} at byte {position} cannot follow the footer")
        position = section_end(payload, start, end, previous)
    if position < end:
        raise DecodeError(f"the message has more than {BODY_SECTIONS_MAX} sections")
    if has_early_footer and previous < Section.DATA:
        raise DecodeError("the message has a footer and no body")
    return start


def is_footer(payload: Buffer, position: int) -> bool:
    """Return whether a footer in the short encoding begins at a position."""
    return bool(payload[position : position + 3] == _FOOTER)


def section_end(payload: Buffer, position: int, end: int, section: int) -> int:
    """Return the end of a section's value at `position`. Raises DecodeError for a constructor of another type."""
    try:
        code = payload[position]
        if section == _AMQP_VALUE:
            stop = skip_value(payload, position, end)
        elif code in CONSTRUCTORS[section]:
            # Most sections are short lists and maps: this saves a call for them.
            short = code >> 4 == 0xC
            stop = position + 2 + payload[position + 1] if short else skip_plain(payload, position, code)
        else:
            raise DecodeError(f"format code 0x{code:02x} at byte {position} is not allowed in section 0x{section:02x}")
    except (error, IndexError) as failure:
        raise DecodeError(f"a section's value at byte {position} is cut off at byte {end}") from failure
    if stop > end:
        raise DecodeError(f"a section's value at byte {position} ends at byte {stop}, the message at byte {end}")
    return stop


def skip_value(payload: Buffer, position: int, end: int) -> int:
    """Return the end of any value: its descriptors, each of them a value, and then the value."""
    pending = 1
    descriptors = 0
    while pending:
        if position >= end:
            raise DecodeError(f"a value is cut off at byte {end}")
        code = payload[position]
        if code == 0:
            pending += 1  # a descriptor and the described value, instead of one value
            position += 1
            descriptors += 1
            if descriptors > _DESCRIPTORS_MAX:
                raise DecodeError(f"a value has more than {_DESCRIPTORS_MAX} descriptors")
        elif code not in _FORMAT_CODES:
            raise DecodeError(f"0x{code:02x} at byte {position} is not a format code")
        else:
            position = skip_plain(payload, position, code)
            pending -= 1
    return position


def skip_plain(payload: Buffer, position: int, code: int) -> int:
    """Return the end of a value without descriptor: the format code's upper half gives the width (types, 1.2)."""
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
            raise DecodeError(f"0x{code:02x} at byte {position} is not a format code")


_unpack_u32: Final = Struct(">I").unpack_from

_AMQP_VALUE: Final = Section.AMQP_VALUE
_FORMAT_CODES: Final = frozenset(encoding.code for encodings in PRIMITIVES.values() for encoding in encodings)
_DESCRIPTOR_FORMS: Final = frozenset((0x80, 0xA3, 0xB3))
"""Format codes of descriptors of sections, beside the small ulong."""
_COMPOSITES: Final = frozenset((Section.HEADER, Section.PROPERTIES))
_LISTS: Final = frozenset((0x45, 0xC0, 0xD0))
_MAPS: Final = frozenset((0xC1, 0xD1))
CONSTRUCTORS: Final = {
    Section.HEADER: _LISTS,
    Section.DELIVERY_ANNOTATIONS: _MAPS,
    Section.MESSAGE_ANNOTATIONS: _MAPS,
    Section.PROPERTIES: _LISTS,
    Section.APPLICATION_PROPERTIES: _MAPS,
    Section.DATA: frozenset((0xA0, 0xB0)),
    Section.AMQP_SEQUENCE: _LISTS,
    Section.FOOTER: _MAPS,
}
"""The format codes that a section's value may have; an amqp-value may have any."""
_DESCRIBED: Final = (
    *DESCRIPTORS.values(),
    (Header.NAME, Section.HEADER),
    (Properties.NAME, Section.PROPERTIES),
)
_CODES: Final[dict[int | str, int]] = {
    descriptor: code for symbol, code in _DESCRIBED for descriptor in (Symbol(symbol), code)
}
_FOOTER: Final = bytes((0, 0x53, Section.FOOTER))
_BEFORE_BODY: Final = range(Section.HEADER, Section.DATA)

# Section -> sections that may follow it; 0 is the beginning. Sections before the body occur once, in ascending order.
_FOLLOWERS: Final[dict[int, frozenset[int]]] = {
    0: frozenset(_CODES.values()) - {Section.FOOTER},
    **{code: frozenset(range(code + 1, Section.FOOTER)) for code in _BEFORE_BODY},
    Section.DATA: frozenset((Section.DATA, Section.FOOTER)),
    Section.AMQP_SEQUENCE: frozenset((Section.AMQP_SEQUENCE, Section.FOOTER)),
    Section.AMQP_VALUE: frozenset((Section.FOOTER,)),
    Section.FOOTER: frozenset(),
}
