"""Decoding: every encoding, and nothing but a DecodeError for anything else."""

import tracemalloc
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ambermq.protocol.amqp10.errors import DecodeError
from ambermq.protocol.amqp10.spec import PRIMITIVES as TABLE
from ambermq.protocol.amqp10.types.decode import READERS, Limits, decode
from ambermq.protocol.amqp10.types.encode import encode
from ambermq.protocol.amqp10.types.values import Map, Symbol
from tests.golden.amqp_types import NESTED, PRIMITIVES
from tests.protocol.amqp_values import typed, values

GOLDEN = [*PRIMITIVES, *NESTED]


@pytest.mark.parametrize(("written", "expected"), GOLDEN)
def test_golden_bytes(written: str, expected: Any) -> None:
    """Each format code says the value that the specification says, of the right type, from any kind of buffer."""
    data = bytes.fromhex(written)
    for buffer in (data, bytearray(data), memoryview(data)):
        value, position = decode(buffer)
        assert typed(expected) == typed(value)
        assert len(data) == position


def test_golden_bytes_cover_the_table() -> None:
    """The golden bytes begin with every format code of the specification, and the decoder reads no other."""
    codes = {encoding.code for encodings in TABLE.values() for encoding in encodings}
    assert codes == {bytes.fromhex(written)[0] for written, _ in PRIMITIVES}
    assert set(READERS) < codes
    for code in set(range(1, 256)) - codes:
        with pytest.raises(DecodeError):
            decode(bytes((code,)) + bytes(64))


@pytest.mark.parametrize("encoding", [encoding for encodings in TABLE.values() for encoding in encodings])
def test_widths_are_those_of_the_table(encoding: Any) -> None:
    """A fixed encoding takes its width, a variable one the width of its size and what that says."""
    if encoding.category == "fixed":
        assert 1 + encoding.width == decode(bytes((encoding.code,)) + bytes(32))[1]
    elif encoding.category == "variable":
        size = (3).to_bytes(encoding.width, "big")
        assert 1 + encoding.width + 3 == decode(bytes((encoding.code,)) + size + bytes(32))[1]
    else:
        tail = b"\x40" if encoding.category == "array" else b""
        size = (encoding.width + len(tail)).to_bytes(encoding.width, "big")
        data = bytes((encoding.code,)) + size + bytes(encoding.width) + tail
        assert len(data) == decode(data)[1]


@settings(max_examples=300, deadline=None)
@given(values)
def test_round_trip(value: Any) -> None:
    """decode(encode(x)) == x, types included."""
    data = encode(value)
    found, position = decode(data)
    assert typed(value) == typed(found)
    assert len(data) == position


@settings(max_examples=100, deadline=None)
@given(values, st.binary(max_size=5), st.binary(max_size=5))
def test_position_and_end(value: Any, before: bytes, after: bytes) -> None:
    """A value is read where it stands, and what is before and behind it is left alone."""
    data = before + encode(value) + after
    end = len(data) - len(after)
    assert end == decode(data, len(before))[1]
    assert typed(value) == typed(decode(data, len(before), end)[0])


@settings(max_examples=150, deadline=None)
@given(values)
def test_truncation_at_any_byte(value: Any) -> None:
    """A value cut anywhere is a DecodeError, whether the buffer ends there or only the value's bounds do."""
    data = encode(value)
    for end in range(len(data)):
        with pytest.raises(DecodeError):
            decode(data[:end])
        with pytest.raises(DecodeError):
            decode(data, 0, end)


@settings(max_examples=500, deadline=None)
@given(st.binary(max_size=60))
@example(b"\x73\x00\x00\xd8\x00")
@example(b"\xc1\x05\x04\x40\x40\x40\x40")
@example(b"\xe0\x02\x01\x00")
def test_random_bytes(data: bytes) -> None:
    """Any bytes are a value or a DecodeError; a value can be written again."""
    try:
        value, position = decode(data)
    except DecodeError:
        return
    assert position <= len(data)
    assert typed(value) == typed(decode(encode(value))[0]) or "nan" in repr(value)


@settings(max_examples=300, deadline=None)
@given(values, st.data())
def test_mutated_bytes(value: Any, data: st.DataObject) -> None:
    """A value with a byte changed is a value or a DecodeError."""
    mutated = bytearray(encode(value))
    mutated[data.draw(st.integers(0, len(mutated) - 1))] = data.draw(st.integers(0, 255))
    with suppress(DecodeError):
        assert decode(mutated)[1] <= len(mutated)


@pytest.mark.parametrize(
    ("reason", "written"),
    [
        ("a boolean of value 2", "56 02"),
        ("utf-8", "a1 01 ff"),
        ("ascii", "a3 01 ff"),
        ("a surrogate", "73 0000d800"),
        ("behind the last character", "73 00110000"),
        ("a key without a value", "c1 02 01 40"),
        ("one key twice", "c1 09 04 a10161 40 a10161 40"),
        ("one key twice, in two encodings", "c1 0b 04 52 00 40 43 40"),
        ("one unhashable key twice", "c1 05 04 45 40 45 40"),
        ("more values than bytes", "c0 02 02 40"),
        ("bytes behind the last value", "c0 03 01 40 40"),
        ("a size that leaves no room for the count", "d0 00000003 00000000"),
        ("a value reaching out of its list", "c0 02 01 80 0000000000000000"),
        ("an array without a constructor", "e0 01 00"),
        ("an array of described without a descriptor", "e0 02 00 00"),
        ("an array with a bad constructor", "e0 02 00 01"),
        ("a descriptor alone", "00 43"),
    ],
)
def test_bad_values(reason: str, written: str) -> None:
    """What the specification forbids is refused, each for the reason it is listed under."""
    with pytest.raises(DecodeError):
        decode(bytes.fromhex(written))


