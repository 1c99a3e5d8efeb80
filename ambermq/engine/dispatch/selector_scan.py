"""The scan of a queue for one consumer with a selector: a cursor, and a bounded number of messages at a time.

Rule 1. A message that was never acquired is tested once, in order, because it does not change on the queue. A returned
        message is tested again if its failed deliveries or annotations have changed, or if this consumer had it.
Rule 2. A scan covers the queue as it was when the last scan ended. Removed messages are detected when they are to be
        acquired. New messages belong to the next scan.
Rule 3. A scan begins after the last tested message, which is found from the end of the queue. Returned messages are
        tested once, and not again before a change. So the cost of a new message does not depend on the backlog.
Rule 4. A scan is demand: it ends with its consumer and at a restart, and is never in the log.
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
"""A function from a queue's id, words and their columns to the fields of the messages, at least of the first ones. An
element is None if its message cannot be read. The result is None if the scan must wait."""

_VisibleColumns = tuple[int, Added]
"""The columns of an entry that a selector sees: failed deliveries and added annotations."""
_PEEK_BYTES_MAX: Final = 1 << 20
_PASSED_MIN: Final = 1024


@final
class Counted:
    """A message's fields, with the count of failed deliveries from its queue."""

    __slots__ = ("_count", "_fields")

    def __init__(self, fields: Fields, count: int) -> None:
        self._fields = fields
        self._count = count

    def get(self, name: str) -> Any:
        """Return the value of a field, as `Fields.get`."""
        return self._count if name == "header.delivery-count" else self._fields.get(name)


@final
class SelectorScan:
    """The position of one consumer on its queue."""

    __slots__ = ("_chunks", "_passed", "_passed_all", "_position", "_words", "selector")

    def __init__(self, selector: Selector) -> None:
        self.selector = selector
        self._position = -1
        """The last tested word that was never acquired."""
        self._chunks: list[bytes] = []
        """Chunks to scan, the next one last."""
        self._words: list[int] = []
        """Words of the present chunk, the next one last."""
        self._passed: dict[int, _VisibleColumns] = {}
        """Returned words that did not match, with the columns that the test saw."""
        self._passed_all = EMPTY_QUEUE
        """The returned words at the time when all of them were tested. While they are the same, none is new."""

    def ahead(self, queue: Queue, count: int) -> list[int]:
        """Return the next words to test, at most `count` and of limited size; empty at the end of the queue."""
        words = self._changed_returns(queue, count) if queue.returned.count else []
        if not words:
            while not self._words and self._advance(queue):
                pass
            words = self._words[-count:][::-1]
        size = 0
        for index, word in enumerate(words):
            size += min(size_of(word), _PEEK_BYTES_MAX)
            if size >= _PEEK_BYTES_MAX:
                return words[: index + 1]
        return words

    def pass_by(self, word: int, entry: Entry | None) -> None:
        """Advance the cursor past a tested word."""
        if self._words and self._words[-1] == word:
            self._words.pop()
            self._position = word
        else:
            self._passed[word] = _visible_columns(entry)

    def take(self, queue: Queue, word: int) -> bool:
        """Return whether a matching word is still available. If it is returned later, it is tested again."""
        self._passed.pop(word, None)
        packed = pack_words([word])
        return bool(queue.returned.remove(packed)[0] or queue.ready.remove(packed)[0])

    def _changed_returns(self, queue: Queue, count: int) -> list[int]:
        """Return returned words that were not tested with their present columns."""
        passed, entries, returned = self._passed, queue.entries, queue.returned
        found: list[int] = []
        if returned is self._passed_all:
            return found
        if len(passed) > max(_PASSED_MIN, 2 * returned.count):
            self._passed = passed = {word: passed[word] for word in returned if word in passed}
        for word in returned:
            entry = entries.get(word >> 16)
            if passed.get(word) != _visible_columns(entry):
                found.append(word)
                if len(found) == count:
                    break
        if not found:
            self._passed_all = returned
        return found

    def _advance(self, queue: Queue) -> bool:
        """Start the next chunk, or a new scan of the queue if the last one has ended; return False at the end."""
        last = int.from_bytes(queue.ready.last(), "little") if queue.ready.count else -1
        if last <= self._position:
            self._chunks = []
            return False
        if not self._chunks:
            self._chunks = _chunks_behind(queue.ready, self._position)
        chunk = self._chunks.pop()
        # Words before the head of the queue are not on it any more.
        start_after = max(self._position, int.from_bytes(queue.ready.head(1), "little") - 1)
        start = bisect_right(memoryview(chunk).cast("Q"), start_after)
        self._words = list(unpack_words(chunk[start * WORD_BYTES :])[::-1])
        return True


def _chunks_behind(ready: PersistentQueue, position: int) -> list[bytes]:
    """Return the chunks of an ordered queue that have words above `position`, the last chunk first."""
    found: list[bytes] = []
    for chunk in ready.chunks_backward():
        found.append(chunk)
        if int.from_bytes(chunk[:WORD_BYTES], "little") <= position:
            break
    return found


def _visible_columns(entry: Entry | None) -> _VisibleColumns:
    return (0, ()) if entry is None else (entry.count, entry.annotations)
