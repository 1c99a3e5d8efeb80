"""The writers and readers of the fields of composite types, by the type in the metadata of their class.

Rule 1. The class has the type, so a value is plain Python: an uint is an int, a binary bytes, a string str. A symbol
        stays a Symbol.
Rule 2. A field of any type ("*") that primitives provide keeps its type: a message-id may be a ULong or a str.
Rule 3. A `multiple` field is a tuple. It is written as an array, never as a single value, and as null if it is empty.
Rule 4. Writers and readers get no nulls: the composite handles null as the default.
"""

from collections.abc import Callable, Mapping
from struct import Struct
from typing import Any, Final, NamedTuple
from uuid import UUID

from ambermq.protocol.amqp10.errors import DecodeError
from ambermq.protocol.amqp10.spec import ARCHETYPES, CHOICES, PRIMITIVES, RESTRICTED
from ambermq.protocol.amqp10.types.decode import (
    READERS,
    Buffer,
    Reader,
    constant_reader,
    decode,
    fixed_reader,
    read_byte,
)
from ambermq.protocol.amqp10.types.encode import encode
from ambermq.protocol.amqp10.types.values import Array, Encoded, Map, Symbol, ULong

__all__ = ["FieldType", "Writer", "field_kinds", "field_readers", "field_writer"]

Writer = Callable[[Any], bytes]
"""Value, never None -> encoding."""


class FieldType(NamedTuple):
    """The AMQP type of a field of a composite type."""

    name: str
    """The specification's name of the field, with hyphens."""
    type: str
    """The name of a type; "*" for any type that provides what the field requires."""
    mandatory: bool
    default: Any
    """The value that null stands for; ... for a mandatory field."""
    multiple: bool = False
    requires: str | None = None
    """The archetype that a value of a field of type "*" must provide."""


def field_kinds(field: FieldType) -> tuple[str, ...]:
    """Return the primitive and composite types that a field may have; empty for any type."""
    types = ARCHETYPES[field.requires] if field.type == "*" and field.requires else (field.type,)
    return tuple(_source(name) for name in types)


def field_writer(field: FieldType, *, full_width: bool) -> Writer:
    """Return the writer of a field; it may raise any exception for a value that does not fit."""
    kinds = field_kinds(field)
    if field.multiple:
        return _multiple_writer(kinds[0], mandatory=field.mandatory)
    if not PRIMITIVES.keys() >= set(kinds):
        return _composite_writer(frozenset(kinds), full_width=full_width)
    if field.type == "*":
        return _variant_writer(kinds) if kinds else encode
    if _has_symbol_keys(field.type):
        return _write_fields
    return _WRITERS[kinds[0]]


def field_readers(field: FieldType) -> dict[int, Reader]:
    """Return the reader of each format code that a field of primitive type may have; empty for any type."""
    kinds = field_kinds(field)
    readers = {code: reader for kind in kinds for code, reader in _readers_of(kind, is_plain=field.type != "*").items()}
    if field.type in CHOICES and "boolean" not in kinds:
        readers = {code: _choice_reader(reader, CHOICES[field.type]) for code, reader in readers.items()}
    if not field.multiple:
        return readers
    return {code: _single_reader(reader) for code, reader in readers.items()} | dict.fromkeys(
        _codes("array"), _array_reader(kinds[0])
    )


def _source(type_name: str) -> str:
    while type_name in RESTRICTED:
        type_name = RESTRICTED[type_name]
    return type_name


def _has_symbol_keys(type_name: str) -> bool:
    """Return whether a map's keys are symbols: `fields`, its restrictions, and filter sets (messaging, 3.5.8)."""
    while type_name not in {"fields", "filter-set"}:
        if type_name not in RESTRICTED:
            return False
        type_name = RESTRICTED[type_name]
    return True


def _codes(kind: str) -> list[int]:
    return [encoding.code for encoding in PRIMITIVES[kind]]


# Writing


def _write_boolean(value: Any) -> bytes:
    return _BOOLEANS[value]


def _write_ubyte(value: Any) -> bytes:
    return _UBYTES[value]


def _write_ushort(value: Any) -> bytes:
    return _pack_ushort(0x60, value)


def _write_uint(value: Any) -> bytes:
    return _SMALL_UINTS.get(value) or _pack_uint(0x70, value)


def _write_ulong(value: Any) -> bytes:
    return _SMALL_ULONGS.get(value) or _pack_ulong(0x80, value)


def _write_timestamp(value: Any) -> bytes:
    return _pack_timestamp(0x83, value)


def _write_binary(value: bytes) -> bytes:
    length = len(value)
    return (_BINARY_HEADS[length] if length < 256 else _pack_uint(0xB0, length)) + value


def _write_string(value: str) -> bytes:
    data = value.encode()
    return (_STRING_HEADS[len(data)] if len(data) < 256 else _pack_uint(0xB1, len(data))) + data


def _write_symbol(value: str) -> bytes:
    data = value.encode("ascii")
    return (_SYMBOL_HEADS[len(data)] if len(data) < 256 else _pack_uint(0xB3, len(data))) + data


