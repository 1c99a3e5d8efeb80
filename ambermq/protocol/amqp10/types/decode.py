"""The decoder: untrusted bytes to values (types, 1.2 to 1.6). protocol/amqp10/types/encode.py draws the layout.

Rule 1. For any bytes the result is a value or a DecodeError.
Rule 2. The decoder allocates nothing for a claim. It checks a size against the bytes that exist, and a count against
        the size. For elements without width it checks the count against the limit.
Rule 3. Nesting is on a list, never on Python's stack, and is bounded.
Rule 4. A value owns its bytes: it stays valid when the buffer is reused.

A reader takes (buffer, position, end), with the position after the format code. It returns (value, position after
the value). A reader of a fixed width does not check `end`: a read past the buffer raises, and the caller finds a read
past `end` with one check. A reader of a size checks `end`, so that it copies no bytes that belong to other values.
"""

from collections.abc import Callable
from dataclasses import dataclass
from struct import Struct, error
from typing import Any, Final
from uuid import UUID

from ambermq.protocol.amqp10.errors import DecodeError, LocalError
from ambermq.protocol.amqp10.spec import PRIMITIVES
from ambermq.protocol.amqp10.types.encode import encode
from ambermq.protocol.amqp10.types.values import (
    Array,
    Byte,
    Char,
    Decimal32,
    Decimal64,
    Decimal128,
    Described,
    Float,
    Int,
    Map,
    Short,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
)

__all__ = ["LIMITS", "READERS", "Buffer", "Limits", "Reader", "constant_reader", "decode", "fixed_reader", "read_byte"]

Buffer = bytes | bytearray | memoryview
"""An object that bytes are read from."""

Reader = Callable[[Buffer, int, int], tuple[Any, int]]
"""Buffer, position after the format code, end -> value, position after it."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The bounds of one value."""

    depth: int = 32
    """Nested containers, descriptions and arrays."""
    elements: int = 65_536
    """Values in total: keys, descriptors and values without width count too."""


LIMITS: Final = Limits()
"""The default limits."""


def decode(buffer: Buffer, position: int = 0, end: int | None = None, limits: Limits = LIMITS) -> tuple[Any, int]:
    """Return the value at `position` and the position after it. DecodeError is the only error."""
    try:
        return _decode(buffer, position, len(buffer) if end is None else end, limits)
    except (error, IndexError, ValueError, LocalError) as failure:
        raise DecodeError(f"bad value at byte {position}: {failure}") from failure


class _Open:
    """A container whose values are still being read."""

    __slots__ = ("code", "descriptors", "end", "is_descriptor_next", "items", "kind", "remaining")

    def __init__(self, kind: str, remaining: int, end: int) -> None:
        self.kind = kind
        self.remaining = remaining
        self.end = end
        self.items: list[Any] = []
        # For an array only: the format code of its elements, -1 until it is read, and the descriptors before it.
        self.code = -1
        self.descriptors: list[Any] = []
        self.is_descriptor_next = False


def _decode(buffer: Buffer, position: int, end: int, limits: Limits) -> tuple[Any, int]:
    # One loop for all nesting: it reads a leaf, the head of a container, or an array's constructor. A complete value
    # goes into the container on top of the stack, which may be complete then. The function is long for speed: with a
    # call for each step it would take twice the time.
    stack: list[_Open] = []
    top: _Open | None = None
    budget = limits.elements
    while True:
        budget -= 1
        if budget < 0:
            raise DecodeError(f"the value has more than {limits.elements} elements")
        if top is not None and top.code >= 0:
            code = top.code
        elif position < end:
            code = buffer[position]
            position += 1
        else:
            raise DecodeError(f"a value is cut off at byte {position}")
        if top is not None and top.kind == "array" and top.code < 0 and not top.is_descriptor_next:
            if code == 0:
                top.is_descriptor_next = True
                continue
            _set_element_code(top, code)
            if code in _WITHOUT_WIDTH:
                budget -= top.remaining
                if budget >= 0:
                    _fill(top)
            if top.remaining:
                continue
            value = _close(stack.pop(), position)
        elif code in READERS:
            value, position = READERS[code](buffer, position, end)
            if position > end:
                raise DecodeError(f"a value extends {position - end} bytes past the end at byte {end}")
        else:
            opened, position = _open(buffer, position, end, code)
            if opened.remaining or opened.kind == "array":
                if len(stack) >= limits.depth:
                    raise DecodeError(f"the value is nested deeper than {limits.depth} levels")
                stack.append(opened)
                top, end = opened, opened.end
                continue
            value = _close(opened, position)
        while stack and _add(stack[-1], value):
            value = _close(stack.pop(), position)
        if not stack:
            return value, position
        top = stack[-1]
        end = top.end


