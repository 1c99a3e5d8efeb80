"""The 4096 bytes at the start of a segment."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.log.errors import DamageError, ForeignError
from ambermq.log.format.checksum import crc32c
from ambermq.log.format.segment import (
    COMPRESSIBLE_VERSION,
    PLAIN_VERSION,
    SEGMENT_HEADER_BYTES,
    SegmentHeader,
    index_path,
    segment_path,
)
from tests.golden import GOLDEN_DIRECTORY

GOLDEN = GOLDEN_DIRECTORY / "segment_header.hex"
HEADER = SegmentHeader(salt=0x01020304, log_id=bytes(range(16)), file_id=7, base_offset=1 << 20, epoch=3)

headers = st.builds(
    SegmentHeader,
    st.integers(0, 2**32 - 1),
    st.binary(min_size=16, max_size=16),
    st.integers(0, 2**64 - 1),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(0, 2**32 - 1),
    st.sampled_from((PLAIN_VERSION, COMPRESSIBLE_VERSION)),
)


def test_golden_bytes() -> None:
    """The format stands: these bytes were written by version 1 and are what it writes."""
    golden = bytes.fromhex(GOLDEN.read_text())
    assert HEADER.encode() == golden + bytes(SEGMENT_HEADER_BYTES - len(golden))
    assert SegmentHeader.decode(golden.ljust(SEGMENT_HEADER_BYTES, b"\0"), "f") == HEADER


@given(headers)
@settings(max_examples=100, deadline=None)
def test_what_was_encoded_is_decoded(header: SegmentHeader) -> None:
    """decode(encode(x)) == x, and the salt's CRC is that of its four bytes."""
    content = header.encode()
    assert len(content) == SEGMENT_HEADER_BYTES
    assert SegmentHeader.decode(memoryview(content), "f") == header
    assert header.salt_crc == crc32c(header.salt.to_bytes(4, "little"))


@given(st.integers(0, 8 * SEGMENT_HEADER_BYTES - 1))
@settings(max_examples=300, deadline=None)
def test_a_flipped_bit_is_found(bit: int) -> None:
    """One wrong bit anywhere in the 4096 bytes is damage, or another program's file, and the file is named."""
    content = bytearray(HEADER.encode())
    content[bit // 8] ^= 1 << bit % 8
    with pytest.raises((DamageError, ForeignError), match="name of the file"):
        SegmentHeader.decode(content, "name of the file")


def test_nothing_written_is_no_header() -> None:
    """Zeros, or no bytes at all, are a spare that was never used."""
    assert SegmentHeader.decode(bytes(SEGMENT_HEADER_BYTES), "f") is None
    assert SegmentHeader.decode(b"", "f") is None


def test_a_cut_header_is_damage() -> None:
    """Fewer bytes than a header are damage, with how many were found."""
    with pytest.raises(DamageError, match="expected 4096 bytes of segment header, found 100"):
        SegmentHeader.decode(HEADER.encode()[:100], "f")


def test_a_newer_version_is_foreign() -> None:
    """A header with a right CRC and a higher version is refused with both versions."""
    fields = bytearray(HEADER.encode()[:52])
    fields[8] = 3
    content = bytes(fields) + crc32c(fields).to_bytes(4, "little")
    with pytest.raises(ForeignError, match=r"f has segment version 3, this program reads versions 1 to 2"):
        SegmentHeader.decode(content.ljust(SEGMENT_HEADER_BYTES, b"\0"), "f")


def test_names_are_file_ids() -> None:
    """A segment's file is named by its id alone, in 16 hex digits; its index stands beside it."""
    assert segment_path("/d", 255) == "/d/segments/00000000000000ff.log"
    assert index_path("/d", 255) == "/d/segments/00000000000000ff.index"
