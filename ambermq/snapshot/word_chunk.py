"""A chunk: at most 1,024 packed words, shared between versions and never changed.

    word    u64, little-endian; the caller defines the meaning of its bits
    chunk   1..1024 words as one `bytes`, which the garbage collector does not traverse
    link    (chunk, next link), or None at the end: a persistent list of chunks

Rule 1. The words of a chunk never change; a change makes another chunk.
Rule 2. The bounds of a chunk are computed when a removal first needs them, and stored. So sealing a chunk only copies
        bytes (reading 1,024 words costs more than copying them), and only queues with removals from the middle pay.
Rule 3. Bounds may be wider than the words: the rest of a chunk keeps the bounds of the whole.
"""

from struct import unpack
from typing import TypeAlias, final

__all__ = ["CHUNK_BYTES", "CHUNK_WORDS", "WORD_BYTES", "Chunk", "Link", "link_all", "reverse", "unpack_words"]

WORD_BYTES = 8
CHUNK_WORDS = 1024
CHUNK_BYTES = CHUNK_WORDS * WORD_BYTES


@final
class Chunk:
    """A sealed run of 1 to `CHUNK_WORDS` words, with the bounds of their values after the first use."""

    __slots__ = ("_bounds", "words")

    def __init__(self, words: bytes, bounds: tuple[int, int] | None = None) -> None:
        self.words = words
        self._bounds = bounds

    def bounds(self) -> tuple[int, int]:
        """Return (low, high), both inclusive: no word of this chunk is outside."""
        if self._bounds is None:
            values = unpack_words(self.words)
            self._bounds = min(values), max(values)
        return self._bounds

    def fits(self, other: "Chunk") -> bool:
        """Return whether the words of both chunks fit into one."""
        return len(self.words) + len(other.words) <= CHUNK_BYTES

    def join(self, other: "Chunk") -> "Chunk":
        """Return one chunk of the words of this one, then those of `other`."""
        return Chunk(self.words + other.words)


Link: TypeAlias = "tuple[Chunk, Link] | None"


def unpack_words(words: bytes) -> tuple[int, ...]:
    """Return packed words as ints in order."""
    return unpack(f"<{len(words) // WORD_BYTES}Q", words)


def link_all(chunks: list[Chunk], rest: Link) -> Link:
    """Return the list of `chunks` in their order, then `rest`, which is shared."""
    for chunk in reversed(chunks):
        rest = (chunk, rest)
    return rest


def reverse(link: Link) -> Link:
    """Return the list of the same chunks in reverse order, without reading their words."""
    reversed_link: Link = None
    while link is not None:
        chunk, link = link
        reversed_link = (chunk, reversed_link)
    return reversed_link
