"""The words of a text, and the match of a pattern as a nondeterministic automaton in one integer.

Bit n of `positions` is set if the pattern's words so far can match the first n words of the text. A plain word moves
each bit up by one if the text has that word there, `*` moves all bits, and `#` sets all bits above the lowest. So a
pattern takes one step for each of its words, also if it has many `#`. Backtracking would take exponentially many steps.
"""

from collections.abc import Iterable, Sequence
from typing import final

from ambermq.engine.patterns.pattern import ANY_WORD, ANY_WORDS, WORDS_MAX

__all__ = ["Words", "words_of"]


@final
class Words:
    """The words of a text, and the positions of each."""

    __slots__ = ("_every", "_word_bits", "end")

    def __init__(self, words: Sequence[str]) -> None:
        self.end = 1 << len(words)
        """The bit of the end of the text; no bit is higher."""
        self._every = (self.end << 1) - 1
        self._word_bits: dict[str, int] = {}
        for place, word in enumerate(words):
            self._word_bits[word] = self._word_bits.get(word, 0) | 1 << place

    def match(self, pattern: Iterable[str], positions: int = 1) -> bool:
        """Return whether the words of a pattern match the rest of the text from one of the given positions."""
        every, word_bits = self._every, self._word_bits
        for word in pattern:
            if word == ANY_WORD:
                positions = positions << 1 & every
            elif word == ANY_WORDS:
                positions = every & -(positions & -positions)
            else:
                positions = (positions & word_bits.get(word, 0)) << 1
            if not positions:
                return False
        return positions >= self.end

    def steps(self, positions: int) -> list[tuple[str, int]]:
        """Return each next word of a pattern that can still match, with the positions after it, which are never 0."""
        steps = [(ANY_WORDS, self._every & -(positions & -positions))]
        if after := positions << 1 & self._every:
            steps.append((ANY_WORD, after))
            for word, word_bits in self._word_bits.items():
                if positions & word_bits and word not in {ANY_WORD, ANY_WORDS}:
                    steps.append((word, (positions & word_bits) << 1))
        return steps


def words_of(text: str, separator: str) -> Words | None:
    """Return the words of a text; None if they are more than WORDS_MAX, so that no pattern matches."""
    words = text.split(separator, WORDS_MAX)
    return None if len(words) > WORDS_MAX else Words(words)
