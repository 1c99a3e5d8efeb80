"""A removal: one pass over a queue from head to tail that removes wanted words.

Rule 1. A run or chunk without a wanted word is returned as the same object, so that the caller shares it.
Rule 2. A chunk is read only if a wanted word is within its bounds. Queues are mostly in the order of offsets, so that
        is usually only the chunk with the word. In an unordered queue every chunk is read.
Rule 3. Words are unique in a queue, so the pass ends when no wanted word is missing.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from struct import pack
from typing import final

from ambermq.snapshot.word_chunk import WORD_BYTES, Chunk, unpack_words

__all__ = ["Removal"]

# Up to this many words a byte search for each word is cheaper than reading the whole chunk.
SEARCHES_MAX = 8


@final
class Removal:
    """The wanted words of one pass, the number still missing, and the removed words in the order of the pass."""

    __slots__ = ("_removed", "_wanted", "missing")

    def __init__(self, words: bytes) -> None:
        self._wanted = sorted(set(unpack_words(words)))
        self._removed: list[bytes] = []
        self.missing = len(self._wanted)

    def removed(self) -> bytes:
        """Return the words removed so far, packed."""
        return b"".join(self._removed)

    def remove(self, words: bytes) -> bytes:
        """Remove the wanted words from packed `words` and return the others; `words` itself if it has none."""
        return self._remove(words, self._wanted) if self.missing else words

    def remove_from_chunk(self, chunk: Chunk) -> Chunk | None:
        """Remove the wanted words from `chunk`. Return it, a chunk of the rest, or None if no word is left."""
        if not self.missing:
            return chunk
        low, high = bounds = chunk.bounds()
        first = bisect_left(self._wanted, low)
        end = bisect_right(self._wanted, high, first)
        if first == end:
            return chunk
        kept = self._remove(chunk.words, self._wanted[first:end])
        if kept is chunk.words:
            return chunk
        return Chunk(kept, bounds) if kept else None

    def _remove(self, words: bytes, wanted: list[int]) -> bytes:
        # The frequent case, a run of neighbours in rising order, needs one search and one cut, whatever its length.
        run = pack(f"<{len(wanted)}Q", *wanted)
        position = _position(words, run)
        if position >= 0:
            self.missing -= len(wanted)
            self._removed.append(run)
            return words[:position] + words[position + len(run) :]
        return self._remove_scattered(words, wanted)

    def _remove_scattered(self, words: bytes, wanted: list[int]) -> bytes:
        positions = _positions(words, wanted)
        if not positions:
            return words
        self.missing -= len(positions)
        self._removed.extend([words[position : position + WORD_BYTES] for position in positions])
        return _without(words, positions)


def _positions(words: bytes, wanted: list[int]) -> Sequence[int]:
    """Return the rising byte positions of the wanted words in `words`."""
    if len(wanted) <= SEARCHES_MAX:
        found = [_position(words, word.to_bytes(WORD_BYTES, "little")) for word in wanted]
        return sorted([position for position in found if position >= 0])
    lookup = set(wanted)
    return [index * WORD_BYTES for index, word in enumerate(unpack_words(words)) if word in lookup]


def _position(words: bytes, run: bytes) -> int:
    """Return the byte position of the first word of `run`, or -1. A match that begins within a word does not count."""
    position = words.find(run)
    while position >= 0 and position % WORD_BYTES:
        position = words.find(run, position + 1)
    return position


def _without(words: bytes, positions: Sequence[int]) -> bytes:
    """Return `words` without those at the rising byte `positions`."""
    ends = [*positions, len(words)]
    starts = [0, *[position + WORD_BYTES for position in positions]]
    return b"".join([words[start:end] for start, end in zip(starts, ends, strict=True)])
