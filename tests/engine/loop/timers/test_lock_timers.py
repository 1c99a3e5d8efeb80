"""Timers of locks: none ends early, and their memory is bounded by what consumers hold."""

import sys
import tracemalloc

from ambermq.engine.entries.entry_word import make_words, pack_words, unpack_words
from ambermq.engine.entries.outcome import ACCEPTED
from ambermq.engine.loop.schedule import FOREVER_US
from ambermq.engine.loop.timers.lock_timers import LockTimers
from ambermq.engine.model.queue import Queue, new_queue
from ambermq.engine.settings.queue_settings import Settings

LOCK_MS = 30_000
CONSUMER = 7


def holding(first: int, count: int, queue: Queue | None = None) -> Queue:
    """Return a queue whose consumer holds messages."""
    words = make_words(first, [100] * count)
    queue = queue or new_queue(1, "q", Settings(lock_ms=LOCK_MS))
    return queue.push(words, 100 * count, 0).acquire((CONSUMER,), words)


def never(_consumer: int, _word: int) -> bool:
    """Return whether a lock must not expire."""
    return False


def test_deliveries_of_a_short_time_end_together() -> None:
    """None early, and none more than a thousandth late."""
    timers, queue = LockTimers(), holding(1, 200)
    words = list(queue.held_by(CONSUMER))
    for index, word in enumerate(words):
        timers.start(queue, CONSUMER, [word], [], 10_000 * index, LOCK_MS)
    ends = dict[int, int]()
    now_us = 0
    while timers.next_us < FOREVER_US:
        now_us = timers.next_us
        for _, some in timers.take(now_us, 1000, lambda _one: queue, never):
            ends.update(dict.fromkeys(unpack_words(some), now_us))
    assert list(ends) == words
    late = [ends[word] - 10_000 * index - 1000 * LOCK_MS for index, word in enumerate(words)]
    assert min(late) >= 0
    assert max(late) < 2 * LOCK_MS + 4000
    assert timers.word_count == 0


def test_a_part_is_taken() -> None:
    """The rest is due still."""
    timers, queue = LockTimers(), holding(1, 10)
    timers.start(queue, CONSUMER, list(queue.held_by(CONSUMER)), [], 0, 1)
    found = [timers.take(10_000, 4, lambda _one: queue, never) for _ in range(4)]
    assert [sum(len(words) // 8 for _, words in one) for one in found] == [4, 4, 2, 0]
    assert timers.next_us == FOREVER_US


def test_what_must_not_expire_is_looked_at_again() -> None:
    """And what the consumer holds no more is not found."""
    timers, queue = LockTimers(), holding(1, 3)
    first, second, third = queue.held_by(CONSUMER)
    timers.start(queue, CONSUMER, [first, second, third], [], 0, 1)
    queue = queue.settle(CONSUMER, pack_words([third]), ACCEPTED)
    assert timers.take(4_000, 9, lambda _one: queue, lambda _one, word: word == first) == [
        (CONSUMER, pack_words([second]))
    ]
    assert timers.take(4_000, 9, lambda _one: queue, never) == []
    assert timers.take(60_000, 9, lambda _one: queue, never) == [(CONSUMER, pack_words([first]))]


def test_a_lost_consumer_leaves_nothing() -> None:
    """Nor does one whose end the timers were not told of."""
    timers, queue = LockTimers(), holding(1, 3)
    first, *rest = queue.held_by(CONSUMER)
    timers.start(queue, CONSUMER, [first, *rest], [], 0, 1)
    timers.renew(CONSUMER, first, 0, 99)
    timers.forget(CONSUMER)
    assert (timers.next_us, timers.word_count) == (FOREVER_US, 0)
    timers.start(queue, CONSUMER, rest, [], 0, 1)
    assert timers.take(4_000, 9, lambda _one: None, never) == []
    assert timers.next_us == FOREVER_US


def test_settled_messages_are_forgotten() -> None:
    """A consumer that settles everything has few timers, however long the locks are and however often it renews."""
    timers, queue = LockTimers(), holding(0, 0)
    for turn in range(200):
        queue = holding(1 + 100 * turn, 100, queue)
        words = list(queue.held_by(CONSUMER))
        timers.start(queue, CONSUMER, words, [], turn, 1000 * LOCK_MS)
        for _ in range(20):
            timers.renew(CONSUMER, words[0], 0, 10**9)
        queue = queue.settle(CONSUMER, pack_words(words), ACCEPTED)
    assert timers.word_count < 2000
    assert len(timers._heap) < 4000


def test_a_million_locks_take_little_memory() -> None:
    """About 8 bytes each, and a run for each 1,024th of the lock time."""
    words = list(unpack_words(make_words(1, [100] * 1_000_000)))
    queue = new_queue(1, "q", Settings(lock_ms=LOCK_MS)).push(make_words(1, [100] * 1_000_000), 1, 0)
    queue = queue.acquire((CONSUMER,), make_words(1, [100] * 1_000_000))
    timers = LockTimers()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for start in range(0, 1_000_000, 1000):
            timers.start(queue, CONSUMER, words[start : start + 1000], [], 25 * start, LOCK_MS)
        used = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert used < 12_000_000, f"{used} bytes of {sys.getsizeof(words)}"
    timers.take(10**9, 1_000_000, lambda _one: queue, never)
    assert timers.word_count == 0
