"""A compressed chunk: the words of a chunk in the cold middle of a long queue, in a twentieth to a half of the memory.

    offset width field
     0     u64   first word
     8     u16   count of words
    10           one zstandard frame: the eight bytes of all words, by their place in the word
     .     u64   last word

Rule 1. The first and the last word are where a plain chunk has them. So a search through a tree decompresses nothing
        but the chunk that it finds.
Rule 2. Neighbours have equal high bytes, so by place they are long runs. Words of consecutive offsets and one size take
        a third of a byte each, those of random sizes two bytes, those of random gaps and sizes three.
Rule 3. It exists only in memory. Files have plain words.
"""

from functools import lru_cache
from typing import Final, final

import zstandard

from ambermq.snapshot.word_chunk import WORD_BYTES

__all__ = ["CompressedChunk", "compressed", "count_of", "recent_words_of", "words_of"]

_LEVEL: Final = 1
_COUNT_BYTES: Final = 2
_FRAME_START: Final = WORD_BYTES + _COUNT_BYTES
_RECENT_MAX: Final = 16
"""The chunks kept as plain words too, in all queues together: 128 KiB."""


@final
class CompressedChunk(bytes):
    """A chunk that `words_of` decompresses. A type of its own tells it from plain words."""

    __slots__ = ()


def compressed(chunk: bytes) -> CompressedChunk:
    """Return a chunk compressed; the same object if it is already."""
    if type(chunk) is CompressedChunk:
        return chunk
    columns = b"".join([chunk[place::WORD_BYTES] for place in range(WORD_BYTES)])
    # A compressor serves one thread at a time, and threads share queues. Making one is half of the time.
    frame = zstandard.ZstdCompressor(level=_LEVEL).compress(columns)
    count = (len(chunk) // WORD_BYTES).to_bytes(_COUNT_BYTES, "little")
    return CompressedChunk(b"".join((chunk[:WORD_BYTES], count, frame, chunk[-WORD_BYTES:])))


def words_of(chunk: bytes) -> bytes:
    """Return the packed words of a chunk; the chunk itself if it is plain."""
    if type(chunk) is not CompressedChunk:
        return chunk
    columns = zstandard.ZstdDecompressor().decompress(chunk[_FRAME_START:-WORD_BYTES])
    words, count = bytearray(len(columns)), count_of(chunk)
    for place in range(WORD_BYTES):
        words[place::WORD_BYTES] = columns[place * count : (place + 1) * count]
    return bytes(words)


_recent = lru_cache(maxsize=_RECENT_MAX)(words_of)


def recent_words_of(chunk: bytes) -> bytes:
    """Return the same as `words_of`, from a small cache: for searches, which come back to the same chunks."""
    return _recent(chunk) if type(chunk) is CompressedChunk else chunk


def count_of(chunk: bytes) -> int:
    """Return the number of words of a chunk."""
    if type(chunk) is CompressedChunk:
        return int.from_bytes(chunk[WORD_BYTES:_FRAME_START], "little")
    return len(chunk) // WORD_BYTES
