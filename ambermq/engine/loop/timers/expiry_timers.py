"""The timers of messages that expire: volatile, and built again at a start from what the state has.

    own times to live     the first expiry of each block of entries (block_timers.py)     ExpiryTimers.add
    those of queues       the next expiry of each queue's runs                             ExpiryTimers.watch

Rule 1. A timer says where to look. What has expired is what the queue says at that moment.
Rule 2. Most messages leave before they expire. Timers of such messages are dropped when they are the most: the memory
        is bounded by the messages that wait.
"""

from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from operator import attrgetter
from typing import Final, NamedTuple, final

from ambermq.engine.entries.entry_word import WORD_BYTES, unpack_words
from ambermq.engine.entries.expiry_runs import expired_ranges, next_expiry
from ambermq.engine.loop.timers.block_timers import ENTRY, BlockTimers
from ambermq.engine.loop.timers.timer_heads import TimerHeads
from ambermq.engine.model.queue import Queue
from ambermq.engine.model.queue_parts.word_ranges import words_between
from ambermq.snapshot.persistent_column import EMPTY_COLUMN

__all__ = ["ExpiryTimers", "expired_words"]

_TICK_US: Final = 8_000
"""Timers end at multiples of this time, so that a broker with many of them wakes up seldom."""
_RANGE_COST: Final = 7
"""The messages of one range that take the time of a range: where all expiries differ, a tick takes fewer of them."""

Find = Callable[[int], Queue | None]
"""A function from the id of a queue to the queue."""


class _Range(NamedTuple):
    first: int
    end: int


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
            # A range of one message is the dearest: its cost bounds the numbers that are taken.
            taken = self._own.take(now_us, max(1, count_max // (1 + _RANGE_COST)), find)
            if taken is not None:
                queue, numbers, spent = taken
                ranges = _ranges_of(numbers)
                count_max -= spent + _RANGE_COST * len(ranges)
                if queue is not None:
                    words = [word for one in ranges for word in _words_of(queue, one, now_us)]
                    found.setdefault(queue.id, set()).update(words)
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


def _ranges_of(numbers: Sequence[int]) -> list[_Range]:
    """Return the entries of numbers as ranges, in rising order."""
    ranges: list[_Range] = []
    first = end = 0
    for entry in sorted([number & ENTRY for number in numbers]):
        if entry != end:
            ranges.append(_Range(first, end))
            first = entry
        end = entry + 1
    ranges.append(_Range(first, end))
    return [one for one in ranges if one.end]


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


def _words_of(queue: Queue, wanted: _Range, now_us: int) -> list[int]:
    """Return the words of a range that wait and have expired."""
    lists = [one for one in (*queue.available_lists, *queue.timer_lists) if one.count]
    words = [word for one in lists for word in unpack_words(words_between(one, wanted.first, wanted.end))]
    return [word for word in words if 0 < queue.expiry_of(word) <= now_us]
