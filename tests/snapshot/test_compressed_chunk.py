"""Compressed chunks: the same words in less memory, with their ends in plain sight."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ambermq.snapshot.compressed_chunk import CompressedChunk, compressed, count_of, recent_words_of, words_of
from ambermq.snapshot.word_chunk import CHUNK_BYTES, CHUNK_WORDS, WORD_BYTES
from tests.snapshot.words import packed

WORDS = st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=60)


@given(WORDS)
def test_a_compressed_chunk_has_the_words_of_the_plain_one(words: list[int]) -> None:
    """Compression loses nothing; the first word, the last word and the count need no decompression."""
    plain = packed(words)

    chunk = compressed(plain)

    assert type(chunk) is CompressedChunk
    assert plain == words_of(chunk) == recent_words_of(chunk)
    assert type(words_of(chunk)) is bytes
    assert plain[:WORD_BYTES] == chunk[:WORD_BYTES]
    assert plain[-WORD_BYTES:] == chunk[-WORD_BYTES:]
    assert len(words) == count_of(chunk) == count_of(plain)


def test_plain_words_are_their_own_and_a_compressed_chunk_too() -> None:
    """A plain chunk is returned as the same object, and nothing is compressed twice."""
    plain = packed(range(9))
    chunk = compressed(plain)

    assert words_of(plain) is plain
    assert recent_words_of(plain) is plain
    assert compressed(chunk) is chunk


@pytest.mark.parametrize(
    ("gap", "sizes", "bytes_a_word"),
    [(1, (133, 133), 0.4), (1, (100, 2047), 2.1), (40, (133, 133), 1.3), (40, (0, 65_535), 3.4)],
)
def test_a_full_chunk_shrinks_as_its_words_are_alike(gap: int, sizes: tuple[int, int], bytes_a_word: float) -> None:
    """Words of consecutive offsets and one size take less than half a byte; random gaps and sizes take three."""
    draw, offset, words = random.Random(5), 10**10, []
    for _ in range(CHUNK_WORDS):
        offset += draw.randint(1, gap)
        words.append(offset << 16 | draw.randint(*sizes))

    assert len(compressed(packed(words))) <= bytes_a_word * CHUNK_WORDS


def test_words_without_order_do_not_grow() -> None:
    """Words that nothing is alike in take hardly more than plain ones."""
    draw = random.Random(6)
    plain = packed([draw.getrandbits(64) for _ in range(CHUNK_WORDS)])

    assert len(compressed(plain)) <= CHUNK_BYTES + 64
    assert words_of(compressed(plain)) == plain
