"""Every implementation of CRC-32C gives the same number."""

import zlib

from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.log.format import checksum
from ambermq.log.format.checksum import crc32c


def test_the_check_value_of_the_standard() -> None:
    """The CRC-32C of "123456789" is E3069283 (RFC 3720, B.4); it is not zlib's CRC-32."""
    assert crc32c(b"123456789") == 0xE3069283 != zlib.crc32(b"123456789")
    assert crc32c(bytes(32)) == 0x8A9136AA
    assert crc32c(b"") == 0


@given(st.binary(max_size=300), st.binary(max_size=300))
@settings(max_examples=200, deadline=None)
def test_both_implementations_are_equal_and_continue(first: bytes, second: bytes) -> None:
    """Package and fallback agree on any bytes, of any buffer kind, whole or in two pieces."""
    fallback, _ = checksum.crc32c_of_crcmod()
    whole = crc32c(first + second)
    for function in (crc32c, fallback):
        assert function(first + second) == whole
        assert function(second, function(first)) == whole
        assert function(memoryview(second), function(bytearray(first))) == whole


def test_the_one_in_use_is_compiled() -> None:
    """In the environment of the tests there is a fast implementation."""
    assert checksum.IS_FAST
