"""The timers of messages that wait for a time: volatile, and built again at a start from what the state has.

    near     one number for each message of the next seconds: due time, then entry
    far      one number for each block of entries with later ones: that of its first message
    heads    the first due time of each queue

Rule 1. Messages of a queue are due in the order of their times; those of one time in the order of entries.
Rule 2. The times of scheduled messages are in a column of the queue, in blocks of up to 512 entries. A block is looked
        at when its first message is due, and then its messages of the next seconds get numbers of their own. So a
        million messages for the next ten years have 2,000 numbers, and delay a start by a twentieth of a second.
Rule 3. A message may leave before its time. If most numbers are of such messages, the queue's are built again.
"""

from collections.abc import Callable, Iterable, Sequence
from heapq import heapify, heappop, heappush
from typing import Final, final

from ambermq.engine.entries.entry_word import entry_of, unpack_words
from ambermq.engine.loop.schedule import FOREVER_US
from ambermq.engine.model.queue import Queue
from ambermq.snapshot.persistent_column import block_number

__all__ = ["DueTimers"]

_SHIFT: Final = 48
"""The bits of an entry."""
_ENTRY: Final = (1 << _SHIFT) - 1
_TICK_US: Final = 4_000
"""Timers end at multiples of this time, so that a broker with many of them wakes up seldom."""
_NEAR_US: Final = 1 << 24
"""The least time for which a block gives its messages numbers: 17 seconds. It is twice that at most."""
_SPREAD: Final = 0x9E3779B1
"""Neighbouring blocks are looked at again at different times."""
_SPARE: Final = 1024

Find = Callable[[int], Queue | None]
"""A function from the id of a queue to the queue."""


