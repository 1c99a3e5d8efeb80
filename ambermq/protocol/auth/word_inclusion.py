"""Whether a pattern of words lies inside another one, and whether two patterns have a text in common. Exact.

Rule 1. Words are endless, so a wildcard of the inner pattern stands for a word that the outer one does not have: if
        the outer pattern matches the text with that word, it matches the text with any word there.
Rule 2. `#` of the inner pattern stands for 0, 1, 2, … such words. The positions of the outer pattern repeat soon.
Rule 3. Each pair of positions is visited once. A peer writes the inner pattern, so the pairs are bounded: beyond the
        bound the pattern does not count as inside.
"""

from typing import Final

from ambermq.engine.patterns.pattern import ANY_WORD, ANY_WORDS
from ambermq.protocol.auth.address_words import Words

__all__ = ["is_inside", "overlaps"]

_PAIRS_MAX: Final = 2_000


def is_inside(inner: Words, outer: Words) -> bool:
    """Return whether `outer` matches every text that `inner` matches; False if that takes too many steps."""
    automaton = _Automaton(outer)
    first = (0, automaton.start)
    pending, known = [first], {first}
    while pending:
        place, positions = pending.pop()
        if place == len(inner):
            if not positions & automaton.end:
                return False
            continue
        word = inner[place]
        if word == ANY_WORDS:
            found = [(place + 1, positions), (place, automaton.step(positions, None))]
        else:
            found = [(place + 1, automaton.step(positions, None if word == ANY_WORD else word))]
        for pair in found:
            if not pair[1] or len(known) >= _PAIRS_MAX:
                return False
            if pair not in known:
                known.add(pair)
                pending.append(pair)
    return True


def overlaps(one: Words, other: Words) -> bool:
    """Return whether a text exists that both patterns match."""
    row = [True, *[False] * len(other)]
    for place, word in enumerate(other):
        row[place + 1] = row[place] and word == ANY_WORDS
    for word in one:
        above, row = row, [row[0] and word == ANY_WORDS]
        for place, second in enumerate(other):
            if ANY_WORDS in {word, second}:
                row.append(above[place + 1] or row[place])
            else:
                is_equal = word == second or ANY_WORD in {word, second}
                row.append(above[place] and is_equal)
    return row[-1]


class _Automaton:
    """A pattern as a nondeterministic automaton; bit n of `positions`: its first n words have matched."""

    def __init__(self, words: Words) -> None:
        self.end = 1 << len(words)
        self._every = self._stays = self._skips = 0
        self._words: dict[str, int] = {}
        for place, word in enumerate(words):
            if word == ANY_WORDS:
                self._stays |= 1 << place
            elif word == ANY_WORD:
                self._every |= 1 << place
            else:
                self._words[word] = self._words.get(word, 0) | 1 << place
        self.start = self._closed(1)

    def step(self, positions: int, word: str | None) -> int:
        """Return the positions after one more word; None is a word that the pattern does not have."""
        moved = positions & (self._every | (0 if word is None else self._words.get(word, 0)))
        return self._closed(moved << 1 | positions & self._stays)

    def _closed(self, positions: int) -> int:
        """Return the positions with those behind each `#`, which may match no word.

        The last `#` that is reached does whatever positions before it could do, so those are dropped.
        """
        while more := (positions & self._stays) << 1 & ~positions:
            positions |= more
        last = (positions & self._stays).bit_length()
        return positions >> last - 1 << last - 1 if last else positions
