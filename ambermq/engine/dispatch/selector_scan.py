"""A consumer that takes not everything of a queue: a walk along it, behind a cursor, a bounded part at a time.

Rule 1. What was never acquired is looked at once, in order: a message does not change while it waits. What came back is
        looked at again when its count of failed deliveries or its annotations have changed, and when it was taken.
Rule 2. The walk is along the queue as it was when the walk reached its end last. What is gone meanwhile is found out
        when it is to be acquired; what has come is the next walk's.
Rule 3. A walk begins behind what the one before has looked at, found from the end of the queue, and what came back is
        looked through once, not again until something has changed: one message more costs the same, however many wait.
Rule 4. It is demand: lost with its consumer and at a restart, and never in the log.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any, Final, final

from ambermq.engine.model.entry import Entry
from ambermq.engine.model.entry_word import WORD_BYTES, pack_words, size_of, unpack_words
from ambermq.engine.model.queue import Queue
from ambermq.engine.selectors.fields import Added, Fields
from ambermq.engine.selectors.selector import Selector
from ambermq.snapshot.persistent_queue import EMPTY_QUEUE, PersistentQueue

__all__ = ["Counted", "Peek", "SelectorScan"]

Peek = Callable[[int, Sequence[int], Sequence[Entry | None]], Sequence[Fields | None] | None]
"""A queue's id, words and their columns -> what is asked of the messages, of the first ones at least; None each that
cannot be read, None instead where they must wait."""

_Seen = tuple[int, Added]
"""What a selector may see of an entry's columns: failed deliveries, annotations added."""
_LOOKED_BYTES_MAX: Final = 1 << 20
_FORGETTING_MIN: Final = 1024


@final
class Counted:
    """A message's fields, with the count of failed deliveries that its queue knows."""

    __slots__ = ("_count", "_fields")

    def __init__(self, fields: Fields, count: int) -> None:
        self._fields = fields
        self._count = count

    def get(self, name: str) -> Any:
        """Return what a name of `Fields` stands for."""
        return self._count if name == "header.delivery-count" else self._fields.get(name)


@final
class SelectorScan:
    """Where one consumer stands on its queue."""

    __slots__ = ("_passed", "_passed_all", "_position", "_walk", "_words", "selector")

    def __init__(self, selector: Selector) -> None:
        self.selector = selector
        self._position = -1
        """The word of those never acquired that was looked at last."""
        self._walk: list[bytes] = []
        """Chunks that are to be walked along, the next one last."""
        self._words: list[int] = []
        """Those of the chunk that the walk is at, the next one last."""
        self._passed: dict[int, _Seen] = {}
        """Words that came back and were not taken, as they were then."""
        self._passed_all = EMPTY_QUEUE
        """What had come back when all of it had been looked at: as long as it is the same, there is nothing new."""

    def ahead(self, queue: Queue, count: int) -> list[int]:
        """Return the words to look at next, `count` at most and not many bytes; none when the end is reached."""
        words = self._back_again(queue, count) if queue.returned.count else []
        if not words:
            while not self._words and self._advance(queue):
                pass
            words = self._words[-count:][::-1]
        size = 0
        for index, word in enumerate(words):
            size += min(size_of(word), _LOOKED_BYTES_MAX)
            if size >= _LOOKED_BYTES_MAX:
                return words[: index + 1]
        return words

    def pass_by(self, word: int, entry: Entry | None) -> None:
        """Go on behind the next word, which was looked at."""
        if self._words and self._words[-1] == word:
            self._words.pop()
            self._position = word
        else:
            self._passed[word] = _seen(entry)

    def take(self, queue: Queue, word: int) -> bool:
        """Return whether a word that is wanted is available still: it is taken then, and new when it comes back."""
        self._passed.pop(word, None)
        packed = pack_words([word])
        return bool(queue.returned.remove(packed)[0] or queue.ready.remove(packed)[0])

    def _back_again(self, queue: Queue, count: int) -> list[int]:
        """Return words that came back and were not looked at as they are now."""
        passed, entries, returned = self._passed, queue.entries, queue.returned
        found: list[int] = []
        if returned is self._passed_all:
            return found
        if len(passed) > max(_FORGETTING_MIN, 2 * returned.count):
            self._passed = passed = {word: passed[word] for word in returned if word in passed}
        for word in returned:
            entry = entries.get(word >> 16)
            if passed.get(word) != _seen(entry):
                found.append(word)
                if len(found) == count:
                    break
        if not found:
            self._passed_all = returned
        return found

    def _advance(self, queue: Queue) -> bool:
        """Go on to the next chunk, of a walk along the queue as it is where the one before has ended."""
        last = int.from_bytes(queue.ready.last(), "little") if queue.ready.count else -1
        if last <= self._position:
            self._walk = []
            return False
        if not self._walk:
            self._walk = _chunks_behind(queue.ready, self._position)
        chunk = self._walk.pop()
        # What lies before the first one is gone.
        gone = max(self._position, int.from_bytes(queue.ready.head(1), "little") - 1)
        start = bisect_right(memoryview(chunk).cast("Q"), gone)
        self._words = list(unpack_words(chunk[start * WORD_BYTES :])[::-1])
        return True


def _chunks_behind(ready: PersistentQueue, position: int) -> list[bytes]:
    """Return the chunks of an ordered queue that reach beyond a word, the last one first."""
    found: list[bytes] = []
    for chunk in ready.chunks_backward():
        found.append(chunk)
        if int.from_bytes(chunk[:WORD_BYTES], "little") <= position:
            break
    return found


def _seen(entry: Entry | None) -> _Seen:
    return (0, ()) if entry is None else (entry.count, entry.annotations)