def _write_map(value: Any) -> bytes:
    if not isinstance(value, dict | Mapping | Map):
        raise TypeError(f"expected a dict, found {type(value).__name__}")
    return encode(value if isinstance(value, Map) else dict(value))


def _write_fields(value: Any) -> bytes:
    """Return the encoding of a map whose keys are symbols, of class Symbol or str."""
    return encode({Symbol(key): item for key, item in value.items()})


def _variant_writer(kinds: tuple[str, ...]) -> Writer:
    """Return the writer of a field that has one of several primitive types; a plain int is an ulong."""

    def write(value: Any) -> bytes:
        for kind, python_type, to_bytes in _VARIANTS:
            if kind in kinds and isinstance(value, python_type):
                return to_bytes(value)
        raise TypeError(f"expected one of {', '.join(kinds)}, found {type(value).__name__}")

    return write


def _composite_writer(types: frozenset[str], *, full_width: bool) -> Writer:
    def write(value: Any) -> bytes:
        if not isinstance(value, Encoded) or value.TYPE not in types:  # type: ignore[attr-defined]  # all have one
            raise TypeError(f"a {type(value).__name__} is not allowed here")
        return value.encode(full_width)

    return write


def _multiple_writer(kind: str, *, mandatory: bool) -> Writer:
    def write(value: Any) -> bytes:
        if isinstance(value, str | bytes):
            raise TypeError(f"expected a tuple, found {type(value).__name__}")
        return encode(Array(kind, tuple(value))) if value or mandatory else b"\x40"

    return write


_pack_ushort: Final = Struct(">BH").pack
_pack_uint: Final = Struct(">BI").pack
_pack_ulong: Final = Struct(">BQ").pack
_pack_timestamp: Final = Struct(">Bq").pack

# Encodings of small numbers and lengths, which most are: a look-up takes a third of the time of packing.
_BOOLEANS: Final = {True: b"\x41", False: b"\x42"}
_UBYTES: Final = {number: bytes((0x50, number)) for number in range(256)}
_SMALL_UINTS: Final = {0: b"\x43"} | {number: bytes((0x52, number)) for number in range(1, 256)}
_SMALL_ULONGS: Final = {0: b"\x44"} | {number: bytes((0x53, number)) for number in range(1, 256)}
_BINARY_HEADS: Final = [bytes((0xA0, length)) for length in range(256)]
_STRING_HEADS: Final = [bytes((0xA1, length)) for length in range(256)]
_SYMBOL_HEADS: Final = [bytes((0xA3, length)) for length in range(256)]

_WRITERS: Final[dict[str, Writer]] = {
    "boolean": _write_boolean,
    "ubyte": _write_ubyte,
    "ushort": _write_ushort,
    "uint": _write_uint,
    "ulong": _write_ulong,
    "timestamp": _write_timestamp,
    "binary": _write_binary,
    "string": _write_string,
    "symbol": _write_symbol,
    "map": _write_map,
}
_VARIANTS: Final[tuple[tuple[str, type, Writer], ...]] = (
    ("string", str, _write_string),
    ("binary", bytes, _write_binary),
    ("uuid", UUID, encode),
    ("ulong", int, lambda value: encode(ULong(value))),
)


# Reading


def _readers_of(kind: str, *, is_plain: bool) -> dict[int, Reader]:
    if kind == "map":
        return dict.fromkeys(_codes(kind), _read_map)
    plain = _PLAIN_READERS if is_plain else {}
    return {code: plain.get(code) or READERS[code] for code in _codes(kind)}


def _read_map(buffer: Buffer, position: int, end: int) -> tuple[Any, int]:
    value, position = decode(buffer, position - 1, end)
    if type(value) is not dict:
        raise DecodeError("a key of the map is a list, a map, an array or a described value")
    return value, position


def _choice_reader(reader: Reader, choices: tuple[bool | int | str, ...]) -> Reader:
    def read(buffer: Buffer, position: int, end: int) -> tuple[Any, int]:
        value, position = reader(buffer, position, end)
        if value not in choices:
            raise DecodeError(f"expected one of {choices}, found {value!r}")
        return value, position

    return read


def _single_reader(reader: Reader) -> Reader:
    """Return the reader of a multiple field's single value, which may be outside an array."""

    def read(buffer: Buffer, position: int, end: int) -> tuple[Any, int]:
        value, position = reader(buffer, position, end)
        return (value,), position

    return read


def _array_reader(kind: str) -> Reader:
    def read(buffer: Buffer, position: int, end: int) -> tuple[Any, int]:
        array, position = decode(buffer, position - 1, end)
        if array.kind != kind or array.descriptors:
            raise DecodeError(f"expected an array of {kind}, found one of {array.kind}")
        return array.items, position

    return read


_PLAIN_READERS: Final[dict[int, Reader]] = {
    0x43: constant_reader(0),
    0x44: constant_reader(0),
    0x50: read_byte,
    0x52: read_byte,
    0x53: read_byte,
    0x60: fixed_reader(">H"),
    0x70: fixed_reader(">I"),
    0x80: fixed_reader(">Q"),
    0x83: fixed_reader(">q"),
}
