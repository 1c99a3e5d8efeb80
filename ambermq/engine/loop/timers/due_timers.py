"""The timers of messages that wait for a time: volatile, and built again at a start from what the state has.

Rule 1. Messages of a queue are due in the order of their times; those of one time in the order of entries.
Rule 2. The times of scheduled messages are in a column of the queue (block_timers.py). Delayed ones, whose times are in
        their columns, have numbers of their own.
Rule 3. A message may leave before its time. If most numbers are of such messages, the queue's are built again.
"""

from collections.abc import Callable, Iterable, Sequence
from heapq import heappush
from operator import attrgetter
from typing import Final, final

from ambermq.engine.entries.entry_word import entry_of
from ambermq.engine.loop.timers.block_timers import ENTRY, SHIFT, SPARE, BlockTimers
from ambermq.engine.loop.timers.timer_heads import TimerHeads
from ambermq.engine.model.queue import Queue
from ambermq.snapshot.persistent_column import EMPTY_COLUMN, PersistentColumn

__all__ = ["DueTimers"]

_TICK_US: Final = 4_000
"""Timers end at multiples of this time, so that a broker with many of them wakes up seldom."""

Find = Callable[[int], Queue | None]
"""A function from the id of a queue to the queue."""


@final
class DueTimers:
    """The timers of one virtual host. All times are elapsed times in microseconds."""

    __slots__ = ("_heads",)

    def __init__(self) -> None:
        self._heads = TimerHeads(attrgetter("dues"))

    @property
    def next_us(self) -> int:
        """The time of the next timer; FOREVER_US without one."""
        return self._heads.next_us(_TICK_US)

    def start(self, queue: Queue) -> None:
        """Set the timers of a queue that was recovered."""
        self._heads.set(queue.id, _timers_of(queue))

    def delay(self, queue: Queue, entries: Iterable[int], due_us: int) -> None:
        """Add messages of a queue with one due time whose redelivery is delayed; the queue has them already."""
        timers = self._of(queue)
        before = timers.first
        for entry in entries:
            heappush(timers.near, due_us << SHIFT | entry)
        self._added(queue, timers, before)

    def schedule(self, queue: Queue, entries: Iterable[int], dues: Iterable[int]) -> None:
        """Add scheduled messages of a queue, which has them already."""
        timers = self._of(queue)
        before = timers.first
        timers.add(entries, dues)
        self._added(queue, timers, before)

    def _of(self, queue: Queue) -> BlockTimers:
        timers = self._heads.queues.get(queue.id)
        if timers is None:
            timers = self._heads.queues[queue.id] = BlockTimers(EMPTY_COLUMN)
        return timers

    def _added(self, queue: Queue, timers: BlockTimers, before: int) -> None:
        if timers.length > 2 * queue.timer_count + SPARE:
            timers = self._heads.queues[queue.id] = _timers_of(queue)
        if timers.first != before:
            self._heads.note(queue.id, timers)

    def forget(self, queue: int) -> None:
        """Forget the timers of a queue that is gone."""
        self._heads.forget(queue)

    def take(self, now_us: int, count_max: int, find: Find) -> list[tuple[int, list[int]]]:
        """Return queues with the words that are due, at most `count_max`, and forget their timers.

        If there are more, the next timer is due still.
        """
        found: list[tuple[int, list[int]]] = []
        left = count_max

        def take(_queue: int, timers: BlockTimers, dues: PersistentColumn) -> tuple[list[int], int]:
            return timers.take(dues, now_us, left)

        while left > 0 and (taken := self._heads.take(now_us, find, take)) is not None:
            queue, numbers, spent = taken
            left -= spent
            words = [] if queue is None else _words_of(queue, numbers)
            if queue is not None and words:
                found.append((queue.id, words))
        return found


def _timers_of(queue: Queue) -> BlockTimers:
    """Return the timers of what a queue has."""
    if not queue.delayed.count:
        return BlockTimers(queue.dues)
    entries = queue.entries.items()
    return BlockTimers(queue.dues, [entry.due_us << SHIFT | offset for offset, entry in entries if entry.due_us])


def _words_of(queue: Queue, numbers: Sequence[int]) -> list[int]:
    """Return the words of those messages that still wait for these times."""
    words = [_word_of(queue, number & ENTRY, number >> SHIFT) for number in numbers]
    return [word for word in words if word]


def _word_of(queue: Queue, entry: int, due_us: int) -> int:
    """Return the word of a message that is due at a time; 0 if it does not wait for that."""
    if queue.due_us_of(entry) != due_us:
        return 0
    for words in queue.timer_lists:
        word = int.from_bytes(words.run_above((entry << 16) - 1)[:8], "little")
        if word and entry_of(word) == entry:
            return word
    return 0
