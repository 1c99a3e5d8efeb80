"""Bytes of a stranger to values (types, 1.2 to 1.6); protocol/amqp10/types/encode.py draws the layout.

Rule 1: whatever the bytes are, the answer is a value or a DecodeError.
Rule 2: nothing is allocated for a claim: a size is held against the bytes that are there, a count against that size
and, where elements have no width, against the limit.
Rule 3: nesting lives on a list, never on Python's stack, and is bounded.
Rule 4: a value owns its bytes: it stays when the buffer is reused.

A reader takes (buffer, position, end), position behind the format code, and returns (value, position behind the value).
It need not hold a fixed width against `end`, since a read behind the buffer raises and a read behind `end` is found by
the one check that follows; it must hold a size against `end`, so that it copies nothing that is not its own.
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

__all__ = ["LIMITS", "READERS", "Buffer", "Limits", "Reader", "decode", "fixed_reader", "read_byte", "read_nothing"]

Buffer = bytes | bytearray | memoryview
"""What bytes are read from."""

Reader = Callable[[Buffer, int, int], tuple[Any, int]]
"""Buffer, position behind the format code, end -> value, position behind it."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much one value may be."""

    depth: int = 32
    """Containers, descriptions and arrays within each other."""
    elements: int = 65_536
    """Values in all, keys, descriptors and those without width included."""


LIMITS: Final = Limits()
"""The limits where nobody names others."""


def decode(buffer: Buffer, position: int = 0, end: int | None = None, limits: Limits = LIMITS) -> tuple[Any, int]:
    """Read the value at position; returns it and the position behind it. DecodeError is the only error."""
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
        # Of an array alone: the format code of its elements, -1 until it was read, and the descriptors before it.
        self.code = -1
        self.descriptors: list[Any] = []
        self.is_descriptor_next = False


def _decode(buffer: Buffer, position: int, end: int, limits: Limits) -> tuple[Any, int]:
    # One loop for all nesting: it reads a leaf, or the head of a container, or an array's constructor; a complete value
    # goes into the container on top, which may complete that one in turn. Long, since calls would double its time.
    stack: list[_Open] = []
    top: _Open | None = None
    budget = limits.elements
    while True:
        budget -= 1
        if budget < 0:
            raise DecodeError(f"more than {limits.elements} values in one")
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
                raise DecodeError(f"a value reaches {position - end} bytes behind the end at byte {end}")
        else:
            opened, position = _open(buffer, position, end, code)
            if opened.remaining or opened.kind == "array":
                if len(stack) >= limits.depth:
                    raise DecodeError(f"nested deeper than {limits.depth}")
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
    """Give a container its next value; returns whether that was the last."""
    if container.is_descriptor_next and container.kind == "array":
        container.descriptors.append(value)
        container.is_descriptor_next = False
        return False
    container.items.append(value)
    container.remaining -= 1
    return container.remaining == 0


def _set_element_code(array: _Open, code: int) -> None:
    if code not in _KIND_OF_CODE:
        raise DecodeError(f"0x{code:02x} is no format code for the elements of an array")
    array.code = code


def _fill(array: _Open) -> None:
    """Give an array all its elements at once, since nothing is written of them: a claim must not cost a loop."""
    if array.code == _LIST0:
        array.items = [[] for _ in range(array.remaining)]
    else:
        array.items = [READERS[array.code](b"", 0, 0)[0]] * array.remaining
    array.remaining = 0


def _open(buffer: Buffer, position: int, end: int, code: int) -> tuple[_Open, int]:
    """Read the head of a container: returns it and the position of its first value, or of an array's constructor."""
    if code == 0:
        return _Open("described", 2, end), position
    kind = _KIND_OF_CODE.get(code)
    if kind is None:
        raise DecodeError(f"0x{code:02x} is no format code, before byte {position}")
    if code in _NARROW:
        size, count = buffer[position], buffer[position + 1]
        first, stop = position + 2, position + 1 + size
    else:
        size, count = _unpack_head(buffer, position)
        first, stop = position + 8, position + 4 + size
    if not first <= stop <= end:
        raise DecodeError(f"a {kind} of {size} bytes at byte {position}, where {end - position} are left")
    if kind != "array" and count > stop - first:
        raise DecodeError(f"a {kind} of {count} values in {stop - first} bytes")
    if kind == "map" and count % 2:
        raise DecodeError(f"a map of {count} values: a key has none")
    return _Open(kind, count, stop), first


