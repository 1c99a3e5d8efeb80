"""The AMQP types that Python lacks (types, 1.6).

Rule 1. decode(encode(x)) == x, type included. So every AMQP type has a Python type of its own:

    null None       boolean bool     string str     symbol Symbol    list list
    long int        double float     binary bytes   uuid UUID        map dict, or Map where a dict cannot hold it

    ubyte, ushort, uint, ulong, byte, short, int, timestamp: subclasses of int;  float: subclass of float
    char: subclass of str;  decimals: subclasses of bytes, the IEEE 754 bytes as received
    array Array;  described Described

Rule 2. A plain int is a long. Above 2**63 - 1 it is an ulong: this is the only case that does not keep the type.
Rule 3. The classes do not check their values; the encoder checks them once.
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
    """A value that encodes itself, such as a composite type."""

    __slots__ = ()

    @abstractmethod
    def encode(self, full_width: bool = True) -> bytes:
        """Return the encoding of the value, with every field if full_width."""


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
    """A number of 32 bits; the encoder rounds a value to them."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Float({float(self)!r})"


class Symbol(str):
    """An ASCII string from a domain that both peers know."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Symbol({str(self)!r})"


class Char(str):
    """One Unicode character."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Char({str(self)!r})"


class _Decimal(bytes):
    """The bytes of an IEEE 754 decimal, big endian and opaque."""

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
    """The value that the descriptor describes."""


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
    """A map that a dict cannot hold, as pairs in the order of the wire: in AMQP the order is part of the value.

    For a dict 1, True and 1.0 are one key. It refuses lists, and a client can slow it down by chosen UUIDs.
    """

    pairs: tuple[tuple[Any, Any], ...]
    """Keys and values; no two keys have equal type and value."""
