"""The locks of deliveries: volatile, since a start of the broker returns what consumers held.

What suspended links keep over a start is locked anew, for the whole time.

    runs     deliveries of one consumer within a 1,024th of the lock time: one end, 8 bytes a message
    exact    deliveries that are not the first of their message, and renewed locks: an end of their own

Rule 1. A lock begins when its delivery leaves for the link, which writes its frames then. It never ends early. Those of
        a run end together, at most a thousandth of the lock time late.
Rule 2. A timer says where to look. A lock has expired if the consumer still holds the message, in that attempt.
Rule 3. Most messages are settled before. A consumer whose timers are twice as many as what it holds loses those that it
        needs no more, so the memory is bounded by what consumers hold.
"""

from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush
from typing import Final, final

from msgspec import Struct

from ambermq.engine.entries.entry import PLAIN
from ambermq.engine.entries.entry_word import WORD_BYTES, pack_words, unpack_words
from ambermq.engine.loop.schedule import FOREVER_US
from ambermq.engine.model.queue import Queue

__all__ = ["LockTimers"]

_PARTS: Final = 1024
_TICK_US: Final = 4_000
"""Timers end at multiples of this time, so that a broker with many of them wakes up seldom."""
_SPARE: Final = 1024
_KEPT_US: Final = 50_000
"""The time after which a lock is looked at again that has ended and must not expire yet."""

QueueOf = Callable[[int], Queue | None]
"""A function from a consumer to its queue; None if it has ended."""
Keeps = Callable[[int, int], bool]
"""A function that says whether the lock of a consumer on a word must not expire now."""


@final
class _Run(Struct, eq=False):
    consumer: int
    lock_us: int
    closes_us: int
    """The time up to which deliveries join it."""
    words: bytearray


@final
class _Exact(Struct, eq=False):
    consumer: int
    word: int
    attempt: int


@final
class _Held(Struct, eq=False):
    """The timers of one consumer."""

    runs: dict[int, _Run]
    """By number, in order."""
    exact: dict[int, _Exact]
    """By word; a word here is not looked at in `runs`."""
    count: int = 0
    """The words of the runs."""


