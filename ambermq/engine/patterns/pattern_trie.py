"""Many patterns at once: which of them match a text, and what is kept under each.

A trie of words whose nodes are not built: the patterns lie in one sorted list, where those that begin alike are
neighbours, so a node is a prefix and a range, and its child by a word is found by bisection.

Rule 1. A pattern costs a pointer in the list and an entry of a dict whose key is the caller's string: 50 bytes. A node
        with a dict of its own costs 200, and 100,000 patterns have as many nodes as words that tell them apart.
Rule 2. A range of FEW patterns or less is not searched any deeper: its patterns are compared one by one.
Rule 3. The list is sorted again when it is asked, not when it is added to: so 100,000 patterns are added in the time
        of one sort, and one more costs one insertion. Those that go are taken out then too.
"""

from bisect import bisect_left, insort
from typing import Final, Generic, TypeVar, final

from ambermq.engine.patterns.pattern import WORDS_MAX
from ambermq.engine.patterns.words import Words

__all__ = ["PatternTrie"]

Kept = TypeVar("Kept")

_FEW: Final = 8
_ONE_BY_ONE_MAX: Final = 32
"""So many patterns are inserted or taken out one by one; for more, sorting or copying the list is cheaper."""


@final
class PatternTrie(Generic[Kept]):
    """A mapping of patterns that also answers which of them match a text."""

    __slots__ = ("_after", "_fresh", "_gone", "_kept", "_separator", "_sorted")

    def __init__(self, separator: str) -> None:
        self._separator = separator
        # No text that begins with a prefix and the separator is as great as the prefix and this.
        self._after = separator[:-1] + chr(ord(separator[-1]) + 1)
        self._kept: dict[str, Kept] = {}
        self._sorted: list[str] = []
        self._fresh: dict[str, None] = {}
        """Patterns that are kept and not in the list yet."""
        self._gone: set[str] = set()
        """Patterns in the list that are kept no more."""

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, pattern: str) -> Kept | None:
        """Return what is kept under exactly this pattern."""
        return self._kept.get(pattern)

    def items(self) -> list[tuple[str, Kept]]:
        """Return every pattern with what is kept under it, in no order."""
        return list(self._kept.items())

    def __setitem__(self, pattern: str, kept: Kept) -> None:
        if pattern in self._gone:
            self._gone.discard(pattern)
        elif pattern not in self._kept:
            self._fresh[pattern] = None
        self._kept[pattern] = kept

    def __delitem__(self, pattern: str) -> None:
        del self._kept[pattern]
        if pattern in self._fresh:
            del self._fresh[pattern]
        else:
            self._gone.add(pattern)

    def match(self, text: str) -> list[Kept]:
        """Return what is kept under each pattern that matches a text, in no order."""
        if self._fresh or self._gone:
            self._settle()
        words = text.split(self._separator, WORDS_MAX)
        if len(words) > WORDS_MAX:
            return []
        searched = Words(words)
        found = self._find(searched)
        if len(self._separator) > 1:
            # Separators that overlap, as in `:::` between `::`, let a prefix end within a word.
            found = [one for one in found if searched.match(one.split(self._separator))]
        return [self._kept[pattern] for pattern in found]

    def _settle(self) -> None:
        """Put the patterns added since the last time to their places, and take out those that went."""
        if len(self._gone) <= _ONE_BY_ONE_MAX:
            for pattern in self._gone:
                del self._sorted[bisect_left(self._sorted, pattern)]
        else:
            self._sorted = [pattern for pattern in self._sorted if pattern not in self._gone]
        if len(self._fresh) <= _ONE_BY_ONE_MAX:
            for pattern in self._fresh:
                insort(self._sorted, pattern)
        else:
            self._sorted += self._fresh
            self._sorted.sort()
        self._fresh.clear()
        self._gone.clear()

    def _find(self, words: Words) -> list[str]:
        """Walk down all ways that lead anywhere, each node once, with all counts of words that it may have taken."""
        found: list[str] = []
        ways = [("", 0, len(self._sorted), 1)]
        while ways:
            prefix, low, high, taken = ways.pop()
            if high - low <= _FEW:
                found += self._compared(prefix, low, high, taken, words)
                continue
            for word, after in words.steps(taken):
                path = prefix + word
                if after >= words.all_taken and path in self._kept:
                    found.append(path)
                child, start, stop = self._child(path, low, high)
                if start < stop:
                    ways.append((child, start, stop, after))
        return found

    def _compared(self, prefix: str, low: int, high: int, taken: int, words: Words) -> list[str]:
        """Return those of a range's patterns whose words behind the prefix match what is left."""
        length, separator = len(prefix), self._separator
        patterns = self._sorted[low:high]
        return [one for one in patterns if words.match(one[length:].split(separator), taken)]

    def _child(self, path: str, low: int, high: int) -> tuple[str, int, int]:
        """Return the prefix of the node below a path, and the range of its patterns within that of its parent."""
        child = path + self._separator
        start = bisect_left(self._sorted, child, low, high)
        return child, start, bisect_left(self._sorted, path + self._after, start, high)
