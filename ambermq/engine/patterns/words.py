"""The words of a text, as the words of a pattern take them.

All ways are gone at once: bit n of an integer says that n words may have been taken so far. A word moves those bits up
by one that stand where it does, `*` moves all, and `#` sets all above the lowest. So a pattern takes one step a word,
however many `#` it has, where trying one way after the other takes as many steps as there are ways.
"""

from collections.abc import Iterable, Sequence
from typing import final

from ambermq.engine.patterns.pattern import ANY_WORD, ANY_WORDS

__all__ = ["Words"]


@final
class Words:
    """A text's words, and where each stands."""

    __slots__ = ("_every", "_places", "all_taken")

    def __init__(self, words: Sequence[str]) -> None:
        self.all_taken = 1 << len(words)
        """The bit that says that no word is left; no bit is higher."""
        self._every = (self.all_taken << 1) - 1
        self._places: dict[str, int] = {}
        for place, word in enumerate(words):
            self._places[word] = self._places.get(word, 0) | 1 << place

    def match(self, pattern: Iterable[str], taken: int = 1) -> bool:
        """Say whether the words of a pattern take all that is left."""
        every, places = self._every, self._places
        for word in pattern:
            if word == ANY_WORD:
                taken = taken << 1 & every
            elif word == ANY_WORDS:
                taken = every & -(taken & -taken)
            else:
                taken = (taken & places.get(word, 0)) << 1
            if not taken:
                return False
        return taken >= self.all_taken

    def steps(self, taken: int) -> list[tuple[str, int]]:
        """Return each word that a pattern may go on with, and what may be taken after it: never nothing."""
        steps = [(ANY_WORDS, self._every & -(taken & -taken))]
        if after := taken << 1 & self._every:
            steps.append((ANY_WORD, after))
            for word, places in self._places.items():
                if taken & places and word not in {ANY_WORD, ANY_WORDS}:
                    steps.append((word, (taken & places) << 1))
        return steps