def test_an_odd_map_says_so() -> None:
    """A map with a key too many is told apart from other nonsense."""
    with pytest.raises(DecodeError, match="a key has no value"):
        decode(bytes.fromhex("c1 02 01 40"))


def _peak(data: bytes) -> int:
    tracemalloc.start()
    try:
        with pytest.raises(DecodeError):
            decode(data)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "data",
    [
        bytes.fromhex("f0 fffffff0 ffffffff 40") + bytes(11),
        bytes.fromhex("f0 0000000f ffffffff 40") + bytes(10),
        bytes.fromhex("f0 0000000f ffffffff 43") + bytes(10),
        bytes.fromhex("f0 0000000f ffffffff 45") + bytes(10),
        bytes.fromhex("d0 fffffff0 ffffffff") + bytes(11),
        bytes.fromhex("d1 fffffff0 fffffffe") + bytes(11),
        bytes.fromhex("b0 fffffff0") + bytes(15),
        bytes.fromhex("b1 ffffffff") + bytes(15),
    ],
)
def test_claims_of_4_gib_cost_nothing(data: bytes) -> None:
    """A size or count of 2**32 in 20 bytes is refused with at most what the limit of elements allows."""
    assert _peak(data) < 8 * 2**20


@pytest.mark.parametrize(
    "data",
    [
        b"\x00" * 100_000,
        b"\xc0\xff\x01" * 100_000,
        b"\xd0\x00\x0f\xff\xff\x00\x00\x00\x01" * 100_000,
        b"\xf0\x00\x0f\xff\xff\x00\x00\x00\x01\xf0" + b"\x00\x0f\xff\xff\x00\x00\x00\x01\xf0" * 100_000,
        b"\xe0\x02\x00\x00" * 100_000,
        b"\xf0\x00\x0f\xff\xff\x00\x00\x00\x01\x00" * 100_000,
    ],
)
def test_nesting_of_100_000(data: bytes) -> None:
    """Deep nesting is refused at the limit, in little memory."""
    assert _peak(data) < 2**20


def test_elements_without_width_are_counted_together() -> None:
    """Many small arrays that claim many elements each are held against the one limit, in little memory."""
    array = bytes.fromhex("f0 00000005 0000ffff 45")
    data = b"\xd0" + (4 + 1000 * len(array)).to_bytes(4, "big") + (1000).to_bytes(4, "big") + array * 1000
    assert _peak(data) < 16 * 2**20


@pytest.mark.parametrize("written", ["40", "43", "45", "56"])
def test_elements_are_counted(written: str) -> None:
    """65,536 values are the most that one value may hold, however wide they are."""
    code = bytes.fromhex(written)
    width = 1 if written == "56" else 0
    for count, is_allowed in ((60_000, True), (65_536, False)):
        data = b"\xf0" + (5 + width * count).to_bytes(4, "big") + count.to_bytes(4, "big") + code + bytes(width * count)
        if is_allowed:
            assert count == len(decode(data)[0].items)
        else:
            with pytest.raises(DecodeError, match="65536"):
                decode(data)


def test_limits_are_the_callers() -> None:
    """Depth and elements are refused exactly one above the limit."""
    assert decode(encode([[1]]), limits=Limits(depth=2))[0] == [[1]]
    with pytest.raises(DecodeError, match="deeper"):
        decode(encode([[1]]), limits=Limits(depth=1))
    assert decode(encode([1, 2]), limits=Limits(elements=3))[0] == [1, 2]
    with pytest.raises(DecodeError, match="more than 2 elements"):
        decode(encode([1, 2]), limits=Limits(elements=2))


def test_32_deep_is_the_default() -> None:
    """Encoder and decoder agree on how deep is deep."""
    value: Any = 1
    for _ in range(32):
        value = [value]
    assert value == decode(encode(value))[0]
    with pytest.raises(DecodeError, match="deeper"):
        decode(_nest(encode(value)))


def _nest(data: bytes) -> bytes:
    return b"\xc0" + bytes((len(data) + 1, 1)) + data


def test_values_own_their_bytes() -> None:
    """A buffer that is reused does not change what was read from it."""
    buffer = bytearray(encode([b"abc", "abc", Symbol("abc")]))
    value, _ = decode(memoryview(buffer))
    buffer[:] = bytes(len(buffer))
    assert [b"abc", "abc", Symbol("abc")] == value


def test_chosen_uuids_are_not_put_in_a_dict() -> None:
    """UUIDs hash as their number, so a stranger could make them all collide: they make a Map."""
    data = b"\xc1\x13\x02\x98" + bytes(16) + b"\x40"
    assert isinstance(decode(data)[0], Map)
