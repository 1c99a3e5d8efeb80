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
from ambermq.snapshot.persistent_column import EMPTY_COLUMN
from ambermq.snapshot.persistent_map import PersistentMap
from ambermq.snapshot.persistent_queue import EMPTY_QUEUE


def queue_of(times: dict[int, int], queue_id: int = 1) -> Queue:
    """Return a queue whose delayed entries have these due times."""
    entries = PersistentMap({entry: Entry(count=1, due_us=due_us) for entry, due_us in times.items()})
    words = pack_words([entry << 16 | 1 for entry in sorted(times)])
    return replace(new_queue(queue_id, "q", Settings()), delayed=EMPTY_QUEUE.push(words), entries=entries)


def scheduled_queue(times: dict[int, int], queue_id: int = 1) -> Queue:
    """Return a queue whose scheduled entries have these due times."""
    entries = sorted(times)
    words = pack_words([entry << 16 | 1 for entry in entries])
    dues = EMPTY_COLUMN.with_values(entries, [times[entry] for entry in entries])
    return replace(new_queue(queue_id, "q", Settings()), scheduled=EMPTY_QUEUE.push(words), dues=dues)


def without(queue: Queue, words: list[int]) -> Queue:
    """Return a queue after it has delivered scheduled messages."""
    return queue.without(pack_words(sorted(words)), "")[1]


_DUES = st.integers(1, 10**15) | st.integers(1, 200).map(lambda second: second * 1_000_000) | st.integers(1, 10**8)
"""Years, seconds that several messages share, and within the time for which a block is looked at."""
_TIMES = st.dictionaries(st.integers(1, 1 << 40) | st.integers(1, 1500), _DUES, max_size=40)


@given(times=_TIMES, is_start=st.booleans())
def test_messages_are_due_in_the_order_of_their_times(times: dict[int, int], *, is_start: bool) -> None:
    """Then of entries; none before its time, a limited number at a time, and none twice."""
    timers, queue = DueTimers(), queue_of(times)
    if is_start:
        timers.start(queue)
    else:
        for entry, due_us in times.items():
            timers.delay(queue, [entry], due_us)
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


@given(
    times=_TIMES,
    later=st.lists(st.tuples(_DUES, st.integers(1, 3)), max_size=30),
    is_start=st.booleans(),
    step_us=st.sampled_from((0, 10**6, 10**8)),
)
def test_scheduled_messages_are_due_in_the_order_of_their_times(
    times: dict[int, int], later: list[tuple[int, int]], step_us: int, *, is_start: bool
) -> None:
    """Also with messages that are scheduled between those that come to their time."""
    timers, queue, known = DueTimers(), scheduled_queue(times), dict(times)
    if is_start:
        timers.start(queue)
    else:
        timers.schedule(queue, times.keys(), times.values())
    now_us, entry, found = 0, max(times, default=0), list[tuple[int, int]]()
    while later or timers.next_us < FOREVER_US:
        if later:
            after_us, gap = later.pop()
            entry, due_us = entry + gap, now_us + after_us
            known[entry] = due_us
            queue = replace(
                queue,
                scheduled=queue.scheduled.push(pack_words([entry << 16 | 1])),
                dues=queue.dues.with_value([entry], due_us),
            )
            timers.schedule(queue, [entry], [due_us])
        now_us = max(now_us, min(timers.next_us, now_us + step_us) if later else timers.next_us)
        due = sorted((due_us, one) for one, due_us in known.items() if due_us <= now_us)
        for _, words in timers.take(now_us, 3, {1: queue}.get):
            taken = [(known.pop(entry_of(word)), entry_of(word)) for word in words]
            assert taken == due[: len(taken)]
            found += taken
            queue = without(queue, words)
        assert timers.next_us <= -(-min(known.values(), default=FOREVER_US) // 4_000) * 4_000
    assert not known
    assert not queue.scheduled


def test_what_has_gone_is_not_due() -> None:
    """A message that left, one with another time now, and a queue that was deleted."""
    timers, queue = DueTimers(), queue_of({1: 10, 2: 20, 3: 30})
    timers.start(queue)
    other = queue_of({2: 25, 3: 30})
    assert timers.take(100, 10, lambda _: other) == [(1, [3 << 16 | 1])]
    timers.start(queue)
    assert timers.take(100, 10, lambda _: None) == []
    assert timers.next_us == FOREVER_US


def test_a_block_that_is_looked_at_again_gives_no_message_twice() -> None:
    """Its messages had numbers already when one of the same time joined them."""
    times = {100: 1_000_000, 131: 10_000_000, 132: 10_000_000}
    timers, queue = DueTimers(), scheduled_queue(times)
    timers.schedule(queue, times, times.values())
    assert timers.take(1_000_000, 10, lambda _: queue) == [(1, [100 << 16 | 1])]
    later = {131: 10_000_000, 132: 10_000_000, 144: 10_000_000}
    queue = scheduled_queue(later)
    timers.schedule(queue, [144], [10_000_000])
    assert timers.take(10_000_000, 10, lambda _: queue) == [(1, [entry << 16 | 1 for entry in later])]


def test_timers_of_messages_that_have_gone_take_no_memory() -> None:
    """However long their time would be, and however often they have one."""
    timers = DueTimers()
    for number in range(20_000):
        timers.delay(queue_of({number: 10**15 - number}), [number], 10**15 - number)
    assert timers._heads.queues[1].length < 2000
    assert len(timers._heads._heads) < 2000


def test_timers_of_cancelled_messages_take_no_memory() -> None:
    """One message at a time is scheduled, and cancelled before its time."""
    timers = DueTimers()
    for number in range(20_000):
        entry, due_us = number * 600, 10**15 - number
        timers.schedule(scheduled_queue({entry: due_us}), [entry], [due_us])
    assert timers._heads.queues[1].length < 2000
    assert len(timers._heads.queues[1]._far) < 3500
    assert len(timers._heads.queues[1]._until_us) < 2000


def test_a_million_timers_are_built_at_once() -> None:
    """For the next ten years, with a number for each block alone."""
    step_us = 10 * 365 * 86_400_000_000 // 1_000_000
    queue = scheduled_queue({entry: entry * 7919 % 1_000_000 * step_us + 1 for entry in range(1, 1_000_001)})
    timers = DueTimers()
    began = time.process_time()
    timers.start(queue)
    assert time.process_time() - began < 3
    assert timers.next_us < step_us
    assert timers._heads.queues[1].length < 2000