def _add(container: _Open, value: Any) -> bool:
    """Append the next value to a container, and return whether it was the last one."""
    if container.is_descriptor_next and container.kind == "array":
        container.descriptors.append(value)
        container.is_descriptor_next = False
        return False
    container.items.append(value)
    container.remaining -= 1
    return container.remaining == 0


def _set_element_code(array: _Open, code: int) -> None:
    if code not in _KIND_OF_CODE:
        raise DecodeError(f"0x{code:02x} is not a format code for the elements of an array")
    array.code = code


def _fill(array: _Open) -> None:
    """Set all elements of an array without width at once: a claimed count must not cost a loop."""
    if array.code == _LIST0:
        array.items = [[] for _ in range(array.remaining)]
    else:
        array.items = [READERS[array.code](b"", 0, 0)[0]] * array.remaining
    array.remaining = 0


def _open(buffer: Buffer, position: int, end: int, code: int) -> tuple[_Open, int]:
    """Read the head of a container; return it and the position of its first value, or of an array's constructor."""
    if code == 0:
        return _Open("described", 2, end), position
    kind = _KIND_OF_CODE.get(code)
    if kind is None:
        raise DecodeError(f"0x{code:02x} at byte {position - 1} is not a format code")
    if code in _NARROW:
        size, count = buffer[position], buffer[position + 1]
        first, stop = position + 2, position + 1 + size
    else:
        size, count = _unpack_head(buffer, position)
        first, stop = position + 8, position + 4 + size
    if not first <= stop <= end:
        raise DecodeError(f"a {kind} of {size} bytes at byte {position}: {end - position} bytes are left")
    if kind != "array" and count > stop - first:
        raise DecodeError(f"a {kind} claims {count} values in {stop - first} bytes")
    if kind == "map" and count % 2:
        raise DecodeError(f"a map has {count} keys and values: a key has no value")
    return _Open(kind, count, stop), first


def _close(container: _Open, position: int) -> Any:
    """Return the value of a complete container."""
    if container.kind == "described":
        return Described(*container.items)
    if position != container.end:
        raise DecodeError(f"a {container.kind} ends at byte {container.end}, its last value at byte {position}")
    if container.kind == "list":
        return container.items
    if container.kind == "map":
        return _map(container.items)
    return Array(_KIND_OF_CODE[container.code], tuple(container.items), tuple(container.descriptors))


def _map(items: list[Any]) -> dict[Any, Any] | Map:
    """Return a dict of alternating keys and values; a Map if a dict would lose a key or be slow."""
    keys, values = items[::2], items[1::2]
    if not any(type(key) in _NO_DICT_KEYS for key in keys):
        as_dict = dict(zip(keys, values, strict=True))
        if len(as_dict) == len(keys):
            return as_dict
    if len({encode(key) for key in keys}) < len(keys):
        raise DecodeError("a map has a key twice")
    return Map(tuple(zip(keys, values, strict=True)))


def constant_reader(value: Any) -> Reader:
    """Return the reader of an encoding without data."""

    def read(_buffer: Buffer, position: int, _end: int) -> tuple[Any, int]:
        return value, position

    return read


def read_byte(buffer: Buffer, position: int, _end: int) -> tuple[int, int]:
    """Return a number of one byte as a plain int, and the position after it."""
    return buffer[position], position + 1


def fixed_reader(layout: str, convert: Callable[[Any], Any] | None = None) -> Reader:
    """Return the reader of a number with a fixed layout, plain or converted."""
    unpack_from = Struct(layout).unpack_from
    width = Struct(layout).size

    def read(buffer: Buffer, position: int, _end: int) -> tuple[Any, int]:
        return unpack_from(buffer, position)[0], position + width

    def read_and_convert(buffer: Buffer, position: int, _end: int) -> tuple[Any, int]:
        return convert(unpack_from(buffer, position)[0]), position + width  # type: ignore[misc]  # used if not None

    return read_and_convert if convert else read


