"""The timers of messages that expire: volatile, and built again at a start from what the state has.

    own times to live     the first expiry of each block of entries (block_timers.py)     ExpiryTimers.add
    those of queues       the next expiry of each queue's runs                             ExpiryTimers.watch

Rule 1. A timer says where to look. What has expired is what the queue says at that moment.
Rule 2. Most messages leave before they expire. Timers of such messages are dropped when they are the most: the memory
        is bounded by the messages that wait.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush
from operator import attrgetter
from typing import Final, final

from ambermq.engine.entries.entry_word import WORD_BYTES, unpack_words
from ambermq.engine.entries.expiry_runs import expired_ranges, next_expiry
from ambermq.engine.loop.timers.block_timers import SPARE, BlockTimers
from ambermq.engine.loop.timers.timer_heads import TimerHeads
from ambermq.engine.model.queue import Queue
from ambermq.engine.model.queue_parts.word_ranges import words_between
from ambermq.snapshot.persistent_column import EMPTY_COLUMN, PersistentColumn

__all__ = ["ExpiryTimers", "expired_words"]

_TICK_US: Final = 8_000
"""Timers end at multiples of this time, so that a broker with many of them wakes up seldom."""
_MESSAGE_COST: Final = 3
"""What a message counts for: it takes as long as several deliveries, and a turn of the loop may have two steps."""
_BLOCK_COST: Final = 32
"""The messages that finding those of a block counts for: where few of each block expire, a tick takes fewer of them."""

Find = Callable[[int], Queue | None]
"""A function from the id of a queue to the queue."""


@final
class ExpiryTimers:
    """The timers of one virtual host. All times are elapsed times in microseconds."""

    __slots__ = ("_own", "_watched", "_watches")

    def __init__(self) -> None:
        self._own = TimerHeads(attrgetter("expiries"))
        """The timers of messages by their own times to live."""
        self._watched: dict[int, int] = {}
        """The next expiry of a queue's runs, by queue."""
        self._watches: list[tuple[int, int]] = []
        """A heap of those, as expiry and queue; it may have others."""

    @property
    def next_us(self) -> int:
        """The time of the next timer; FOREVER_US without one."""
        while self._watches and self._watched.get(self._watches[0][1]) != self._watches[0][0]:
            heappop(self._watches)
        own_us = self._own.next_us(_TICK_US)
        return min(own_us, self._watches[0][0]) if self._watches else own_us

    def start(self, queue: Queue) -> None:
        """Set the timers of a queue that was recovered, by the own times to live of its messages."""
        self._own.set(queue.id, BlockTimers(queue.expiries))

    def add(self, queue: Queue, first: int, times: Sequence[int]) -> None:
        """Add messages of a queue from entry `first` on, which has them already; `times` are their expiries."""
        timers = self._own.queues.get(queue.id)
        if timers is None:
            timers = self._own.queues[queue.id] = BlockTimers(EMPTY_COLUMN)
        before = timers.first
        timers.add_run(first, times)
        timers.prune(queue.expiries)
        if timers.first != before:
            self._own.note(queue.id, timers)

    def forget(self, queue: int) -> None:
        """Forget the timers of a queue that is gone."""
        self._own.forget(queue)
        self._watched.pop(queue, None)
        if len(self._watches) > 2 * len(self._watched) + SPARE:
            self._watches = [(due_us, one) for one, due_us in self._watched.items()]
            heapify(self._watches)

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

        If there are more, the next timer is due still. The messages of a block are taken together, since neighbours are
        found and removed at once. The words of a queue are together and in order, so they leave by one event, also if
        each has an expiry of its own.
        """
        found: dict[int, set[int]] = {}
        seen: defaultdict[int, dict[int, int]] = defaultdict(dict)

        def take(queue: int, timers: BlockTimers, expiries: PersistentColumn) -> tuple[list[int], int]:
            return timers.take_block(expiries, now_us, count_max, seen[queue])

        while count_max > 0 and self.next_us <= now_us:
            taken = self._own.take(now_us, find, take)
            if taken is not None:
                queue, entries, spent = taken
                count_max -= spent + (_BLOCK_COST if entries else 0)
                if queue is not None and entries:
                    found.setdefault(queue.id, set()).update(_words_of(queue, entries))
                continue
            queue_id = self._watches[0][1]
            queue = find(queue_id)
            words = [] if queue is None else expired_words(queue, now_us, count_max)
            found.setdefault(queue_id, set()).update(words)
            has_more = len(words) == count_max
            count_max -= len(words) + 1
            if not has_more:
                del self._watched[queue_id]
                if queue is not None:
                    self.watch(queue, now_us)
        return [(queue_id, sorted(words)) for queue_id, words in found.items() if words]


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


def _words_of(queue: Queue, entries: Sequence[int]) -> list[int]:
    """Return the words of those of rising entries of a block that wait."""
    wanted, first, end = set(entries), entries[0], entries[-1] + 1
    lists = [one for one in (*queue.available_lists, *queue.timer_lists) if one.count]
    words = [word for one in lists for word in unpack_words(words_between(one, first, end))]
    return [word for word in words if word >> 16 in wanted]
