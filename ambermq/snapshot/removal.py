"""A removal: one pass over a queue, head to tail, that takes out wanted words wherever they are.

Rule 1. What holds no wanted word comes back as the same object, so the caller shares it.
Rule 2. A chunk is read only when a wanted word lies within its bounds. Queues are mostly in order of offset, so that
        is the chunk that holds the word and hardly another; in a queue without any order every chunk is read.
Rule 3. Words are unique in a queue, so the pass may stop when nothing is missing any more.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from struct import pack
from typing import final

from ambermq.snapshot.word_chunk import WORD_BYTES, Chunk, unpack_words

__all__ = ["Removal"]

# Up to this many words are looked for one by one with a byte search; beyond, reading the chunk once is cheaper.
SEARCHES_MAX = 8


@final
class Removal:
    """The wanted words of one pass, how many are still missing, and those taken so far in the order of the pass."""

    __slots__ = ("_taken", "_wanted", "missing")

    def __init__(self, words: bytes) -> None:
        self._wanted = sorted(set(unpack_words(words)))
        self._taken: list[bytes] = []
        self.missing = len(self._wanted)

    def taken(self) -> bytes:
        """Return the words taken so far, packed."""
        return b"".join(self._taken)

    def sift(self, words: bytes) -> bytes:
        """Take the wanted words out of packed `words` and return the others, or `words` itself when it holds none."""
        return self._sift(words, self._wanted) if self.missing else words

    def sift_chunk(self, chunk: Chunk) -> Chunk | None:
        """Take the wanted words out of `chunk`: return it, a chunk of what is left, or None when nothing is."""
        if not self.missing:
            return chunk
        low, high = bounds = chunk.bounds()
        first = bisect_left(self._wanted, low)
        end = bisect_right(self._wanted, high, first)
        if first == end:
            return chunk
        kept = self._sift(chunk.words, self._wanted[first:end])
        if kept is chunk.words:
            return chunk
        return Chunk(kept, bounds) if kept else None

    def _sift(self, words: bytes, wanted: list[int]) -> bytes:
        # The frequent case, a run of neighbours in rising order, is one search and one cut however long it is.
        run = pack(f"<{len(wanted)}Q", *wanted)
        position = _position(words, run)
        if position >= 0:
            self.missing -= len(wanted)
            self._taken.append(run)
            return words[:position] + words[position + len(run) :]
        return self._sift_scattered(words, wanted)

    def _sift_scattered(self, words: bytes, wanted: list[int]) -> bytes:
        positions = _positions(words, wanted)
        if not positions:
            return words
        self.missing -= len(positions)
        self._taken.extend([words[position : position + WORD_BYTES] for position in positions])
        return _without(words, positions)


def _positions(words: bytes, wanted: list[int]) -> Sequence[int]:
    """Return the byte positions at which `words` holds a wanted word, ascending."""
    if len(wanted) <= SEARCHES_MAX:
        found = [_position(words, word.to_bytes(WORD_BYTES, "little")) for word in wanted]
        return sorted([position for position in found if position >= 0])
    lookup = set(wanted)
    return [index * WORD_BYTES for index, word in enumerate(unpack_words(words)) if word in lookup]


def _position(words: bytes, run: bytes) -> int:
    """Return the byte position of the first word of `run`, or -1; a match that begins within a word is none."""
    position = words.find(run)
    while position >= 0 and position % WORD_BYTES:
        position = words.find(run, position + 1)
    return position


def _without(words: bytes, positions: Sequence[int]) -> bytes:
    """Return `words` without those at `positions`, which ascend."""
    ends = [*positions, len(words)]
    starts = [0, *[position + WORD_BYTES for position in positions]]
    return b"".join([words[start:end] for start, end in zip(starts, ends, strict=True)])