def _slice_reader(width: int, convert: Callable[[Any], Any]) -> Reader:
    def read(buffer: Buffer, position: int, end: int) -> tuple[Any, int]:
        stop = position + width
        if stop > end:
            raise DecodeError(f"a value of {width} bytes at byte {position}: {end - position} bytes are left")
        return convert(buffer[position:stop]), stop

    return read


def _narrow_reader(convert: Callable[[Any], Any]) -> Reader:
    def read(buffer: Buffer, position: int, end: int) -> tuple[Any, int]:
        start = position + 1
        stop = start + buffer[position]
        if stop > end:
            raise DecodeError(f"a value of {stop - start} bytes at byte {start}: {end - start} bytes are left")
        return convert(buffer[start:stop]), stop

    return read


def _wide_reader(convert: Callable[[Any], Any]) -> Reader:
    def read(buffer: Buffer, position: int, end: int) -> tuple[Any, int]:
        start = position + 4
        stop = start + _unpack_u32(buffer, position)[0]
        if stop > end:
            raise DecodeError(f"a value of {stop - start} bytes at byte {start}: {end - start} bytes are left")
        return convert(buffer[start:stop]), stop

    return read


def _read_boolean(buffer: Buffer, position: int, _end: int) -> tuple[bool, int]:
    number = buffer[position]
    if number > 1:
        raise DecodeError(f"a boolean of value {number} at byte {position}")
    return number == 1, position + 1


def _read_list0(_buffer: Buffer, position: int, _end: int) -> tuple[list[Any], int]:
    return [], position


def _string(data: Any) -> str:
    return str(data, "utf-8")


def _symbol(data: Any) -> Symbol:
    return Symbol(data, "ascii")


def _char(data: Any) -> Char:
    return Char(data, "utf-32-be")


def _uuid(data: Any) -> UUID:
    return UUID(bytes=bytes(data))


_unpack_u32 = Struct(">I").unpack_from
_unpack_head = Struct(">II").unpack_from

READERS: Final[dict[int, Reader]] = {
    0x40: constant_reader(None),
    0x41: constant_reader(True),
    0x42: constant_reader(False),
    0x43: constant_reader(UInt(0)),
    0x44: constant_reader(ULong(0)),
    0x45: _read_list0,
    0x50: fixed_reader(">B", UByte),
    0x51: fixed_reader(">b", Byte),
    0x52: fixed_reader(">B", UInt),
    0x53: fixed_reader(">B", ULong),
    0x54: fixed_reader(">b", Int),
    0x55: fixed_reader(">b"),
    0x56: _read_boolean,
    0x60: fixed_reader(">H", UShort),
    0x61: fixed_reader(">h", Short),
    0x70: fixed_reader(">I", UInt),
    0x71: fixed_reader(">i", Int),
    0x72: fixed_reader(">f", Float),
    0x73: _slice_reader(4, _char),
    0x74: _slice_reader(4, Decimal32),
    0x80: fixed_reader(">Q", ULong),
    0x81: fixed_reader(">q"),
    0x82: fixed_reader(">d"),
    0x83: fixed_reader(">q", Timestamp),
    0x84: _slice_reader(8, Decimal64),
    0x94: _slice_reader(16, Decimal128),
    0x98: _slice_reader(16, _uuid),
    0xA0: _narrow_reader(bytes),
    0xA1: _narrow_reader(_string),
    0xA3: _narrow_reader(_symbol),
    0xB0: _wide_reader(bytes),
    0xB1: _wide_reader(_string),
    0xB3: _wide_reader(_symbol),
}
"""Format code -> reader, for all types except containers; a test compares the codes with the specification's table."""

_KIND_OF_CODE: Final = {encoding.code: kind for kind, encodings in PRIMITIVES.items() for encoding in encodings}
_NARROW: Final = frozenset((0xC0, 0xC1, 0xE0))
_LIST0: Final = 0x45
_WITHOUT_WIDTH: Final = frozenset(
    encoding.code
    for encodings in PRIMITIVES.values()
    for encoding in encodings
    if encoding.category == "fixed" and encoding.width == 0
)

# Types that are not hashable, or whose hashes a client can make collide (a UUID hashes as its number).
_NO_DICT_KEYS: Final = frozenset((UUID, Described, Array, list, dict, Map))