@final
class LockTimers:
    """The locks of one virtual host. All times are elapsed times in microseconds."""

    __slots__ = ("_heap", "_held", "_item_count", "_number")

    def __init__(self) -> None:
        self._held: dict[int, _Held] = {}
        self._heap: list[tuple[int, int, _Run | _Exact]] = []
        """End, number and item; an item may be needed no more."""
        self._item_count = 0
        """The items that are needed."""
        self._number = 0

    @property
    def next_us(self) -> int:
        """The time of the next timer; FOREVER_US without one."""
        heap = self._heap
        while heap and not self._is_needed(heap[0][1], heap[0][2]):
            heappop(heap)
        return -(-heap[0][0] // _TICK_US) * _TICK_US if heap else FOREVER_US

    @property
    def word_count(self) -> int:
        """The words that timers have."""
        return sum([held.count + len(held.exact) for held in self._held.values()])

    def start(
        self, queue: Queue, consumer: int, words: Sequence[int], attempts: Sequence[int], now_us: int, lock_ms: int
    ) -> None:
        """Begin the locks of deliveries that leave now; `attempts` is empty if they are the first of each message."""
        lock_us = 1000 * lock_ms
        held = self._held.get(consumer)
        if held is None:
            held = self._held[consumer] = _Held({}, {})
        first = words
        if any(attempts) or held.exact:
            known = dict(zip(words, attempts, strict=True)) if attempts else dict.fromkeys(words, 0)
            first = [word for word, attempt in known.items() if not attempt and word not in held.exact]
            for word in known.keys() - set(first):
                self._set(held, _Exact(consumer, word, known[word]), now_us + lock_us)
        if first:
            run = next(reversed(held.runs.values()), None)
            if run is None or run.lock_us != lock_us or now_us > run.closes_us:
                step = -(-lock_us // _PARTS)
                run = _Run(consumer, lock_us, now_us + step, bytearray())
                held.runs[self._push(now_us + lock_us + step, run)] = run
            run.words += pack_words(first)
            held.count += len(first)
        if held.count + len(held.exact) > 2 * queue.held_by(consumer).count + _SPARE:
            self._prune(held, queue, consumer)

    def renew(self, consumer: int, word: int, attempt: int, end_us: int) -> None:
        """Set the end of the lock of a delivery."""
        held = self._held.get(consumer)
        if held is None:
            held = self._held[consumer] = _Held({}, {})
        self._set(held, _Exact(consumer, word, attempt), end_us)

    def succeed(self, consumer: int, successor: int) -> None:
        """Move the timers of a suspended link to the consumer that has resumed it."""
        held = self._held.pop(consumer, None)
        if held is not None:
            for run in held.runs.values():
                run.consumer = successor
            for exact in held.exact.values():
                exact.consumer = successor
            self._held[successor] = held

    def forget(self, consumer: int) -> None:
        """Remove the timers of a consumer that has ended."""
        held = self._held.pop(consumer, None)
        if held is not None:
            self._item_count -= len(held.runs) + len(held.exact)
            self._shorten()

    def clear(self) -> None:
        """Remove all timers."""
        self._held.clear()
        self._heap.clear()
        self._item_count = 0

    def take(self, now_us: int, count_max: int, queue_of: QueueOf, keeps: Keeps) -> list[tuple[int, bytes]]:
        """Return consumers with the packed words of their locks that have expired, of at most `count_max` timers.

        If there are more, the next timer is due still.
        """
        found: dict[int, list[int]] = {}
        while count_max > 0 and self.next_us <= now_us:
            _, number, item = self._heap[0]
            held, queue = self._held[item.consumer], queue_of(item.consumer)
            if type(item) is _Exact:
                heappop(self._heap)
                del held.exact[item.word]
                self._item_count -= 1
                some, attempt = [item.word], item.attempt
            else:
                assert type(item) is _Run
                part = bytes(item.words[: count_max * WORD_BYTES])
                del item.words[: len(part)]
                held.count -= len(part) // WORD_BYTES
                if not item.words:
                    heappop(self._heap)
                    del held.runs[number]
                    self._item_count -= 1
                some, attempt = [word for word in unpack_words(part) if word not in held.exact], 0
                count_max -= len(part) // WORD_BYTES - 1
            count_max -= 1
            for word in () if queue is None else _held_in(queue, item.consumer, some, attempt):
                if keeps(item.consumer, word):
                    self._set(held, _Exact(item.consumer, word, attempt), now_us + _KEPT_US)
                else:
                    found.setdefault(item.consumer, []).append(word)
            if not held.runs and not held.exact:
                del self._held[item.consumer]
        return [(consumer, pack_words(words)) for consumer, words in found.items()]

    def _set(self, held: _Held, item: _Exact, end_us: int) -> None:
        self._item_count -= item.word in held.exact
        held.exact[item.word] = item
        self._push(end_us, item)

    def _push(self, end_us: int, item: _Run | _Exact) -> int:
        self._number += 1
        self._item_count += 1
        heappush(self._heap, (end_us, self._number, item))
        self._shorten()
        return self._number

    def _shorten(self) -> None:
        """Build the heap again if most of its items are needed no more. A new item is needed, but not known yet."""
        if len(self._heap) > 2 * self._item_count + _SPARE:
            newest = self._number
            self._heap = [one for one in self._heap if one[1] == newest or self._is_needed(one[1], one[2])]
            heapify(self._heap)

    def _is_needed(self, number: int, item: _Run | _Exact) -> bool:
        held = self._held.get(item.consumer)
        if held is None:
            return False
        if type(item) is _Exact:
            return held.exact.get(item.word) is item
        return number in held.runs

    def _prune(self, held: _Held, queue: Queue, consumer: int) -> None:
        """Remove the timers of messages that a consumer holds no more."""
        words = set(queue.held_by(consumer))
        before = len(held.runs) + len(held.exact)
        held.exact = {word: item for word, item in held.exact.items() if word in words}
        for number, run in list(held.runs.items()):
            some = [word for word in unpack_words(bytes(run.words)) if word in words and word not in held.exact]
            run.words = bytearray(pack_words(some))
            if not run.words:
                del held.runs[number]
        held.count = sum([len(run.words) // WORD_BYTES for run in held.runs.values()])
        self._item_count += len(held.runs) + len(held.exact) - before


def _held_in(queue: Queue, consumer: int, words: list[int], attempt: int) -> list[int]:
    """Return those words that a consumer holds in an attempt."""
    if not words:
        return []
    entries = queue.entries
    taken, _ = queue.held_by(consumer).remove(pack_words(words))
    return [word for word in unpack_words(taken) if entries.get(word >> 16, PLAIN).attempt == attempt]
