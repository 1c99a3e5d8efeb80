"""The timers of messages that expire by their own time to live: none early, none lost, and bounded in a step."""

from unittest import mock

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ambermq.engine.commands import DeclareQueue, DeleteQueue, DetachProducer, Publish, ResetHost
from ambermq.engine.entries.entry_word import entry_of, pack_words
from ambermq.engine.loop.schedule import FOREVER_US
from ambermq.engine.loop.timers.block_timers import SHIFT, SPARE, BlockTimers
from ambermq.engine.loop.timers.expiry_timers import ExpiryTimers
from ambermq.engine.model.queue import Queue, new_queue
from ambermq.engine.settings.queue_settings import Settings
from ambermq.snapshot.persistent_column import EMPTY_COLUMN
from tests.engine.rig import Rig

_TICK_US = 8_000


def queue_of(times: dict[int, int]) -> Queue:
    """Return a queue whose entries expire at these times."""
    return arrived(new_queue(1, "q", Settings()), times)


def arrived(queue: Queue, times: dict[int, int]) -> Queue:
    """Return a queue with more entries that expire at these times."""
    entries = sorted(times)
    ready = queue.ready.push(pack_words([entry << 16 | 1 for entry in entries]))
    return replace(queue, ready=ready, expiries=queue.expiries.with_values(entries, [times[one] for one in entries]))


def without(queue: Queue, words: list[int]) -> Queue:
    """Return a queue after words have left it."""
    return queue.without(pack_words(sorted(words)), "")[1]


_TTLS = st.integers(1, 10**15) | st.integers(1, 40).map(lambda second: second * 1_000_000) | st.integers(1, 10**7)
_RUNS = st.lists(st.tuples(st.integers(1, 700), st.lists(_TTLS, min_size=1, max_size=6)), max_size=12)


