"""The timers of messages that expire: volatile, and built again at a start from what the state has.

    own times to live     buckets of 8 ms: ranges of entries by queue      ExpiryTimers.add
    those of queues       the next expiry of each queue's runs             ExpiryTimers.watch

Rule 1. A timer says where to look. What has expired is what the queue says at that moment.
Rule 2. Most messages leave before they expire. So with each new range a few old ones are looked at, and those without a
        message are dropped: the memory is bounded by the messages that wait.
"""

from collections import deque
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import Final, NamedTuple, final

from ambermq.engine.entries.entry_word import WORD_BYTES, unpack_words
from ambermq.engine.entries.expiry_runs import expired_ranges, next_expiry
from ambermq.engine.loop.schedule import FOREVER_US
from ambermq.engine.model.queue import Queue
from ambermq.engine.model.queue_parts.word_ranges import words_between

__all__ = ["ExpiryTimers", "expired_words"]

_BUCKET_US: Final = 8_000
_LOOKED_AT: Final = 2
"""The old ranges that are looked at for each new one."""
_SPARE_KEYS: Final = 1024
_RANGE_COST: Final = 7
"""The messages of one range that take the time of a range: where all expiries differ, a tick takes fewer of them."""

Find = Callable[[int], Queue | None]
"""A function from the id of a queue to the queue."""


class _Range(NamedTuple):
    queue: int
    first: int
    length: int


@final
class ExpiryTimers:
    """The timers of one virtual host. All times are elapsed times in microseconds."""

    __slots__ = ("_buckets", "_keys", "_round", "_watched", "_watches")

    def __init__(self) -> None:
        self._buckets: dict[int, list[_Range]] = {}
        """Ranges by the end of their bucket."""
        self._keys: list[int] = []
        """A heap of the ends; a bucket may be gone."""
        self._round: deque[int] = deque()
        """The ends of the buckets, in the order in which they are looked at."""
        self._watched: dict[int, int] = {}
        """The next expiry of a queue's runs, by queue."""
        self._watches: list[tuple[int, int]] = []
        """A heap of those, as expiry and queue; it may have others."""

    @property
    def next_us(self) -> int:
        """The time of the next timer; FOREVER_US without one."""
        while self._keys and self._keys[0] not in self._buckets:
            heappop(self._keys)
        while self._watches and self._watched.get(self._watches[0][1]) != self._watches[0][0]:
            heappop(self._watches)
        own_us = self._keys[0] if self._keys else FOREVER_US
        return min(own_us, self._watches[0][0]) if self._watches else own_us

    def add(self, queue: int, first: int, count: int, expires_us: int, find: Find) -> None:
        """Add messages with one expiry."""
        end = -(-expires_us // _BUCKET_US) * _BUCKET_US
        bucket = self._buckets.get(end)
        if bucket is None:
            self._buckets[end] = [_Range(queue, first, count)]
            heappush(self._keys, end)
            self._round.append(end)
        else:
            bucket.append(_Range(queue, first, count))
        for _ in range(_LOOKED_AT):
            self._look(find)

    def _look(self, find: Find) -> None:
        """Look at the last range of the next bucket, and drop it if none of its messages is left."""
        if not self._round:
            return
        end = self._round[0]
        bucket = self._buckets.get(end)
        if bucket:
            last = bucket.pop()
            if _has_any(find(last.queue), last):
                # The next look is at another one.
                bucket.insert(0, last)
        if bucket:
            self._round.rotate(-1)
            return
        self._round.popleft()
        self._buckets.pop(end, None)
        if len(self._keys) > 2 * len(self._buckets) + _SPARE_KEYS:
            self._keys = list(self._buckets)
            heapify(self._keys)

    def watch(self, queue: Queue, now_us: int) -> None:
        """Note when messages of a queue expire next by its time to live, unless an earlier time is known."""
        if queue.id in self._watched:
            return
        due_us = next_expiry(queue.runs, now_us)
        if due_us:
            self._watched[queue.id] = due_us
            heappush(self._watches, (due_us, queue.id))

    def take(self, now_us: int, count_max: int, find: Find) -> list[tuple[int, list[int]]]:
        """Return queues with available words that have expired, at most about `count_max`, and forget their timers.

        If there are more, the next timer is due still. The words of a queue are together and in order, so they leave
        by one event, also if each has an expiry of its own.
        """
        found: dict[int, set[int]] = {}
        while count_max > 0 and self.next_us <= now_us:
            if self._keys and self._keys[0] <= now_us:
                bucket = self._buckets[self._keys[0]]
                one = bucket.pop()
                if not bucket:
                    del self._buckets[heappop(self._keys)]
                count_max -= _RANGE_COST + one.length
                found.setdefault(one.queue, set()).update(_words_of(find(one.queue), one, now_us))
                continue
            queue_id = self._watches[0][1]
            queue = find(queue_id)
            words = [] if queue is None else expired_words(queue, now_us, count_max)
            found.setdefault(queue_id, set()).update(words)
            count_max -= len(words) + 1
            if count_max > 0:
                del self._watched[queue_id]
                if queue is not None:
                    self.watch(queue, now_us)
        return [(queue_id, sorted(words)) for queue_id, words in found.items() if words]


def _has_any(queue: Queue | None, wanted: _Range) -> bool:
    """Return whether a message of a range is on its queue, acquired ones too."""
    if queue is None or not queue.timed:
        return False
    entries = queue.entries
    return any(offset in entries for offset in range(wanted.first, wanted.first + wanted.length))


def expired_words(queue: Queue, now_us: int, count_max: int) -> list[int]:
    """Return words that wait and have expired, at most `count_max`, the oldest of each list first."""
    found: dict[int, None] = {}
    for words in (*queue.available_lists, queue.delayed):
        for first, end in expired_ranges(queue.runs, now_us):
            above = (first << 16) - 1
            while len(found) < count_max and (run := words.run_above(above)):
                some = [word for word in unpack_words(run[: count_max * WORD_BYTES]) if word >> 16 < end]
                found |= dict.fromkeys(some)
                if not some or len(some) * WORD_BYTES < min(len(run), count_max * WORD_BYTES):
                    break
                above = some[-1]
    return list(found)[:count_max]


def _words_of(queue: Queue | None, wanted: _Range, now_us: int) -> list[int]:
    """Return the words of a range that wait and have expired."""
    if queue is None or not queue.timed:
        return []
    last = wanted.first + wanted.length
    lists = [one for one in (*queue.available_lists, *queue.timer_lists) if one.count]
    words = [word for one in lists for word in unpack_words(words_between(one, wanted.first, last))]
    return [word for word in words if 0 < queue.expiry_of(word) <= now_us]
