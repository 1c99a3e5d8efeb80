"""The timers of messages that wait for a time: volatile, and built again at a start from what the state has.

    heaps by queue     one number for each message: due time, then entry      DueTimers.add
    heads              the first due time of each heap

Rule 1. Messages of a queue are due in the order of their times; those of one time in the order of entries.
Rule 2. A number costs 48 bytes, and a heap is built in linear time. So a million messages for the next ten years delay
        a start by a fifth of a second.
Rule 3. A message may leave before its time. A heap with more such messages than others is built again.
"""

from collections.abc import Callable, Iterable
from heapq import heapify, heappop, heappush
from typing import Final, final

from ambermq.engine.entries.entry_word import entry_of
from ambermq.engine.loop.schedule import FOREVER_US
from ambermq.engine.model.queue import Queue

__all__ = ["DueTimers"]

_SHIFT: Final = 48
"""The bits of an entry."""
_ENTRY: Final = (1 << _SHIFT) - 1
_TICK_US: Final = 4_000
"""Timers end at multiples of this time, so that a broker with many of them wakes up seldom."""
_SPARE: Final = 1024

Find = Callable[[int], Queue | None]
"""A function from the id of a queue to the queue."""


@final
class DueTimers:
    """The timers of one virtual host. All times are elapsed times in microseconds."""

    __slots__ = ("_heads", "_heaps")

    def __init__(self) -> None:
        self._heaps: dict[int, list[int]] = {}
        """A heap of due times and entries by queue; a message may be gone."""
        self._heads: list[tuple[int, int]] = []
        """A heap of the first due times, each with its queue; it may have others."""

    @property
    def next_us(self) -> int:
        """The time of the next timer; FOREVER_US without one."""
        due_us = self._first_us()
        return due_us if due_us == FOREVER_US else -(-due_us // _TICK_US) * _TICK_US

    def _first_us(self) -> int:
        heads, heaps = self._heads, self._heaps
        while heads:
            due_us, queue = heads[0]
            heap = heaps.get(queue)
            if heap and heap[0] >> _SHIFT == due_us:
                return due_us
            heappop(heads)
        return FOREVER_US

    def start(self, queue: Queue) -> None:
        """Set the timers of a queue that was recovered."""
        heap = _heap_of(queue)
        if heap:
            self._heaps[queue.id] = heap
            heappush(self._heads, (heap[0] >> _SHIFT, queue.id))

    def add(self, queue: Queue, entries: Iterable[int], due_us: int) -> None:
        """Add messages of a queue with one due time; the queue has them already."""
        heap = self._heaps.setdefault(queue.id, [])
        before = heap[0] if heap else FOREVER_US << _SHIFT
        for entry in entries:
            heappush(heap, due_us << _SHIFT | entry)
        if len(heap) > 2 * queue.timer_count + _SPARE:
            heap = self._heaps[queue.id] = _heap_of(queue)
        if heap and heap[0] != before:
            self._note_head(queue.id, heap)

    def _note_head(self, queue: int, heap: list[int]) -> None:
        heappush(self._heads, (heap[0] >> _SHIFT, queue))
        if len(self._heads) > 2 * len(self._heaps) + _SPARE:
            self._heads = [(one[0] >> _SHIFT, queue) for queue, one in self._heaps.items() if one]
            heapify(self._heads)

    def take(self, now_us: int, count_max: int, find: Find) -> list[tuple[int, list[int]]]:
        """Return queues with the words that are due, at most `count_max`, and forget their timers.

        If there are more, the next timer is due still.
        """
        found: list[tuple[int, list[int]]] = []
        while count_max > 0 and self._first_us() <= now_us:
            queue_id = self._heads[0][1]
            queue, heap = find(queue_id), self._heaps[queue_id]
            words: list[int] = []
            while queue is not None and heap and count_max > 0 and heap[0] >> _SHIFT <= now_us:
                number = heappop(heap)
                count_max -= 1
                word = _word_of(queue, number & _ENTRY, number >> _SHIFT)
                if word:
                    words.append(word)
            if queue is None or not heap:
                del self._heaps[queue_id]
            else:
                self._note_head(queue_id, heap)
            if words:
                found.append((queue_id, words))
        return found


def _heap_of(queue: Queue) -> list[int]:
    heap = [due_us << _SHIFT | entry for entry, due_us in queue.dues.items()]
    if queue.delayed.count:
        heap += [entry.due_us << _SHIFT | offset for offset, entry in queue.entries.items() if entry.due_us]
    heapify(heap)
    return heap


def _word_of(queue: Queue, entry: int, due_us: int) -> int:
    """Return the word of a message that is due at a time; 0 if it does not wait for that."""
    if queue.due_us_of(entry) != due_us:
        return 0
    for words in queue.timer_lists:
        word = int.from_bytes(words.run_above((entry << 16) - 1)[:8], "little")
        if word and entry_of(word) == entry:
            return word
    return 0
