"""AMQP values that Python has no type for (types, 1.6).

Rule 1: decode(encode(x)) == x, type included, so every AMQP type has one Python type of its own:

    null None       boolean bool     string str     symbol Symbol    list list
    long int        double float     binary bytes   uuid UUID        map dict, or Map where a dict cannot hold it

    ubyte, ushort, uint, ulong, byte, short, int, timestamp: subclasses of int;  float: subclass of float
    char: subclass of str;  decimals: subclasses of bytes, the IEEE 754 bytes as they came
    array Array;  described Described

Rule 2: a plain int is a long, and an ulong above 2**63 - 1: the one case where a type is not kept.
Rule 3: the wrappers do not check what they wrap; the encoder does, once.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

__all__ = [
    "Array",
    "Byte",
    "Char",
    "Decimal32",
    "Decimal64",
    "Decimal128",
    "Described",
    "Encoded",
    "Float",
    "Int",
    "Map",
    "Short",
    "Symbol",
    "Timestamp",
    "UByte",
    "UInt",
    "ULong",
    "UShort",
]


class Encoded(ABC):
    """What writes itself as an AMQP value; the composite types do."""

    __slots__ = ()

    @abstractmethod
    def encode(self, full_width: bool = True) -> bytes:
        """Write the value, with every field when full_width."""


class _Integer(int):
    """An integer whose AMQP type is its class."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({int(self)})"


class UByte(_Integer):
    """0 to 2**8 - 1."""

    __slots__ = ()


class UShort(_Integer):
    """0 to 2**16 - 1."""

    __slots__ = ()


class UInt(_Integer):
    """0 to 2**32 - 1."""

    __slots__ = ()


class ULong(_Integer):
    """0 to 2**64 - 1."""

    __slots__ = ()


class Byte(_Integer):
    """-2**7 to 2**7 - 1."""

    __slots__ = ()


class Short(_Integer):
    """-2**15 to 2**15 - 1."""

    __slots__ = ()


class Int(_Integer):
    """-2**31 to 2**31 - 1."""

    __slots__ = ()


class Timestamp(_Integer):
    """Milliseconds since the epoch of Unix, in 64 signed bits."""

    __slots__ = ()


class Float(float):
    """A number of 32 bits; the encoder rounds to them."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Float({float(self)!r})"


class Symbol(str):
    """A word of ASCII from a list known to both sides."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Symbol({str(self)!r})"


class Char(str):
    """One Unicode character."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Char({str(self)!r})"


class _Decimal(bytes):
    """An IEEE 754 decimal in its bytes, big endian, opaque here."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({bytes(self)!r})"


class Decimal32(_Decimal):
    """Four bytes."""

    __slots__ = ()


class Decimal64(_Decimal):
    """Eight bytes."""

    __slots__ = ()


class Decimal128(_Decimal):
    """Sixteen bytes."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Described:
    """A value with a descriptor that says what it means (types, 1.5)."""

    descriptor: Any
    """A Symbol or an ULong by the specification; any value on the wire."""
    value: Any
    """The value described."""


@dataclass(frozen=True, slots=True)
class Array:
    """Values of one type, written with one constructor (types, 1.6.24)."""

    kind: str
    """The specification's name of the elements' type: "symbol", "uint", "list"."""
    items: tuple[Any, ...]
    """The elements, without descriptors."""
    descriptors: tuple[Any, ...] = ()
    """The descriptors that the constructor carries for all elements, outermost first."""


@dataclass(frozen=True, slots=True)
class Map:
    """A map that a dict cannot hold, as pairs in the order of the wire, which AMQP counts as part of the value.

    A dict takes 1, True and 1.0 for one key, refuses lists, and can be slowed down by chosen UUIDs.
    """

    pairs: tuple[tuple[Any, Any], ...]
    """Keys and values; no two keys of equal type and value."""
