"""AMQP values as JSON, without loss: `of_json(to_json(value)) == value`, type included. Pure: values in, values out.

    null, boolean, long, double, string, list    the value of JSON
    map whose keys are strings                   an object
    any other value                              an object with exactly two keys, `type` and `value`

    type                                         value
    ubyte ushort uint ulong byte short int       the number as text
    float; double that is not finite             as text: 1.5, nan, inf, -inf
    timestamp                                    milliseconds since 1970 as text
    char symbol uuid                             text
    binary decimal32 decimal64 decimal128        base64
    map                                          a list of pairs [key, value]
    array                                        [type of the elements, [element, ...], [descriptor, ...]]
    described                                    [descriptor, value]

Rule 1. A map of strings that has exactly the keys `type` and `value` is written as pairs, so no map reads as a value.
Rule 2. An object with these keys that fits no type is a map, as in the lines that version 0.1.0 wrote.
"""

import base64
import binascii
import math
import uuid
from collections.abc import Callable
from typing import Any, Final

from ambermq.protocol.amqp10.errors import LocalError
from ambermq.protocol.amqp10.types.encode import KINDS, encode
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

__all__ = ["map_of_json", "map_to_json", "of_json", "to_json"]

_TYPED: Final = {"type", "value"}


def to_json(value: Any) -> Any:
    """Return the JSON of an AMQP value as the decoder returns it."""
    match value:
        case list():
            return [to_json(item) for item in value]
        case dict() | Map():
            return map_to_json(value, str)
        case Array():
            parts = [value.kind, [to_json(item) for item in value.items], [to_json(one) for one in value.descriptors]]
            return _typed("array", parts)
        case Described():
            return _typed("described", [to_json(value.descriptor), to_json(value.value)])
        case _:
            return _scalar_to_json(value)


def map_to_json(pairs: dict[Any, Any] | Map, key_type: type[str]) -> Any:
    """Return an object if all keys are of `key_type` (str or Symbol), else the pairs as a typed value."""
    items = list(pairs.items() if isinstance(pairs, dict) else pairs.pairs)
    names = {key for key, _ in items if type(key) is key_type}
    if len(names) == len(items) and names != _TYPED:
        return {str(key): to_json(item) for key, item in items}
    return _typed("map", [[to_json(key), to_json(item)] for key, item in items])


def of_json(value: Any) -> Any:
    """Return the AMQP value of JSON."""
    match value:
        case list():
            return [of_json(item) for item in value]
        case dict():
            return map_of_json(value, str)
        case _:
            return value


def map_of_json(value: dict[str, Any], key_type: type[str]) -> Any:
    """Return the map of an object whose keys become `key_type`, or the value of an object with `type` and `value`."""
    if value.keys() == _TYPED and isinstance(value["type"], str):
        try:
            return _READERS[value["type"]](value["value"])
        except (KeyError, ValueError, TypeError, LocalError):
            pass  # A map that has these two keys by chance.
    return {key_type(key): of_json(item) for key, item in value.items()}


def _typed(name: str, value: Any) -> dict[str, Any]:
    return {"type": name, "value": value}


def _scalar_to_json(value: Any) -> Any:
    kind = KINDS[type(value)]
    match value:
        case bytes() | bytearray() | memoryview():
            return _typed(kind, base64.b64encode(value).decode())
        case uuid.UUID():
            return _typed(kind, str(value))
        case Symbol() | Char():
            return _typed(kind, str(value))
        case Float():
            return _typed(kind, repr(float(value)))
        case float() if not math.isfinite(value):
            return _typed(kind, repr(value))
    if type(value) in _INTEGERS:
        return _typed(kind, str(int(value)))
    return value


def _text_reader(make: Callable[[str], Any]) -> Callable[[Any], Any]:
    """Return the reader of a value that is written as text; it raises what `make` or the encoder raises."""

    def read(value: Any) -> Any:
        if not isinstance(value, str):
            raise TypeError(f"expected text, found {type(value).__name__}")
        made = make(value)
        encode(made)  # checks its range
        return made

    return read


def _base64_reader(make: Callable[[bytes], Any]) -> Callable[[Any], Any]:
    return _text_reader(lambda text: make(_bytes_of(text)))


def _bytes_of(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from error


def _read_map(value: Any) -> dict[Any, Any] | Map:
    if not isinstance(value, list):
        raise TypeError("expected a list of pairs")
    return Map(tuple((of_json(key), of_json(item)) for key, item in value))


def _read_array(value: Any) -> Array:
    kind, items, descriptors = value
    array = Array(kind, tuple(map(of_json, items)), tuple(map(of_json, descriptors)))
    encode(array)
    return array


def _read_described(value: Any) -> Described:
    descriptor, described = value
    return Described(of_json(descriptor), of_json(described))


_INTEGERS: Final[tuple[type[int], ...]] = (UByte, UShort, UInt, ULong, Byte, Short, Int, Timestamp)
_READERS: Final[dict[str, Callable[[Any], Any]]] = {
    **{KINDS[number]: _text_reader(number) for number in _INTEGERS},
    "long": _text_reader(int),
    "float": _text_reader(Float),
    "double": _text_reader(float),
    "char": _text_reader(Char),
    "symbol": _text_reader(Symbol),
    "string": _text_reader(str),
    "uuid": _text_reader(uuid.UUID),
    "binary": _base64_reader(bytes),
    "decimal32": _base64_reader(Decimal32),
    "decimal64": _base64_reader(Decimal64),
    "decimal128": _base64_reader(Decimal128),
    "map": _read_map,
    "array": _read_array,
    "described": _read_described,
}
"""Name of a type -> the function that reads its `value`."""
