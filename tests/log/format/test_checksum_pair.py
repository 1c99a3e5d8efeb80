"""Two implementations of CRC-32C where bytes are checked for a person."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.log.buffer import Buffer
from ambermq.log.errors import ChecksumError
from ambermq.log.format import checksum_pair
from ambermq.log.format.checksum import crc32c
from ambermq.log.format.checksum_pair import SAMPLE_INTERVAL, SampledChecksum, crc32c_by_both

_LONG = bytes(5000)


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The lengths of what the second implementation computed."""
    lengths: list[int] = []
    second = checksum_pair._second()

    def noted(buffer: Buffer, crc: int) -> int:
        lengths.append(len(buffer))
        return second(buffer, crc)

    monkeypatch.setattr(checksum_pair, "_second", lambda: noted)
    return lengths


@given(st.binary(max_size=300), st.binary(max_size=300))
@settings(max_examples=100, deadline=None)
def test_both_continue_as_one(first: bytes, second: bytes) -> None:
    """The CRC by both is that by either, whole or in two pieces."""
    functions: tuple[Callable[..., int], ...] = (crc32c_by_both, SampledChecksum())
    for function in functions:
        assert function(second, function(first)) == crc32c(first + second)


def test_the_second_computes_samples_of_long_buffers_and_each_short_one(checked: list[int]) -> None:
    """The first long one is a sample."""
    checksum = SampledChecksum()
    for _ in range(2 * SAMPLE_INTERVAL):
        checksum(_LONG)
        checksum(b"short")
    assert (checked.count(5000), checked.count(5)) == (2, 2 * SAMPLE_INTERVAL)


def test_a_disagreement_is_no_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    """It names both values and both packages."""
    monkeypatch.setattr(checksum_pair, "_second", lambda: lambda _buffer, _crc: 1)
    with pytest.raises(ChecksumError, match=r"of 9 bytes is 0xe3069283 by crc32c and 0x00000001 by crcmod-plus"):
        crc32c_by_both(b"123456789")
