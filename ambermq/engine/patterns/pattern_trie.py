"""A mapping of patterns that finds all patterns that match a text.

It is a trie of words without node objects. The patterns are in one sorted list, where patterns with a common prefix are
neighbours. A node is a prefix and a range of the list; bisection finds the child for a word.

Rule 1. A pattern costs a pointer in the list and an entry of a dict whose key is the caller's string: 50 bytes. A node
        with its own dict would cost 200 bytes, and 100,000 patterns have one node for each word that differs.
Rule 2. A range of at most _FEW patterns is not searched deeper: its patterns are compared one by one.
Rule 3. `match` sorts the list, not `__setitem__`. So 100,000 patterns are added in the time of one sort, and one more
        costs one insertion. `match` also removes deleted patterns from the list.
Rule 4. Patterns of a peer can have as many nodes as words. A match whose time is over goes on at the next call.
"""

from bisect import bisect_left, insort
from typing import Final, Generic, NamedTuple, TypeVar, final

from ambermq.engine.patterns.words import Words, words_of
from ambermq.engine.time_budget import TimeBudget

__all__ = ["PatternTrie"]

Value = TypeVar("Value")

_FEW: Final = 8
_ONE_BY_ONE_MAX: Final = 32
"""At most this many patterns are inserted or deleted one by one; for more, sorting or copying the list is cheaper."""


class _Rest(NamedTuple):
    """A match whose time was over."""

    text: str
    nodes: list[tuple[str, int, int, int]]
    found: list[str]


@final
class PatternTrie(Generic[Value]):
    """A mapping of patterns to values; `match` returns the values of the patterns that match a text."""

    __slots__ = ("_after", "_budget", "_deleted", "_new", "_rest", "_separator", "_sorted", "_values")

    def __init__(self, separator: str, budget: TimeBudget | None = None) -> None:
        self._separator = separator
        self._budget = budget or TimeBudget()
        self._rest: _Rest | None = None
        # Every text that begins with PREFIX + separator sorts before PREFIX + `_after`.
        self._after = separator[:-1] + chr(ord(separator[-1]) + 1)
        self._values: dict[str, Value] = {}
        self._sorted: list[str] = []
        self._new: dict[str, None] = {}
        """Patterns that are not in the list yet."""
        self._deleted: set[str] = set()
        """Deleted patterns that are still in the list."""

    def __len__(self) -> int:
        return len(self._values)

    def get(self, pattern: str) -> Value | None:
        """Return the value of exactly this pattern, None if there is none."""
        return self._values.get(pattern)

    def items(self) -> list[tuple[str, Value]]:
        """Return every pattern with its value, in no order."""
        return list(self._values.items())

    def __setitem__(self, pattern: str, value: Value) -> None:
        if pattern in self._deleted:
            self._deleted.discard(pattern)
        elif pattern not in self._values:
            self._new[pattern] = None
        self._values[pattern] = value

    def __delitem__(self, pattern: str) -> None:
        del self._values[pattern]
        if pattern in self._new:
            del self._new[pattern]
        else:
            self._deleted.add(pattern)

    def match(self, text: str) -> list[Value]:
        """Return the value of each pattern that matches a text, in no order.

        Raises MatchUnfinished if the time of the budget is over: the next call for the same text goes on.
        """
        if self._new or self._deleted:
            self._rest = None
            self._update_list()
        text_words = words_of(text, self._separator)
        if text_words is None:
            return []
        found = self._find(text, text_words)
        if len(self._separator) > 1:
            # Separators can overlap, as `::` in `:::`. Then a prefix may end within a word, so each match is checked.
            found = [one for one in found if text_words.match(one.split(self._separator))]
        return [self._values[pattern] for pattern in found]

    def _update_list(self) -> None:
        """Insert the new patterns into the sorted list, and remove the deleted ones."""
        if len(self._deleted) <= _ONE_BY_ONE_MAX:
            for pattern in self._deleted:
                del self._sorted[bisect_left(self._sorted, pattern)]
        else:
            self._sorted = [pattern for pattern in self._sorted if pattern not in self._deleted]
        if len(self._new) <= _ONE_BY_ONE_MAX:
            for pattern in self._new:
                insort(self._sorted, pattern)
        else:
            self._sorted += self._new
            self._sorted.sort()
        self._new.clear()
        self._deleted.clear()

    def _find(self, text: str, words: Words) -> list[str]:
        """Return the matching patterns. Each node is visited once, with all positions that its prefix can reach."""
        rest, self._rest = self._rest, None
        if rest is None or rest.text != text:
            rest = _Rest(text, [("", 0, len(self._sorted), 1)], [])
        nodes, found = rest.nodes, rest.found
        while nodes:
            # The rest is kept before the check, which may raise.
            self._rest = rest
            self._budget.check()
            prefix, low, high, positions = nodes.pop()
            if high - low <= _FEW:
                found += self._match_range(prefix, low, high, positions, words)
                continue
            for word, after in words.steps(positions):
                path = prefix + word
                if after >= words.end and path in self._values:
                    found.append(path)
                child, start, stop = self._child(path, low, high)
                if start < stop:
                    nodes.append((child, start, stop, after))
        self._rest = None
        return found

    def _match_range(self, prefix: str, low: int, high: int, positions: int, words: Words) -> list[str]:
        """Return the patterns of a range whose words after the prefix match the rest of the text."""
        length, separator = len(prefix), self._separator
        patterns = self._sorted[low:high]
        return [one for one in patterns if words.match(one[length:].split(separator), positions)]

    def _child(self, path: str, low: int, high: int) -> tuple[str, int, int]:
        """Return the prefix of a child node, and the range of its patterns within the range of its parent."""
        child = path + self._separator
        start = bisect_left(self._sorted, child, low, high)
        return child, start, bisect_left(self._sorted, path + self._after, start, high)
