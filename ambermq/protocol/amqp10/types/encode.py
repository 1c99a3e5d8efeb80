"""The encoder: values to bytes (types, 1.2 to 1.6).

Rule 1. A value has the most compact encoding of its type: uint 0 in one byte, uint 200 in two.
Rule 2. An array has the most compact encoding that holds all its elements. It is never one of zero width, except for
        null: some decoders do not expect it in an array.
Rule 3. The contents of a container are encoded once; then their size selects list8 or list32. So the work is linear in
        the depth.

    value        constructor data
    constructor  code | 00 value constructor          the latter for a described type; the value is its descriptor
    data         fixed     0 to 16 bytes
                 variable  size, bytes
                 compound  size (of all that follows), count, values
                 array     size (of all that follows), count, constructor, data of each element
"""

from collections.abc import Callable, Iterable
from struct import Struct, error
from typing import Any, Final
from uuid import UUID

from ambermq.protocol.amqp10.errors import LocalError
from ambermq.protocol.amqp10.types.values import (
    Array,
    Byte,
    Char,
    Decimal32,
    Decimal64,
    Decimal128,
    Described,
    Encoded,
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

__all__ = ["KINDS", "encode"]

_DEPTH_MAX: Final = 32

KINDS: Final[dict[type, str]] = {
    type(None): "null",
    bool: "boolean",
    UByte: "ubyte",
    UShort: "ushort",
    UInt: "uint",
    ULong: "ulong",
    Byte: "byte",
    Short: "short",
    Int: "int",
    int: "long",
    Float: "float",
    float: "double",
    Decimal32: "decimal32",
    Decimal64: "decimal64",
    Decimal128: "decimal128",
    Char: "char",
    Timestamp: "timestamp",
    UUID: "uuid",
    bytes: "binary",
    bytearray: "binary",
    memoryview: "binary",
    str: "string",
    Symbol: "symbol",
    list: "list",
    tuple: "list",
    dict: "map",
    Map: "map",
    Array: "array",
}
"""Python type -> name of the primitive type of its encoding."""

_Pack = Callable[[Any], bytes]


def encode(value: Any) -> bytes:
    """Return the encoding of a value of types/values.py, a plain Python value, or a composite. Raises LocalError."""
    try:
        return _encode(value, _DEPTH_MAX)
    except (ValueError, TypeError, error, OverflowError, AttributeError, KeyError) as failure:
        raise LocalError(f"AMQP cannot encode this {type(value).__name__}: {failure}") from failure


def _encode(value: Any, depth: int) -> bytes:
    if depth < 0:
        raise LocalError(f"AMQP values nest at most {_DEPTH_MAX} deep")
    kind = KINDS.get(type(value))
    if kind is None:
        if isinstance(value, Described):
            return b"\x00" + _encode(value.descriptor, depth - 1) + _encode(value.value, depth - 1)
        if isinstance(value, Encoded):
            return value.encode()
        kind = _kind_of_subclass(value)
    if kind == "long" and value > _LONG_MAX:
        kind = "ulong"
    if kind in _FIXED:
        return _encode_fixed(_FIXED[kind], value)
    if kind in _VARIABLE:
        narrow, wide, to_bytes = _VARIABLE[kind]
        data = to_bytes(value)
        return (narrow + _pack_8(len(data)) if len(data) < 256 else wide + _pack_32(len(data))) + data
    narrow, wide, to_contents = _COMPOUND[kind]
    count, data = to_contents(value, depth - 1)
    if count == 0 and kind == "list":
        return b"\x45"
    return narrow + _pack_8_8(len(data) + 1, count) + data if _is_narrow(count, data) else wide + _wide(count, data)


def _kind_of_subclass(value: Any) -> str:
    """Return the kind of an enum's member, a named tuple or a similar value, by the nearest class that has one."""
    for base in type(value).__mro__:
        if base in KINDS:
            return KINDS[base]
    raise TypeError("AMQP has no type for it")


def _encode_fixed(forms: Iterable[tuple[bytes, _Pack]], value: Any) -> bytes:
    """Return the first encoding that fits; one that does not fit raises ValueError or struct.error."""
    failure: Exception | None = None
    for code, pack in forms:
        try:
            return code + pack(value)
        except (ValueError, error) as misfit:
            failure = misfit
    assert failure is not None
    raise failure


def _is_narrow(count: int, data: bytes) -> bool:
    return len(data) < 255 and count < 256


def _wide(count: int, data: bytes) -> bytes:
    return _pack_32_32(len(data) + 4, count) + data


def _list_contents(value: Iterable[Any], depth: int) -> tuple[int, bytes]:
    items = [_encode(item, depth) for item in value]
    return len(items), b"".join(items)


def _map_contents(value: Any, depth: int) -> tuple[int, bytes]:
    pairs = value.pairs if isinstance(value, Map) else value.items()
    return _list_contents((item for pair in pairs for item in pair), depth)


def _array_contents(value: Array, depth: int) -> tuple[int, bytes]:
    descriptors = b"".join(b"\x00" + _encode(descriptor, depth) for descriptor in value.descriptors)
    return len(value.items), descriptors + _elements(value.kind, value.items, depth)


def _elements(kind: str, items: tuple[Any, ...], depth: int) -> bytes:
    """Return the elements of an array, after their common format code."""
    if depth < 0:
        raise LocalError(f"AMQP values nest at most {_DEPTH_MAX} deep")
    if kind in _FIXED:
        return _fixed_elements(kind, items)
    if kind in _VARIABLE:
        narrow, wide, to_bytes = _VARIABLE[kind]
        texts = [to_bytes(item) for item in items]
        is_narrow = all(len(text) < 256 for text in texts)
        code, pack = (narrow, _pack_8) if is_narrow else (wide, _pack_32)
        return code + b"".join(pack(len(text)) + text for text in texts)
    narrow, wide, to_contents = _COMPOUND[kind]
    contents = [to_contents(item, depth - 1) for item in items]
    if all(_is_narrow(count, data) for count, data in contents):
        return narrow + b"".join(_pack_8_8(len(data) + 1, count) + data for count, data in contents)
    return wide + b"".join(_wide(count, data) for count, data in contents)


def _fixed_elements(kind: str, items: tuple[Any, ...]) -> bytes:
    failure: Exception | None = None
    for code, pack in _FIXED[kind]:
        if code in _WITHOUT_WIDTH:
            continue
        try:
            return code + b"".join(pack(item) for item in items)
        except (ValueError, error) as misfit:
            failure = misfit
    raise ValueError(f"an array of {kind} cannot hold its items: {failure}")


def _constant(expected: Any) -> _Pack:
    """Return the function for an encoding without data, which stands for one value only."""

    def pack(value: Any) -> bytes:
        if value != expected:
            raise ValueError(f"expected {expected!r}, found {value!r}")
        return b""

    return pack


def _boolean(value: bool) -> bytes:
    return b"\x01" if value else b"\x00"


def _char(value: str) -> bytes:
    if len(value) != 1:
        raise ValueError(f"a char is one character, found {len(value)}")
    return value.encode("utf-32-be")


def _opaque(width: int) -> _Pack:
    def pack(value: bytes) -> bytes:
        if len(value) != width:
            raise ValueError(f"expected {width} bytes, found {len(value)}")
        return bytes(value)

    return pack


def _uuid(value: UUID) -> bytes:
    return value.bytes


def _binary(value: bytes | bytearray | memoryview) -> bytes:
    if isinstance(value, int | str):
        raise TypeError("expected bytes for a binary")
    return bytes(value)


def _string(value: str) -> bytes:
    return value.encode()


def _symbol(value: str) -> bytes:
    return value.encode("ascii")


_LONG_MAX: Final = 0x7FFF_FFFF_FFFF_FFFF
_WITHOUT_WIDTH: Final = frozenset((b"\x41", b"\x42", b"\x43", b"\x44"))

_pack_8 = Struct(">B").pack
_pack_32 = Struct(">I").pack
_pack_8_8 = Struct(">BB").pack
_pack_32_32 = Struct(">II").pack

# Encodings of a type, the most compact first; a test compares the codes with the specification's table.
_FIXED: Final[dict[str, tuple[tuple[bytes, _Pack], ...]]] = {
    "null": ((b"\x40", _constant(None)),),
    "boolean": ((b"\x41", _constant(True)), (b"\x42", _constant(False)), (b"\x56", _boolean)),
    "ubyte": ((b"\x50", _pack_8),),
    "ushort": ((b"\x60", Struct(">H").pack),),
    "uint": ((b"\x43", _constant(0)), (b"\x52", _pack_8), (b"\x70", _pack_32)),
    "ulong": ((b"\x44", _constant(0)), (b"\x53", _pack_8), (b"\x80", Struct(">Q").pack)),
    "byte": ((b"\x51", Struct(">b").pack),),
    "short": ((b"\x61", Struct(">h").pack),),
    "int": ((b"\x54", Struct(">b").pack), (b"\x71", Struct(">i").pack)),
    "long": ((b"\x55", Struct(">b").pack), (b"\x81", Struct(">q").pack)),
    "float": ((b"\x72", Struct(">f").pack),),
    "double": ((b"\x82", Struct(">d").pack),),
    "decimal32": ((b"\x74", _opaque(4)),),
    "decimal64": ((b"\x84", _opaque(8)),),
    "decimal128": ((b"\x94", _opaque(16)),),
    "char": ((b"\x73", _char),),
    "timestamp": ((b"\x83", Struct(">q").pack),),
    "uuid": ((b"\x98", _uuid),),
}
_VARIABLE: Final[dict[str, tuple[bytes, bytes, _Pack]]] = {
    "binary": (b"\xa0", b"\xb0", _binary),
    "string": (b"\xa1", b"\xb1", _string),
    "symbol": (b"\xa3", b"\xb3", _symbol),
}
_COMPOUND: Final[dict[str, tuple[bytes, bytes, Callable[[Any, int], tuple[int, bytes]]]]] = {
    "list": (b"\xc0", b"\xd0", _list_contents),
    "map": (b"\xc1", b"\xd1", _map_contents),
    "array": (b"\xe0", b"\xf0", _array_contents),
}
