"""Compressed bodies: the same as they were, bounded whatever is claimed, and any wrong bit is told."""

from collections.abc import Sequence

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.log.format.batch import (
    BATCH_HEADER_BYTES,
    COMPRESSED,
    KEPT,
    Batch,
    DraftBatch,
    Mismatch,
    check,
    check_bodies,
    decode_header,
    encode_batch,
)
from ambermq.log.format.compression import Compressor, plain_bodies
from ambermq.log.format.record import RECORD
from tests.golden import GOLDEN_DIRECTORY

GOLDEN = GOLDEN_DIRECTORY / "batch_compressed.hex"
BODIES = [b"amber keeps what it has seen " * 9, b"", b"amber keeps what it has seen, all of it " * 5]
SALT_CRC = 0x12345678
BATCH_BYTES_MAX = 4096

bodies_of = st.lists(
    st.one_of(st.binary(max_size=40), st.builds(bytes.__mul__, st.binary(min_size=1, max_size=3), st.integers(1, 200))),
    min_size=1,
    max_size=6,
)


def batch_of(bodies: Sequence[bytes], frame: bytes, *, plain_bytes: int | None = None) -> bytes:
    """A batch of a record for each body, with a frame that is said to hold them."""
    records = [RECORD.pack(delta, len(body), 0, 0, 0, 0, 0, 0, 0, 12, 0) for delta, body in enumerate(bodies)]
    batch = DraftBatch(
        1000,
        1_700_000_000_000_000,
        count=len(records),
        records=records,
        bodies=[frame],
        body_bytes=len(frame),
        flags=KEPT | COMPRESSED,
        plain_bytes=sum(map(len, bodies)) if plain_bytes is None else plain_bytes,
    )
    return b"".join(encode_batch(batch, salt_crc=SALT_CRC, durable_end=900, epoch=2))


def read(content: bytes) -> "bytes | Mismatch":
    """The plain bodies of a batch, or what is wrong with it."""
    wrong = check(SALT_CRC, content, batch_bytes_max=BATCH_BYTES_MAX)
    if wrong is not None:
        return wrong
    header = decode_header(content)
    found = plain_bodies(header, content[header.head_bytes : header.length])
    return found if isinstance(found, Mismatch) else bytes(found)


def test_golden_bytes() -> None:
    """The format stands: these bytes are read for ever, whatever version of zstandard writes today."""
    golden = bytes.fromhex(GOLDEN.read_text())
    assert read(golden) == b"".join(BODIES)
    header = decode_header(golden)
    assert (header.flags, header.plain_bytes, header.bodies_bytes) == (3, 461, 461)
    head = golden[: header.head_bytes]
    batch = Batch(header, head[BATCH_HEADER_BYTES:], b"", 1, 0)
    plain = head + b"".join(BODIES)
    assert [plain[one.body_position :][: one.body_length] for one in batch.record_list()] == BODIES
    assert header.body_bytes < 461 // 2


@given(bodies_of)
@settings(max_examples=150, deadline=None)
def test_what_was_compressed_comes_back(bodies: list[bytes]) -> None:
    """By any compressor the same bytes; where nothing is won there is no frame."""
    compressor = Compressor()
    frame = compressor.compress(bodies)
    assert compressor.compress(bodies) == frame == Compressor().compress(bodies)
    plain = b"".join(bodies)
    if frame is None:
        assert len(zstandard.ZstdCompressor().compress(plain)) + 4 >= len(plain) * 7 // 8
    else:
        assert len(frame) < len(plain)
        assert read(batch_of(bodies, frame)) == plain


def test_a_flipped_bit_anywhere_is_found() -> None:
    """In the head or in the frame, as in a batch that is not compressed; the checks on the disk need no zstandard."""
    frame = Compressor().compress(BODIES)
    assert frame is not None
    content = batch_of(BODIES, frame)
    header = decode_header(content)
    assert check_bodies(header, content[header.head_bytes :]) is None
    for bit in range(8 * len(content)):
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        assert isinstance(read(bytes(damaged)), Mismatch), f"bit {bit}"
    for length in range(len(content)):
        assert isinstance(read(content[:length]), Mismatch), f"{length} bytes"


def frames() -> dict[str, tuple[bytes, int]]:
    """Frames whose CRCs are right and that are not what their batch says, and what it says."""
    plain = b"x" * 2000
    whole = zstandard.ZstdCompressor(write_checksum=True).compress(plain)
    wrong_sum = bytearray(whole)
    wrong_sum[-1] ^= 1
    return {
        "smaller": (whole, 2001),
        "larger": (whole, 1999),
        "huge": (zstandard.ZstdCompressor().compress(bytes(1 << 24)), 2000),
        "silent": (zstandard.ZstdCompressor(write_content_size=False).compress(plain), 2000),
        "cut": (whole[:-6], 2000),
        "checksum": (bytes(wrong_sum), 2000),
        "more behind": (whole + b"more", 2000),
        "two": (whole + whole, 2000),
        "none": (b"", 2000),
        "other bytes": (b"no frame at all", 2000),
        "skippable": (bytes.fromhex("502a4d18 04000000 00000000"), 0),
    }


@pytest.mark.parametrize("name", frames())
def test_a_frame_that_is_not_what_the_batch_says_is_damage(name: str) -> None:
    """Right CRCs or not: it must hold as many bytes as the header says, say so itself, and be alone."""
    frame, plain_bytes = frames()[name]
    found = read(batch_of([], frame, plain_bytes=plain_bytes))
    assert isinstance(found, Mismatch)
    assert found.expected == f"one zstandard frame of {plain_bytes} bytes"


@pytest.mark.parametrize("name", ["smaller", "larger", "huge", "silent", "none", "other bytes"])
def test_nothing_is_decompressed_for_a_wrong_claim(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a frame claims is read and refused before there is memory for it."""

    def refuse() -> None:
        raise AssertionError("decompressed")

    monkeypatch.setattr(zstandard, "ZstdDecompressor", refuse)
    frame, plain_bytes = frames()[name]
    assert isinstance(read(batch_of([], frame, plain_bytes=plain_bytes)), Mismatch)


def test_a_claim_is_bounded_before_it_is_used() -> None:
    """What a header says that a frame holds is part of the largest batch, and nothing is decompressed for more."""
    room_bytes = BATCH_BYTES_MAX - BATCH_HEADER_BYTES
    frame = zstandard.ZstdCompressor().compress(bytes(room_bytes))
    assert read(batch_of([], frame)) == Mismatch("one zstandard frame of 0 bytes", f"a frame of {room_bytes} bytes")
    assert read(batch_of([], frame, plain_bytes=room_bytes)) == bytes(room_bytes)
    frame = zstandard.ZstdCompressor().compress(bytes(room_bytes + 1))
    expected = f"at most {room_bytes} bytes of bodies in a compressed batch"
    assert read(batch_of([], frame, plain_bytes=room_bytes + 1)) == Mismatch(expected, f"{room_bytes + 1}")