@given(runs=_RUNS, is_start=st.booleans(), step_us=st.sampled_from((0, 10**6, 10**8)), leaves=st.booleans())
def test_what_has_expired_is_taken_and_nothing_else(
    runs: list[tuple[int, list[int]]], step_us: int, *, is_start: bool, leaves: bool
) -> None:
    """Also with runs that come meanwhile, messages that leave before, and after a start."""
    timers, queue, known = ExpiryTimers(), queue_of({}), dict[int, int]()
    now_us, entry = 0, 0
    runs = [*runs]
    while runs or timers.next_us < FOREVER_US:
        if runs:
            gap, ttls_us = runs.pop()
            entry += gap
            times = {entry + index: now_us + ttl_us for index, ttl_us in enumerate(ttls_us)}
            entry += len(ttls_us) - 1
            queue, known = arrived(queue, times), known | times
            if is_start:
                timers = ExpiryTimers()
                timers.start(queue)
            else:
                timers.add(queue, min(times), [*times.values()])
            if leaves:
                queue = without(queue, [entry << 16 | 1])
                known.pop(entry)
        now_us = max(now_us, min(timers.next_us, now_us + step_us) if runs else timers.next_us)
        for _, words in timers.take(now_us, 8, {1: queue}.get):
            assert all(known.pop(entry_of(word)) <= now_us for word in words)
            queue = without(queue, words)
        earliest = min(known.values(), default=FOREVER_US)
        assert timers.next_us <= -(-earliest // _TICK_US) * _TICK_US
    assert not known
    assert not queue.ready


def test_a_step_looks_at_few_blocks() -> None:
    """Where the first messages of very many blocks expire at once, the next steps look at the others."""
    times = {block * 512 + index: 1000 + index * 10**12 for block in range(1, 200) for index in range(40)}
    timers, queue, looks = ExpiryTimers(), queue_of(times), 0
    timers.start(queue)
    found = []
    while timers.next_us <= _TICK_US:
        with mock.patch.object(BlockTimers, "_look", autospec=True, side_effect=BlockTimers._look) as look:
            found += [words for _, words in timers.take(_TICK_US, 100, {1: queue}.get)]
        assert look.call_count <= 7
        looks += look.call_count
    assert looks == 199
    assert sum(map(len, found)) == 199


def test_what_consumers_hold_keeps_no_step_busy() -> None:
    """Expired messages that are held lead nowhere; those behind them in their block expire."""
    timers, queue = ExpiryTimers(), queue_of(dict.fromkeys(range(1, 100), 1000))
    timers.start(queue)
    held = queue.acquire((7,), pack_words([entry << 16 | 1 for entry in range(1, 60)]))
    found, steps = list[int](), 0
    while timers.next_us <= _TICK_US:
        found += [word for _, words in timers.take(_TICK_US, 10, {1: held}.get) for word in words]
        steps += 1
    assert [entry_of(word) for word in found] == [*range(60, 100)]
    assert steps <= 40


def test_a_million_expiries_are_a_number_for_each_block() -> None:
    """Whether they come in runs or with a start."""
    count, far_us = 100_000, 10**13
    times = [far_us + entry * 7919 % count for entry in range(count)]
    queue = queue_of(dict(enumerate(times)))
    started, live = ExpiryTimers(), ExpiryTimers()
    started.start(queue)
    for first in range(0, count, 1000):
        live.add(queue, first, times[first : first + 1000])
    for timers in (started, live):
        assert timers._own.queues[1].length == -(-count // 512)
        assert timers.next_us == far_us


def test_timers_of_messages_that_have_gone_are_dropped() -> None:
    """Those of whole blocks, and those of the next seconds, beside messages that stay."""
    stays = dict.fromkeys(range(1, 100), 10**15)
    timers, queue = ExpiryTimers(), queue_of(stays)
    timers.start(queue)
    for number in range(4000):
        first = 1000 + number * 512
        timers.add(arrived(queue, {first: 10**14}), first, (10**14,))
    assert timers._own.queues[1].length < 1200
    first, ending = 10**7 << 9, {}
    for number in range(4000):
        # Its block has been looked at, so each further message of it has a number of its own.
        block, entry = first + (number // 500) * 512, first + (number // 500) * 512 + number % 500
        ending = {block: number + 1, entry: 10**6}
        timers.add(arrived(queue, ending), block, (number + 1,))
        timers.take(number + 1, 100, {1: arrived(queue, ending)}.get)
        timers.add(arrived(queue, ending), entry, (10**6,))
    assert timers._own.queues[1].length < 2400


def test_what_follows_a_message_that_has_left_expires_too() -> None:
    """A block is taken in parts, and the message that the next part begins with may leave in between."""
    times = dict.fromkeys(range(512, 1024), 1000) | dict.fromkeys(range(1024, 1536), 2000)
    for gone in range(3):
        timers, queue = ExpiryTimers(), queue_of(times)
        timers.start(queue)
        left = set(times)
        while timers.next_us < FOREVER_US:
            found = {
                entry_of(word) for _, words in timers.take(10**6, 50, lambda _, queue=queue: queue) for word in words
            }
            assert found <= left
            # The first ones that wait are accepted by a consumer, say.
            left -= found
            accepted = sorted(left)[:gone]
            left -= {*accepted}
            queue = without(queue, [entry << 16 | 1 for entry in (*found, *accepted)])
        assert not left


def test_short_and_long_lives_in_one_block_take_bounded_memory() -> None:
    """A message has one number, however often its block is looked at."""
    column, timers, now_us, most = EMPTY_COLUMN, BlockTimers(EMPTY_COLUMN), 10**6, 0
    for entry in range(512 * 9, 512 * 9 + 3000, 2):
        for one, ttl_us in ((entry, 10_000_000), (entry + 1, 1000)):
            column = column.with_values([one], [now_us + ttl_us])
            timers.add_run(one, [now_us + ttl_us])
            timers.prune(column)
        now_us += 6000
        while timers.first >> SHIFT <= now_us and (taken := timers.take_block(column, now_us, 500, {})[0]):
            column = column.without(taken)
        most = max(most, timers.length)
    assert most < 2 * (column.count + SPARE)


def test_a_queue_that_is_deleted_or_reset_leaves_no_timers() -> None:
    """However far away its times are."""
    rig = Rig()
    for number in range(3):
        name = f"q{number}"
        rig.do(DeclareQueue("key", name, Settings(message_ttl_ms=10**8)))
        producer = rig.producer(name)
        rig.do(Publish("link", producer, 0, [b"x"], [0], 1, ttl_ms=10**7))
        rig.do(Publish("link", producer, 0, [b"x"], [0], 1, delay_ms=10**7))
        rig.do(DetachProducer(producer))
        if number < 2:
            rig.do(DeleteQueue("key", name))
    loop = rig.loop
    assert [len(timers) for timers in (loop._timers._own.queues, loop._timers._watched)] == [1, 1]
    assert len(loop._due_timers._heads.queues) == 1
    rig.do(ResetHost("key"))
    assert not loop._timers._own.queues
    assert not loop._timers._watched
    assert not loop._due_timers._heads.queues
