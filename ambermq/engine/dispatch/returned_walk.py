"""The walk of consumers over the returned messages of a queue: a position for each walk, and the returns since then.

A walk visits the returned words in their order, each once. A word that comes back behind its position is in the journal
of the queue, and is visited from there. So a return or an acquisition of one message costs a walk one visit at most,
whatever the number of returned messages.

Rule 1. The queue counts its returns. If the journal does not have exactly these, it begins anew, and so does each walk.
        So a missing note makes a walk slower, and never wrong.
Rule 2. A journal that is longer than the returned messages begins anew. So a walk that does not go on costs no memory,
        and visits them at most once for each time that as many have come back.
Rule 3. Messages from the journal are visited in the order of their return, all others in the order of entries.
"""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, final

from ambermq.engine.entries.entry_word import WORD_BYTES, unpack_words
from ambermq.engine.entries.priority import PRIORITY_DEFAULT
from ambermq.engine.model.queue import Queue
from ambermq.snapshot.persistent_queue import PersistentQueue

__all__ = ["ReturnJournal", "ReturnedCursor", "Visits"]

_NOTED_MIN: Final = 1024
_SCANNED_MAX: Final = 4096
"""The words of the journal that one call looks at, at up to 1 us each."""


@final
@dataclass(slots=True)
class ReturnedCursor:
    """The position of one walk."""

    position: int = -1
    """The last word that was visited in the order of entries."""
    seen: int = -1
    """The returns of the queue that the walk knows. Those behind it are in the journal."""


class Visits(NamedTuple):
    """The next words of one or more walks."""

    words: Sequence[int]
    seen: Sequence[int]
    """The returns that a walk knows after each word; empty for words in the order of entries."""

    def passed(self, cursor: ReturnedCursor, count: int) -> None:
        """Advance a cursor past the first `count` words, at least one."""
        if self.seen:
            cursor.seen = max(cursor.seen, self.seen[count - 1])
        else:
            cursor.position = max(cursor.position, self.words[count - 1])


_NO_VISITS: Final = Visits((), ())


@final
class ReturnJournal:
    """The words that came back to one queue, in the order of their return, for all walks of the queue."""

    __slots__ = ("_base", "_words")

    def __init__(self) -> None:
        self._base = 0
        """The returns before the first word."""
        self._words = array("Q")

    @property
    def end(self) -> int:
        """The returns that the journal knows."""
        return self._base + len(self._words)

    def note(self, words: bytes) -> None:
        """Add packed words that come back."""
        self._words.frombytes(words)

    def ahead(
        self, queue: Queue, cursors: Sequence[ReturnedCursor], count: int, priority: int = PRIORITY_DEFAULT
    ) -> Visits:
        """Return at most `count` words of a priority that some of the walks have not visited; none at the end of all.

        A word may be one that some of the walks have visited.
        """
        returned = queue.available_of(priority)[0]
        self._adjust(queue)
        for cursor in cursors:
            if cursor.seen < self._base:
                cursor.position, cursor.seen = -1, self.end
        visits = self._back_again(returned, cursors, count)
        if visits.words:
            return visits
        run = returned.run_above(min([cursor.position for cursor in cursors]))
        return Visits(unpack_words(run[: count * WORD_BYTES]), ()) if run else _NO_VISITS

    def _adjust(self, queue: Queue) -> None:
        # A delayed message counts twice: when its delivery fails, and when it is available again.
        returns = queue.counters.released + queue.counters.failed + queue.counters.delayed
        if self.end != returns or len(self._words) > max(_NOTED_MIN, queue.returned_count):
            self._base, self._words = returns, array("Q")

    def _back_again(self, returned: PersistentQueue, cursors: Sequence[ReturnedCursor], count: int) -> Visits:
        """Return returned words behind the positions that came back since; pass what is not returned any more."""
        position = max([cursor.position for cursor in cursors])
        first = min([cursor.seen for cursor in cursors])
        start = first
        while first < self.end:
            if first - start >= _SCANNED_MAX and (head := returned.run_above(-1)[:WORD_BYTES]):
                # The walk goes on in the next call. Until then it visits a word that it has visited.
                return Visits(unpack_words(head), (first,))
            batch = self._words[first - self._base : first - self._base + count]
            behind = dict[int, int]()
            for seen, word in enumerate(batch, first + 1):
                if word <= position and returned.holds(word):
                    # A word that came back more than once is visited once, at its last return.
                    behind.pop(word, None)
                    behind[word] = seen
            if behind:
                return Visits(list(behind), list(behind.values()))
            first += len(batch)
            for cursor in cursors:
                cursor.seen = max(cursor.seen, first)
        return _NO_VISITS
