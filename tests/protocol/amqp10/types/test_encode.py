"""Encoding: golden bytes, compactness, and what AMQP cannot say."""

from enum import IntEnum
from typing import Any, NamedTuple

import pytest

from ambermq.protocol.amqp10.errors import LocalError
from ambermq.protocol.amqp10.performatives.classes import DeleteOnClose
from ambermq.protocol.amqp10.spec import PRIMITIVES
from ambermq.protocol.amqp10.types.encode import _COMPOUND, _FIXED, _VARIABLE, KINDS, encode
from ambermq.protocol.amqp10.types.values import (
    Array,
    Byte,
    Char,
    Decimal32,
    Float,
    Int,
    Map,
    Symbol,
    UByte,
    UInt,
    ULong,
    UShort,
)


@pytest.mark.parametrize(
    ("expected", "value"),
    [
        ("43", UInt(0)),
        ("52ff", UInt(255)),
        ("7000000100", UInt(256)),
        ("44", ULong(0)),
        ("53ff", ULong(255)),
        ("5580", -128),
        ("810000000000000080", 128),
        ("808000000000000000", 2**63),
        ("5480", Int(-128)),
        ("7100000080", Int(128)),
        ("41", True),
        ("45", []),
        ("c10100", {}),
        ("e00503520001ff", Array("uint", (0, 1, 255))),
        ("e00a02700000000000000100", Array("uint", (0, 256))),
        ("e0050356010001", Array("boolean", (True, False, True))),
        ("a1ff" + "61" * 255, "a" * 255),
        ("b100000100" + "61" * 256, "a" * 256),
        ("c0fefd" + "40" * 253, [None] * 253),
    ],
)
def test_the_most_compact_encoding_is_chosen(expected: str, value: Any) -> None:
    """A value is written in the narrowest encoding of its type, an array in the narrowest that holds all elements."""
    assert encode(value).hex() == expected


def test_a_list_of_255_bytes_is_wide() -> None:
    """The size of a list8 counts the count: 254 bytes of values are its most."""
    assert encode([None] * 254)[:3] == b"\xc0\xff\xfe"
    assert encode([None] * 255)[:9] == b"\xd0\x00\x00\x01\x03\x00\x00\x00\xff"


@pytest.mark.parametrize(
    "value",
    [
        UByte(256),
        UShort(-1),
        UInt(2**32),
        ULong(2**64),
        Byte(128),
        2**64,
        -(2**63) - 1,
        Char("ab"),
        Char("\ud800"),
        "\ud800",
        Symbol("\u00e9"),
        Decimal32(b"abc"),
        Float(1e300),
        object(),
        {1, 2},
        Array("uint", (1, "a")),
        Array("uint", (-1,)),
        Array("nonsense", (1,)),
        Array("binary", (5,)),
        [object()],
    ],
)
def test_what_amqp_cannot_say_is_our_own_mistake(value: Any) -> None:
    """A value out of range or of no AMQP type is a LocalError, not bytes."""
    with pytest.raises(LocalError):
        encode(value)


def test_a_cycle_is_refused() -> None:
    """Depth is bounded in encoding as in decoding, and what is nested is encoded once."""
    cycle: list[Any] = []
    cycle.append(cycle)
    with pytest.raises(LocalError, match="32 deep"):
        encode(cycle)


def test_subclasses_encode_as_their_base() -> None:
    """An enum's member is a long, a named tuple a list, a bytearray a binary."""

    class Colour(IntEnum):
        RED = 1

    class Pair(NamedTuple):
        left: int
        right: int

    assert encode(Colour.RED) == encode(1)
    assert encode(Pair(1, 2)) == encode([1, 2])
    assert encode(bytearray(b"a")) == encode(b"a")


def test_composites_encode_inside_other_values() -> None:
    """A composite may stand wherever a value may, as a lifetime policy in node properties does."""
    assert encode({Symbol("a"): DeleteOnClose()}) == bytes.fromhex("c1 08 02 a30161 00532b45")


def test_every_primitive_type_has_a_python_type() -> None:
    """The encoder knows the primitive types of the specification, all of them and no others."""
    assert set(KINDS.values()) == set(PRIMITIVES)


def test_forms_are_those_of_the_table() -> None:
    """The encoder writes each type in every encoding that the specification has, narrowest first, and in no other."""
    codes = {kind: [code[0] for code, _ in forms] for kind, forms in _FIXED.items()}
    codes |= {kind: [narrow[0], wide[0]] for kind, (narrow, wide, _) in (_VARIABLE | _COMPOUND).items()}
    codes["list"].insert(0, encode([])[0])
    table = {
        kind: [encoding.code for encoding in sorted(encodings, key=lambda encoding: encoding.width)]
        for kind, encodings in PRIMITIVES.items()
    }
    assert table == codes


def test_a_map_keeps_what_a_dict_would_lose() -> None:
    """1 and True are two keys of AMQP."""
    assert encode(Map(((1, 2), (True, 3)))) == bytes.fromhex("c1 08 04 5501 5502 41 5503")