def _close(container: _Open, position: int) -> Any:
    """Make the value of a container that has all its values."""
    if container.kind == "described":
        return Described(*container.items)
    if position != container.end:
        raise DecodeError(f"a {container.kind} ends at byte {container.end}, its last value at {position}")
    if container.kind == "list":
        return container.items
    if container.kind == "map":
        return _map(container.items)
    return Array(_KIND_OF_CODE[container.code], tuple(container.items), tuple(container.descriptors))


def _map(items: list[Any]) -> dict[Any, Any] | Map:
    """Make a dict of keys and values in turn, or a Map where a dict would lose a key or its speed."""
    keys, values = items[::2], items[1::2]
    if not any(type(key) in _NO_DICT_KEYS for key in keys):
        as_dict = dict(zip(keys, values, strict=True))
        if len(as_dict) == len(keys):
            return as_dict
    if len({encode(key) for key in keys}) < len(keys):
        raise DecodeError("a map has one key twice")
    return Map(tuple(zip(keys, values, strict=True)))


def read_nothing(value: Any) -> Reader:
    """Make the reader of an encoding without data."""

    def read(_buffer: Buffer, position: int, _end: int) -> tuple[Any, int]:
        return value, position

    return read


def read_byte(buffer: Buffer, position: int, _end: int) -> tuple[int, int]:
    """Read a number of one byte as a plain int."""
    return buffer[position], position + 1


def fixed_reader(layout: str, convert: Callable[[Any], Any] | None = None) -> Reader:
    """Make the reader of a number of a fixed layout, plain or converted."""
    unpack_from = Struct(layout).unpack_from
    width = Struct(layout).size

    def read(buffer: Buffer, position: int, _end: int) -> tuple[Any, int]:
        return unpack_from(buffer, position)[0], position + width

    def read_and_convert(buffer: Buffer, position: int, _end: int) -> tuple[Any, int]:
        return convert(unpack_from(buffer, position)[0]), position + width  # type: ignore[misc]  # used where it is one

    return read_and_convert if convert else read


def _slice_reader(width: int, convert: Callable[[Any], Any]) -> Reader:
    def read(buffer: Buffer, position: int, end: int) -> tuple[Any, int]:
        stop = position + width
        if stop > end:
            raise DecodeError(f"{width} bytes at byte {position}, where {end - position} are left")
        return convert(buffer[position:stop]), stop

    return read


def _narrow_reader(convert: Callable[[Any], Any]) -> Reader:
    def read(buffer: Buffer, position: int, end: int) -> tuple[Any, int]:
        start = position + 1
        stop = start + buffer[position]
        if stop > end:
            raise DecodeError(f"{stop - start} bytes at byte {start}, where {end - start} are left")
        return convert(buffer[start:stop]), stop

    return read


def _wide_reader(convert: Callable[[Any], Any]) -> Reader:
    def read(buffer: Buffer, position: int, end: int) -> tuple[Any, int]:
        start = position + 4
        stop = start + _unpack_u32(buffer, position)[0]
        if stop > end:
            raise DecodeError(f"{stop - start} bytes at byte {start}, where {end - start} are left")
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
    0x40: read_nothing(None),
    0x41: read_nothing(True),
    0x42: read_nothing(False),
    0x43: read_nothing(UInt(0)),
    0x44: read_nothing(ULong(0)),
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
"""Format code -> reader, for all but containers; a test holds the codes against the specification's table."""

_KIND_OF_CODE: Final = {encoding.code: kind for kind, encodings in PRIMITIVES.items() for encoding in encodings}
_NARROW: Final = frozenset((0xC0, 0xC1, 0xE0))
_LIST0: Final = 0x45
_WITHOUT_WIDTH: Final = frozenset(
    encoding.code
    for encodings in PRIMITIVES.values()
    for encoding in encodings
    if encoding.category == "fixed" and encoding.width == 0
)

# Unhashable, or with a hash that a stranger can make collide (a UUID hashes as its number).
_NO_DICT_KEYS: Final = frozenset((UUID, Described, Array, list, dict, Map))