@final
class DueTimers:
    """The timers of one virtual host. All times are elapsed times in microseconds."""

    __slots__ = ("_heads", "_queues")

    def __init__(self) -> None:
        self._queues: dict[int, _QueueTimers] = {}
        self._heads: list[tuple[int, int]] = []
        """A heap of the first due times, each with its queue; it may have others."""

    @property
    def next_us(self) -> int:
        """The time of the next timer; FOREVER_US without one."""
        due_us = self._first_us()
        return due_us if due_us == FOREVER_US else -(-due_us // _TICK_US) * _TICK_US

    def _first_us(self) -> int:
        heads, queues = self._heads, self._queues
        while heads:
            due_us, queue = heads[0]
            timers = queues.get(queue)
            if timers is not None and timers.first >> _SHIFT == due_us:
                return due_us
            heappop(heads)
        return FOREVER_US

    def start(self, queue: Queue) -> None:
        """Set the timers of a queue that was recovered."""
        timers = self._queues[queue.id] = _QueueTimers(queue)
        self._note_head(queue.id, timers)

    def delay(self, queue: Queue, entries: Iterable[int], due_us: int) -> None:
        """Add messages of a queue with one due time whose redelivery is delayed; the queue has them already."""
        timers = self._of(queue)
        before = timers.first
        for entry in entries:
            heappush(timers.near, due_us << _SHIFT | entry)
        self._added(queue, timers, before)

    def schedule(self, queue: Queue, entries: Iterable[int], dues: Iterable[int]) -> None:
        """Add scheduled messages of a queue, which has them already."""
        timers = self._of(queue)
        before = timers.first
        timers.schedule(entries, dues)
        self._added(queue, timers, before)

    def _of(self, queue: Queue) -> "_QueueTimers":
        timers = self._queues.get(queue.id)
        if timers is None:
            timers = self._queues[queue.id] = _QueueTimers()
        return timers

    def _added(self, queue: Queue, timers: "_QueueTimers", before: int) -> None:
        if timers.length > 2 * queue.timer_count + _SPARE:
            timers = self._queues[queue.id] = _QueueTimers(queue)
        if timers.first != before:
            self._note_head(queue.id, timers)

    def _note_head(self, queue: int, timers: "_QueueTimers") -> None:
        heappush(self._heads, (timers.first >> _SHIFT, queue))
        if len(self._heads) > 2 * len(self._queues) + _SPARE:
            self._heads = [(one.first >> _SHIFT, queue) for queue, one in self._queues.items()]
            heapify(self._heads)

    def take(self, now_us: int, count_max: int, find: Find) -> list[tuple[int, list[int]]]:
        """Return queues with the words that are due, at most `count_max`, and forget their timers.

        If there are more, the next timer is due still.
        """
        found: list[tuple[int, list[int]]] = []
        while count_max > 0 and self._first_us() <= now_us:
            queue_id = self._heads[0][1]
            queue, timers = find(queue_id), self._queues[queue_id]
            numbers = [] if queue is None else timers.take(queue, now_us, count_max)
            count_max -= len(numbers)
            if queue is None or timers.first == _NEVER:
                del self._queues[queue_id]
            else:
                self._note_head(queue_id, timers)
            words = [] if queue is None else _words_of(queue, numbers)
            if words:
                found.append((queue_id, words))
        return found


@final
class _QueueTimers:
    """The timers of one queue: due times and entries as numbers of one kind."""

    __slots__ = ("_far", "_firsts", "_until_us", "near")

    def __init__(self, queue: Queue | None = None) -> None:
        """Begin with the messages of a queue, or without any."""
        self.near: list[int] = []
        """A heap; a message may be gone, or be twice in it."""
        self._firsts: dict[int, int] = {}
        """The first message of a block that is not near, by block."""
        self._until_us: dict[int, int] = {}
        """The time up to which the messages of such a block are near, if some are."""
        if queue is not None:
            blocks = map(_first_of, queue.dues.blocks())
            self._firsts = {block_number(number & _ENTRY): number for number in blocks}
            if queue.delayed.count:
                entries = queue.entries.items()
                self.near = [entry.due_us << _SHIFT | offset for offset, entry in entries if entry.due_us]
                heapify(self.near)
        self._far = [*self._firsts.values()]
        """A heap of the first messages of blocks; it may have others."""
        heapify(self._far)

    @property
    def length(self) -> int:
        """The numbers that it has, with those of messages that are gone."""
        return len(self.near) + len(self._firsts)

    @property
    def first(self) -> int:
        """The number of the first message; _NEVER without one."""
        far, firsts = self._far, self._firsts
        while far and firsts.get(block_number(far[0] & _ENTRY)) != far[0]:
            heappop(far)
        return min(self.near[0] if self.near else _NEVER, far[0] if far else _NEVER)

    def schedule(self, entries: Iterable[int], dues: Iterable[int]) -> None:
        """Add scheduled messages."""
        firsts, until_us = self._firsts, self._until_us
        for entry, due_us in zip(entries, dues, strict=True):
            block, number = block_number(entry), due_us << _SHIFT | entry
            if due_us < until_us.get(block, 0):
                heappush(self.near, number)
            elif number < firsts.get(block, _NEVER):
                firsts[block] = number
                heappush(self._far, number)
        if len(self._far) > 2 * len(firsts) + _SPARE:
            self._far = [*firsts.values()]
            heapify(self._far)

    def take(self, queue: Queue, now_us: int, count_max: int) -> list[int]:
        """Return the numbers of messages that are due, at most `count_max`, and forget them."""
        near, last = self.near, (now_us + 1) << _SHIFT
        numbers: list[int] = []
        while len(numbers) < count_max and (first := self.first) < last:
            if not near or near[0] != first:
                self._look(queue, first)
                continue
            heappop(near)
            if not numbers or numbers[-1] != first:
                numbers.append(first)
        return numbers

    def _look(self, queue: Queue, first: int) -> None:
        """Replace the number of a block by numbers of its messages, from its first one on.

        Those before it, also of the same time, had their numbers already: they may be taken by now.
        """
        heappop(self._far)
        block, from_us = block_number(first & _ENTRY), first >> _SHIFT
        until_us = from_us + _NEAR_US + block * _SPREAD % _NEAR_US
        keys, values = map(unpack_words, queue.dues.block_of(first & _ENTRY))
        next_us = FOREVER_US
        for entry, due_us in zip(keys, values, strict=True):
            number = due_us << _SHIFT | entry
            if first <= number and due_us < until_us:
                heappush(self.near, number)
            elif until_us <= due_us < next_us:
                next_us = due_us
        if next_us == FOREVER_US:
            self._firsts.pop(block, None)
            self._until_us.pop(block, None)
            return
        number = next_us << _SHIFT | keys[values.index(next_us)]
        self._firsts[block], self._until_us[block] = number, until_us
        heappush(self._far, number)


_NEVER: Final = FOREVER_US << _SHIFT


def _first_of(block: tuple[bytes, bytes]) -> int:
    """Return the number of the first message of a block."""
    keys, values = memoryview(block[0]).cast("Q"), unpack_words(block[1])
    due_us = min(values)
    return due_us << _SHIFT | keys[values.index(due_us)]


def _words_of(queue: Queue, numbers: Sequence[int]) -> list[int]:
    """Return the words of those messages that still wait for these times."""
    words = [_word_of(queue, number & _ENTRY, number >> _SHIFT) for number in numbers]
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
