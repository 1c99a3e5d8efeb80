"""A removal: the wanted words that are removed from the runs of a queue, from head to tail.

Rule 1. A run without a wanted word is returned as the same object, so that the caller shares it.
Rule 2. A compressed chunk is decompressed only if the first and the last of its words have a wanted one between them;
        the words that are left are plain.
Rule 3. Words are unique in a queue, so the removal ends when no wanted word is missing.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from struct import pack
from typing import final

from ambermq.snapshot.compressed_chunk import recent_words_of
from ambermq.snapshot.word_chunk import WORD_BYTES, unpack_words

__all__ = ["Removal"]

# Up to this many words a byte search for each word is cheaper than reading the whole chunk.
SEARCHES_MAX = 8


@final
class Removal:
    """The wanted words, the number still missing, and the removed words in the order of their removal."""

    __slots__ = ("_lookup", "_removed", "missing", "wanted")

    def __init__(self, words: bytes) -> None:
        self.wanted = sorted(set(unpack_words(words)))
        """The wanted words, rising."""
        self._removed: list[bytes] = []
        self._lookup: frozenset[int] | None = None
        self.missing = len(self.wanted)

    def removed(self) -> bytes:
        """Return the words removed so far, packed."""
        return b"".join(self._removed)

    def remove_any(self, chunk: bytes) -> bytes:
        """Remove the wanted words from a chunk and return the others; `chunk` itself if it has none."""
        if not self.missing:
            return chunk
        words = recent_words_of(chunk)
        if len(self.wanted) <= SEARCHES_MAX:
            return self._remove_at(chunk, words, _searched(words, self.wanted))
        # One table for all runs, since the wanted words may be many more than a run has.
        if self._lookup is None:
            self._lookup = frozenset(self.wanted)
        return self._remove_at(chunk, words, _looked_up(words, self._lookup))

    def remove_between(self, chunk: bytes) -> bytes:
        """Remove the wanted words between the first and the last of an ordered chunk, and return the others."""
        if not chunk or not self.missing:
            return chunk
        low = int.from_bytes(chunk[:WORD_BYTES], "little")
        high = int.from_bytes(chunk[-WORD_BYTES:], "little")
        if low > high:
            # These words are not ordered.
            return self.remove_any(chunk)
        start = bisect_left(self.wanted, low)
        return self.remove(chunk, self.wanted[start : bisect_right(self.wanted, high, start)])

    def remove(self, chunk: bytes, wanted: list[int]) -> bytes:
        """Remove a share of the wanted words from a chunk, and return the others as `remove_any` does."""
        if not wanted:
            return chunk
        words = recent_words_of(chunk)
        # The frequent case, a run of neighbours in rising order, needs one search and one cut, whatever its length.
        run = pack(f"<{len(wanted)}Q", *wanted)
        position = _position(words, run)
        if position >= 0:
            self.missing -= len(wanted)
            self._removed.append(run)
            return words[:position] + words[position + len(run) :]
        few = len(wanted) <= SEARCHES_MAX
        return self._remove_at(chunk, words, _searched(words, wanted) if few else _looked_up(words, frozenset(wanted)))

    def _remove_at(self, chunk: bytes, words: bytes, positions: Sequence[int]) -> bytes:
        """Remove the words at byte positions from `words`, those of `chunk`, and return the others."""
        if not positions:
            return chunk
        self.missing -= len(positions)
        self._removed.extend([words[position : position + WORD_BYTES] for position in positions])
        return _without(words, positions)


def _searched(words: bytes, wanted: list[int]) -> Sequence[int]:
    """Return the rising byte positions of a few wanted words in `words`."""
    found = [_position(words, word.to_bytes(WORD_BYTES, "little")) for word in wanted]
    return sorted([position for position in found if position >= 0])


def _looked_up(words: bytes, wanted: frozenset[int]) -> Sequence[int]:
    """Return the rising byte positions of the wanted words in `words`."""
    return [index * WORD_BYTES for index, word in enumerate(unpack_words(words)) if word in wanted]


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
