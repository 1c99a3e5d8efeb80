"""The container of a snapshot: its bytes, and every fault by its place."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ambermq.log.format.checksum import crc32c
from ambermq.snapshot.block_file import (
    BLOCK_BYTES_MAX,
    HEADER_BYTES,
    Block,
    BlockFault,
    BlockKind,
    BlockWriter,
    ForeignBlocks,
    Header,
    decode_header,
    encode_block,
    encode_header,
    read_blocks,
)
from tests.golden import GOLDEN_DIRECTORY

GOLDEN = GOLDEN_DIRECTORY / "snapshot.hex"
HEADER = Header(3, bytes(range(16)), 1 << 40, 1_700_000_000_000_000)
BLOCKS = [
    Block(BlockKind.STATE, [b'{"epoch":3}']),
    Block(BlockKind.WORDS, [b"run and ", b"words"]),
    Block(BlockKind.WORDS, []),
]


def written(header: Header, blocks: list[Block]) -> bytes:
    """The bytes of a whole file."""
    return b"".join(buffer for buffers in BlockWriter(crc32c).all(header, blocks) for buffer in buffers)


def read_back(content: bytes) -> tuple[Header, list[tuple[int, bytes]]]:
    """Header and blocks of a file's bytes."""
    header = decode_header(content[:HEADER_BYTES], crc32c)
    blocks = read_blocks(lambda length, position: content[position : position + length], crc32c)
    return header, [(block.kind, block.payload) for block in blocks]


def test_golden_bytes() -> None:
    """The format of version 1 stays readable and is written the same."""
    golden = bytes.fromhex(GOLDEN.read_text())
    assert written(HEADER, BLOCKS) == golden
    assert read_back(golden)[0] == HEADER


@given(
    st.builds(
        Header,
        st.integers(0, (1 << 32) - 1),
        st.binary(min_size=16, max_size=16),
        st.integers(0, (1 << 63) - 1),
        st.integers(0, (1 << 63) - 1),
    ),
    st.lists(st.builds(Block, st.integers(1, 254), st.lists(st.binary(max_size=40), max_size=3)), max_size=5),
)
def test_what_is_written_is_read_back(header: Header, blocks: list[Block]) -> None:
    """read(write(x)) == x, however a payload lay in pieces."""
    assert read_back(written(header, blocks)) == (header, [(block.kind, block.payload) for block in blocks])


@given(st.data())
def test_any_flipped_bit_is_found_where_it_is(data: st.DataObject) -> None:
    """No changed file is believed, and the fault is told at or before the block that holds the change."""
    content = bytearray(written(HEADER, BLOCKS))
    position = data.draw(st.integers(0, len(content) - 1))
    content[position] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(BlockFault) as caught:
        read_back(bytes(content))
    assert caught.value.position <= len(content)
    assert (type(caught.value) is ForeignBlocks) == (position < 8)


@given(st.integers(0, 1 << 16))
def test_a_file_that_was_cut_anywhere_says_so(cut: int) -> None:
    """A part of a file is never taken for the whole, between two blocks neither."""
    content = written(HEADER, BLOCKS)
    with pytest.raises(BlockFault):
        read_back(content[: cut % len(content)])


def test_a_file_with_more_behind_it_is_refused() -> None:
    """Nothing follows END."""
    content = written(HEADER, BLOCKS)
    with pytest.raises(BlockFault, match="more bytes") as caught:
        read_back(content + b"x")
    assert caught.value.position == len(content)


def test_a_missing_block_is_found_by_end() -> None:
    """END counts: a file from which one whole block was taken is not the whole."""
    block = b"".join(encode_block(BLOCKS[1].kind, BLOCKS[1].parts, crc32c))
    content = written(HEADER, BLOCKS)
    with pytest.raises(BlockFault, match="END block of 2 blocks"):
        read_back(content.replace(block, b""))


def test_another_file_is_foreign_and_a_newer_version_too() -> None:
    """Both are told apart from damage: they are whole, only not for us."""
    with pytest.raises(ForeignBlocks, match="magic"):
        decode_header(b"AMBERSEG".ljust(HEADER_BYTES, b"\0"), crc32c)
    with pytest.raises(ForeignBlocks, match="magic"):
        decode_header(b"", crc32c)
    newer = bytearray(encode_header(HEADER, crc32c))
    newer[8] = 2
    newer[60:] = crc32c(bytes(newer[:60])).to_bytes(4, "little")
    with pytest.raises(ForeignBlocks, match="version 1, found 2"):
        decode_header(bytes(newer), crc32c)


def test_a_claimed_length_is_bounded_before_it_is_used() -> None:
    """No file makes its reader allocate what it merely claims."""
    content = bytearray(written(HEADER, BLOCKS))
    content[HEADER_BYTES + 4 : HEADER_BYTES + 8] = (BLOCK_BYTES_MAX + 1).to_bytes(4, "little")
    asked = list[int]()

    def read(length: int, position: int) -> bytes:
        asked.append(length)
        return bytes(content[position : position + length])

    with pytest.raises(BlockFault, match="at most"):
        list(read_blocks(read, crc32c))
    assert max(asked) <= HEADER_BYTES
