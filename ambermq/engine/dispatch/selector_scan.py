"""The scan of a queue for one consumer with a selector, by two positions for each priority, some messages at a time.

Rule 1. A message that was never acquired is tested once, in order, because it does not change on the queue. A returned
        message is tested once for each of its returns: its failed deliveries or annotations may have changed.
Rule 2. A position is a word, and the next one is searched in the queue as it is. Removed messages are detected when
        they are to be acquired.
Rule 3. So the cost of a message, new or returned, does not depend on the backlog (returned_walk.py).
Rule 4. A scan is demand: it ends with its consumer and at a restart, and is never in the log.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final, final

from ambermq.engine.dispatch.returned_walk import ReturnedCursor, ReturnJournal, Visits
from ambermq.engine.entries.entry import Entry
from ambermq.engine.entries.entry_word import WORD_BYTES, size_of, unpack_words
from ambermq.engine.model.queue import Queue
from ambermq.engine.selectors.fields import Fields
from ambermq.engine.selectors.pausable_fields import LONG_BYTES, KnownTerms, PausableFields
from ambermq.engine.selectors.selector import Selector
from ambermq.engine.time_budget import TimeBudget

__all__ = ["Counted", "Peek", "SelectorScan", "is_available"]

Peek = Callable[[int, Sequence[int], Sequence[Entry | None]], Sequence[Fields | None] | None]
"""A function from a queue's id, words and their columns to the fields of the messages, at least of the first ones. An
element is None if its message cannot be read. The result is None if the scan must wait."""

_PEEK_BYTES_MAX: Final = 1 << 20


@final
class Counted:
    """A message's fields, with what its queue knows better: the failed deliveries, and that it was acquired before."""

    __slots__ = ("_entry", "_fields")

    def __init__(self, fields: Fields, entry: Entry) -> None:
        self._fields = fields
        self._entry = entry

    def get(self, name: str) -> Any:
        """Return the value of a field, as `Fields.get`."""
        if name == "header.delivery-count":
            return self._entry.count
        if name == "header.first-acquirer" and self._entry.was_acquired:
            return False
        return self._fields.get(name)


@dataclass(slots=True)
class _Place:
    """The position of a scan in the messages of one priority."""

    position: int = -1
    """The last tested word that was never acquired."""
    returned: ReturnedCursor = field(default_factory=ReturnedCursor)


@final
class SelectorScan:
    """The position of one consumer on its queue."""

    __slots__ = ("_known", "_known_message", "_place", "_places", "_visited", "_visits", "selector")

    def __init__(self, selector: Selector) -> None:
        self.selector = selector
        self._places: dict[int, _Place] = {}
        """The positions, by the priority of the messages."""
        self._place = _Place()
        """The position of the present words."""
        self._visits: Visits | None = None
        """The present returned words, None if the present words were never acquired."""
        self._visited = 0
        """The number of them that are tested."""
        self._known: KnownTerms = {}
        """What is known of the test of a large message that is not finished."""
        self._known_message: tuple[int, Entry | None] | None = None
        """The word of that message and its columns."""

    def ahead(self, queue: Queue, journal: ReturnJournal, count: int) -> Sequence[int]:
        """Return the next words to test, at most `count` and of limited size; empty at the end of the queue."""
        words: Sequence[int] = ()
        for priority in queue.serving_order:
            words = self._ahead_of(queue, journal, count, priority)
            if words:
                break
        size = 0
        for index, word in enumerate(words):
            size += min(size_of(word), _PEEK_BYTES_MAX)
            if size >= _PEEK_BYTES_MAX:
                return words[: index + 1]
        return words

    def _ahead_of(self, queue: Queue, journal: ReturnJournal, count: int, priority: int) -> Sequence[int]:
        place = self._place = self._places.setdefault(priority, _Place())
        returned, ready = queue.available_of(priority)
        if returned.count:
            self._visits, self._visited = journal.ahead(queue, [place.returned], count, priority), 0
            if self._visits.words and queue.has_groups:
                return self._in_order(queue, journal, count, priority)
            if self._visits.words:
                return self._visits.words
        self._visits = None
        return unpack_words(ready.run_above(place.position)[: count * WORD_BYTES])

    def _in_order(self, queue: Queue, journal: ReturnJournal, count: int, priority: int) -> Sequence[int]:
        """Return the next words in the order of arrival, which holds in a group, whatever has come back."""
        assert self._visits is not None
        back, place = self._visits.words, self._place
        if any(later < word for word, later in pairwise(back)):
            place.returned = ReturnedCursor()
            self._visits = journal.ahead(queue, [place.returned], count, priority)
            back = self._visits.words
        ready = unpack_words(queue.available_of(priority)[1].run_above(place.position)[: count * WORD_BYTES])
        if not ready or back[0] < ready[0]:
            return back[: bisect_left(back, ready[0])] if ready else back
        self._visits = None
        return ready[: bisect_left(ready, back[0])]

    def restart(self) -> None:
        """Begin anew: the messages of the queue have other places."""
        self._places, self._visits = {}, None

    def selects(self, word: int, entry: Entry | None, fields: Fields, matching: TimeBudget) -> bool:
        """Return whether the selector is true for a message. Raises MatchUnfinished if the time is over."""
        if size_of(word) <= LONG_BYTES and not (entry and (entry.annotations or entry.marks)):
            return self.selector.matches(fields)
        if (word, entry) != self._known_message:
            # The message of another word, or the same one with other annotations.
            self._known, self._known_message = {}, (word, entry)
        is_selected = self.selector.matches(PausableFields(fields, matching, self._known))
        self._known, self._known_message = {}, None
        return is_selected

    def pass_by(self, word: int) -> None:
        """Advance past the next one of the words that `ahead` returned."""
        if self._visits is None:
            self._place.position = word
        else:
            self._visited += 1
            self._visits.passed(self._place.returned, self._visited)


def is_available(queue: Queue, word: int) -> bool:
    """Return whether a word is available on a queue."""
    return any(words.holds(word) for words in queue.available_lists)
