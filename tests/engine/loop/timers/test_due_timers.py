"""The timers of messages that wait for a time: in order, bounded, and quick to build."""

import time

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ambermq.engine.entries.entry import Entry
from ambermq.engine.entries.entry_word import entry_of, pack_words
from ambermq.engine.loop.schedule import FOREVER_US
from ambermq.engine.loop.timers.due_timers import DueTimers
from ambermq.engine.model.queue import Queue, new_queue
from ambermq.engine.settings.queue_settings import Settings
from ambermq.snapshot.persistent_map import PersistentMap
from ambermq.snapshot.persistent_queue import EMPTY_QUEUE


def queue_of(times: dict[int, int], queue_id: int = 1) -> Queue:
    """Return a queue whose delayed entries have these due times."""
    entries = PersistentMap({entry: Entry(count=1, due_us=due_us) for entry, due_us in times.items()})
    words = pack_words([entry << 16 | 1 for entry in sorted(times)])
    return replace(new_queue(queue_id, "q", Settings()), delayed=EMPTY_QUEUE.push(words), entries=entries)


@given(times=st.dictionaries(st.integers(1, 1 << 40), st.integers(1, 10**15), max_size=30), is_start=st.booleans())
def test_messages_are_due_in_the_order_of_their_times(times: dict[int, int], *, is_start: bool) -> None:
    """Then of entries; none before its time, a limited number at a time, and none twice."""
    timers, queue = DueTimers(), queue_of(times)
    if is_start:
        timers.start(queue)
    else:
        for entry, due_us in times.items():
            timers.add(queue, [entry], due_us)
    expected = sorted((due_us, entry) for entry, due_us in times.items())
    found: list[int] = []
    while timers.next_us < FOREVER_US:
        now_us = timers.next_us
        assert 0 <= now_us - expected[len(found)][0] < 4_000
        for queue_id, words in timers.take(now_us, 3, lambda _: queue):
            assert (queue_id, len(words) <= 3) == (1, True)
            assert all(times[entry_of(word)] <= now_us for word in words)
            found += map(entry_of, words)
    assert found == [entry for _, entry in expected]


def test_what_has_gone_is_not_due() -> None:
    """A message that left, one with another time now, and a queue that was deleted."""
    timers, queue = DueTimers(), queue_of({1: 10, 2: 20, 3: 30})
    timers.start(queue)
    other = queue_of({2: 25, 3: 30})
    assert timers.take(100, 10, lambda _: other) == [(1, [3 << 16 | 1])]
    timers.start(queue)
    assert timers.take(100, 10, lambda _: None) == []
    assert timers.next_us == FOREVER_US


def test_timers_of_messages_that_have_gone_take_no_memory() -> None:
    """However long their time would be, and however often they have one."""
    timers = DueTimers()
    for number in range(20_000):
        timers.add(queue_of({number: 10**15 - number}), [number], 10**15 - number)
    assert len(timers._heaps[1]) < 2000
    assert len(timers._heads) < 2000


def test_a_million_timers_are_built_at_once() -> None:
    """For the next ten years, in less than a second on a slow machine."""
    step_us = 10 * 365 * 86_400_000_000 // 1_000_000
    queue = queue_of({entry: entry * 7919 % 1_000_000 * step_us + 1 for entry in range(1, 1_000_001)})
    timers = DueTimers()
    began = time.process_time()
    timers.start(queue)
    assert time.process_time() - began < 3
    assert timers.next_us < step_us
