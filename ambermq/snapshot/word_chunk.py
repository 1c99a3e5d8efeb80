"""A chunk: at most 1,024 packed words, shared between versions and never changed.

word    u64, little-endian; the caller defines the meaning of its bits
chunk   1..1024 words as one `bytes`, which the garbage collector does not traverse
"""

from struct import unpack

__all__ = ["CHUNK_BYTES", "CHUNK_WORDS", "WORD_BYTES", "unpack_words"]

WORD_BYTES = 8
CHUNK_WORDS = 1024
CHUNK_BYTES = CHUNK_WORDS * WORD_BYTES


def unpack_words(words: bytes) -> tuple[int, ...]:
    """Return packed words as ints in order."""
    return unpack(f"<{len(words) // WORD_BYTES}Q", words)
