"""The check of a message that arrives piece by piece: the structure of its body, without the bytes that have gone.

Rule 1. The result is that of `check_sections` for the whole message: accepted, or a DecodeError.
Rule 2. Only the bytes of a section's beginning are kept until they are complete. Contents are skipped by their size.
"""

from struct import error
from typing import Final, final

from ambermq.protocol.amqp10.errors import DecodeError
from ambermq.protocol.amqp10.message.sections import (
    BODY_SECTIONS_MAX,
    CONSTRUCTORS,
    Section,
    SectionScanner,
    is_footer,
    read_descriptor,
    skip_plain,
    skip_value,
)
from ambermq.protocol.amqp10.types.decode import Buffer

__all__ = ["BodyWalk", "head_end"]

_START_BYTES: Final = 64
"""The most bytes that the descriptor of a section, the constructor of its value and the size take."""
_KEPT_BYTES_MAX: Final = 8192
"""The most bytes of the descriptors around an amqp-value: they are kept until they are complete."""


def head_end(payload: Buffer) -> tuple[int, int]:
    """Return the end of the sections before the body, and the code of the last one; 0 without one.

    `payload` are the first bytes of a message. Raises DecodeError if the sections are malformed, or if the body does
    not begin in these bytes.
    """
    scanner = SectionScanner(payload)
    position = last = 0
    while position < len(payload) and not is_footer(payload, position):
        code = scanner.next_code()
        if code >= Section.DATA:
            break
        try:
            position, last = scanner.skip(), code
        except DecodeError as error:
            where = f"the first {len(payload)} bytes (chunk_bytes) of a large message"
            why = f"the sections before the body must be in {where}: {error.description}"
            raise DecodeError(why) from error
    if position >= len(payload):
        raise DecodeError(f"the body does not begin in the first {len(payload)} bytes (chunk_bytes) of a large message")
    return position, last


@final
class BodyWalk:
    """The sections of a message from its body on, fed in pieces."""

    __slots__ = ("_count", "_has_early_footer", "_kept", "_previous", "_skip")

    def __init__(self, previous: int) -> None:
        """Begin after the section `previous`; 0 at the beginning of a message."""
        self._previous = previous
        self._kept = b""
        """The beginning of a section, as far as it has arrived."""
        self._skip = 0
        """The bytes of a section that are still to come."""
        self._count = 0
        self._has_early_footer = False

    def feed(self, piece: Buffer, *, is_last: bool = False) -> None:
        """Check the next bytes of the message. Raises DecodeError if the structure is bad."""
        data = self._kept + bytes(piece) if self._kept else piece
        self._kept, end = b"", len(data)
        position = min(self._skip, end)
        self._skip -= position
        while position < end:
            stop = (
                0 if end - position < _START_BYTES and not is_last else self._section(data, position, is_last=is_last)
            )
            if not stop:
                self._kept = bytes(data[position:])
                break
            position, self._skip = min(stop, end), max(stop - end, 0)
        if len(self._kept) > _KEPT_BYTES_MAX:
            raise DecodeError(f"the descriptors of a value have more than {_KEPT_BYTES_MAX} bytes")
        if not is_last:
            return
        if self._skip:
            raise DecodeError(f"the last section is cut off: {self._skip} bytes of it are missing")
        if self._has_early_footer and self._previous < Section.DATA:
            raise DecodeError("the message has a footer and no body")

    def _section(self, data: Buffer, position: int, *, is_last: bool) -> int:
        """Return the end of the section at a position, which may be behind the data; 0 if its beginning is cut off."""
        end = len(data)
        is_early = not self._has_early_footer and self._previous < Section.DATA and is_footer(data, position)
        if is_early:
            code, start = Section.FOOTER, position + 3
        else:
            code, start = read_descriptor(data, position, end, self._previous)
            if self._has_early_footer and not Section.DATA <= code < Section.FOOTER:
                raise DecodeError(f"section 0x{code:02x} cannot follow the footer")
        is_plain, form = code != Section.AMQP_VALUE, data[start] if start < end else 0
        if is_plain and form and form not in CONSTRUCTORS[code]:
            raise DecodeError(f"format code 0x{form:02x} is not allowed in section 0x{code:02x}")
        try:
            stop = skip_plain(data, start, form) if is_plain else skip_value(data, start, end)
        except (error, IndexError) as failure:
            if not is_last:
                return 0
            raise DecodeError("the last section is cut off") from failure
        except DecodeError:
            if is_last or is_plain or form:
                raise
            # The descriptors may be complete with the next piece.
            return 0
        self._count += 1
        if self._count > BODY_SECTIONS_MAX:
            raise DecodeError(f"the message has more than {BODY_SECTIONS_MAX} sections")
        if is_early:
            self._has_early_footer = True
        else:
            self._previous = code
        return stop
