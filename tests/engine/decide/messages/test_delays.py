"""Scheduled delivery: nothing is offered early, nothing is lost; by time, then by offset, at the tail of the queue."""

import random
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ambermq.engine.commands import (
    FindMessages,
    MessageFilter,
    MoveMessages,
    Publish,
    PurgeQueue,
    RemoveMessages,
    Settle,
)
from ambermq.engine.config import EngineConfig
from ambermq.engine.effects import Answered, Deliver, PublishDone
from ambermq.engine.entries.outcome import ACCEPTED, OutcomeKind
from ambermq.engine.events import Moved, Published, Scheduled, Timed
from ambermq.engine.events.registry import NUMBERS
from tests.engine.decide.messages.test_dead_letters import again, bodies_of, declare
from tests.engine.decide.messages.test_expiry import wait
from tests.engine.rig import Rig, delivered
from tests.log.simulated import SimulatedStorage

SECOND = 1_000_000
_PUBLISHED, _TIMED, _SCHEDULED = NUMBERS[Published], NUMBERS[Timed], NUMBERS[Scheduled]
LATE_US = 20_000
"""The latest moment of a timer after its time."""


def schedule(rig: Rig, producer: int, *bodies: bytes, **fields: Any) -> None:
    """Publish messages for later."""
    rig.do(Publish("link", producer, 0, list(bodies), [0] * len(bodies), sum(map(len, bodies)), **fields))


def schedule_each(rig: Rig, producer: int, times_ms: dict[bytes, int], **fields: Any) -> None:
    """Publish messages that have times of their own, in one run."""
    schedule(rig, producer, *times_ms, **fields, time_ms=min(times_ms.values()), times_ms=[*times_ms.values()])


def test_a_scheduled_message_takes_the_tail_at_its_time() -> None:
    """It is counted at once, and not again."""
    rig = Rig()
    declare(rig, "q")
    producer, consumer = rig.producer(), rig.consumer(credit=9)
    schedule(rig, producer, b"a", b"b", delay_ms=1000)
    assert (rig.queue().scheduled.count, rig.queue().depth, rig.queue().published) == (2, 2, 2)
    rig.loop.set_credit(consumer, 0)
    rig.do(rig.publish(producer, b"c"))
    wait(rig, SECOND - 1)
    assert rig.queue().available == 1
    wait(rig, LATE_US)
    queue = rig.queue()
    assert (queue.scheduled.count, queue.available, queue.published, queue.counters.moved) == (0, 3, 3, 0)
    rig.loop.set_credit(consumer, 9)
    assert [body for _, body in delivered(rig.do() + rig.do())] == [b"c", b"a", b"b"]


def test_messages_that_are_due_together_are_replayed_one_by_one() -> None:
    """On a queue that is empty otherwise, the runs of its time to live are the same too."""
    rig = Rig()
    declare(rig, "q", message_ttl_ms=3000)
    producer, consumer = rig.producer(), rig.consumer(credit=1)
    rig.do(rig.publish(producer, b"a"))
    schedule(rig, producer, b"b", b"c", delay_ms=500)
    rig.do(Settle(consumer, rig.queue().held_by(consumer).to_bytes(), ACCEPTED))
    wait(rig, SECOND)
    rig.loop.log.write(rig.now_us)
    assert rig.queue().runs
    rig.next_life()


def test_a_time_wins_over_a_delay_and_the_past_is_now() -> None:
    """Also 1970."""
    rig = Rig(now_us=1_000 * SECOND)
    declare(rig, "q")
    producer = rig.producer()
    schedule(rig, producer, b"a", time_ms=1, delay_ms=60_000)
    assert rig.queue().available == 1
    schedule(rig, producer, b"b", time_ms=1_002_000, delay_ms=1)
    wait(rig, SECOND)
    assert rig.queue().available == 1
    wait(rig, SECOND + LATE_US)
    assert rig.queue().available == 2
    schedule(rig, producer, b"c", time_ms=1 << 62)
    assert rig.queue().scheduled.count == 1
    assert again(rig).queue().scheduled.count == 1


def test_each_message_of_a_run_has_its_time() -> None:
    """One in the past is available now, one event has the times of the others, and a restart keeps them."""
    rig = Rig(now_us=1_000 * SECOND)
    declare(rig, "q")
    schedule_each(rig, rig.producer(), {b"a": 1_003_000, b"b": 1, b"c": 1_001_000, b"d": 1_002_000, b"e": 1_003_000})
    assert (rig.queue().scheduled.count, rig.queue().available) == (4, 1)
    events, _ = rig.loop.replay(0).read(events_max=1000, bytes_max=1 << 20)
    (event,) = [event for event in events if isinstance(event, Scheduled)]
    first = min(rig.queue().scheduled) >> 16
    assert [event.due_us_of(first + index) // SECOND for index in (0, 2, 3, 4)] == [1003, 1001, 1002, 1003]
    assert event.due_us == 1_001 * SECOND
    rig = again(rig)
    for available in (1, 2, 3, 5):
        wait(rig, LATE_US)
        assert rig.queue().available == available
        wait(rig, SECOND)
    assert bodies_of(rig, "q") == [b"b", b"c", b"d", b"a", b"e"]


_EACH = st.lists(
    st.sampled_from((1, 900_000, 1_000_001, 1_000_500, 1_002_000, 1_002_000, 1 << 62)), min_size=1, max_size=9
)


@given(times_ms=_EACH, parts=st.lists(st.integers(1, 4)), chunk_bytes=st.sampled_from((4, 1000)))
def test_a_run_has_the_times_of_its_messages_one_by_one(
    times_ms: list[int], parts: list[int], chunk_bytes: int
) -> None:
    """However they are joined and split, and if some are large."""
    dues = []
    for is_whole in (True, False):
        rig = Rig(config=EngineConfig(chunk_bytes=chunk_bytes), now_us=1_000 * SECOND)
        declare(rig, "q")
        producer, bodies = rig.producer(), [b"%d" % index * (1 + index % 5) for index in range(len(times_ms))]
        runs = [
            Publish("link", producer, index, [body], [0], len(body), time_ms=time_ms)
            for index, (body, time_ms) in enumerate(zip(bodies, times_ms, strict=True))
        ]
        if is_whole:
            for run in runs[1:]:
                assert runs[0].join(run, bytes_max=1000)
            run, runs = runs[0], []
            for count in parts:
                first, run = run.split(count)
                runs.append(first)
            runs.append(run)
        for run in runs:
            if run.bodies:
                rig.do(run)
        queue = rig.queue()
        words = sorted([*queue.ready, *queue.scheduled])
        dues.append([queue.due_us_of(word >> 16) for word in words])
        assert again(rig).queue() == queue
    assert dues[0] == dues[1]


def test_messages_come_by_time_then_by_offset() -> None:
    """Whatever the order of their arrival, after a restart too."""
    rig = Rig()
    declare(rig, "q")
    producer = rig.producer()
    for number, delay_ms in enumerate((50, 10, 30, 10, 50)):
        schedule(rig, producer, b"%d" % number, delay_ms=delay_ms)
    rig = again(rig)
    wait(rig, SECOND)
    assert bodies_of(rig, "q") == [b"1", b"3", b"2", b"0", b"4"]


def test_the_own_time_to_live_counts_from_the_arrival() -> None:
    """That of the queue counts from the time of the message."""
    rig = Rig()
    declare(rig, "own")
    producer = rig.producer("own")
    schedule(rig, producer, b"a", delay_ms=1000, ttl_ms=500)
    schedule(rig, producer, b"b", delay_ms=1000, ttl_ms=1500)
    declare(rig, "q", message_ttl_ms=1000)
    schedule(rig, rig.producer(), b"c", delay_ms=5000)
    wait(rig, 600_000)
    assert (rig.queue("own").scheduled.count, rig.queue("own").counters.discarded) == (1, 1)
    wait(rig, 420_000)
    assert (rig.queue("own").available, rig.queue("own").expiries.count) == (1, 1)
    rig = again(rig)
    wait(rig, 600_000)
    assert (rig.queue("own").depth, rig.queue("own").expiries.count) == (0, 0)
    wait(rig, 3 * SECOND + 500_000)
    assert rig.queue().available == 1
    wait(rig, SECOND + 2 * LATE_US)
    assert rig.queue().depth == 0


def test_a_start_gives_them_the_same_time_to_live() -> None:
    """The last scheduled ones come to the tail in one event, and one by one when the log is read."""
    rig = Rig()
    declare(rig, "q", message_ttl_ms=60_000)
    producer = rig.producer()
    rig.do(rig.publish(producer, b"first"))
    schedule(rig, producer, b"a", b"b", b"c", delay_ms=1000)
    rig.consumer(credit=1, settled=True)
    rig.do()
    assert rig.queue().depth == rig.queue().scheduled.count == 3
    wait(rig, SECOND + LATE_US)
    assert (rig.queue().available, len(rig.queue().runs)) == (3, 2)
    again(rig)


def test_scheduled_messages_count_for_the_maxima() -> None:
    """The next one is refused, or the oldest waiting one makes room for it."""
    rig = Rig()
    declare(rig, "q", messages_max=2)
    producer = rig.producer()
    schedule(rig, producer, b"a", b"b", delay_ms=1000)
    (done,) = [one for one in rig.do(rig.publish(producer, b"c")) if isinstance(one, PublishDone)]
    assert done.kind is OutcomeKind.REJECTED


def test_a_purge_leaves_them() -> None:
    """Unless it is for them too."""
    rig = Rig()
    declare(rig, "q")
    producer = rig.producer()
    for _ in range(3):
        rig.do(rig.publish(producer, b"x", b"y"))
        schedule(rig, producer, b"later", delay_ms=1000)
        schedule(rig, producer, b"late", delay_ms=1000, ttl_ms=5000)
        rig.do(PurgeQueue("key", "q"))
    assert (rig.queue().depth, rig.queue().scheduled.count, rig.queue().counters.purged) == (6, 6, 6)
    assert (len(rig.queue().entries), rig.queue().expiries.count, rig.queue().size) == (0, 3, 27)
    assert rig.queue().dues.count == 6
    rig = again(rig)
    rig.do(PurgeQueue("key", "q", scheduled=True))
    assert (rig.queue().depth, len(rig.queue().entries), rig.queue().expiries.count, rig.queue().size) == (0, 0, 0, 0)
    assert rig.queue().dues.count == 0
    assert rig.queue().counters.purged == 12
    rig = again(rig)
    wait(rig, 10 * SECOND)
    assert rig.queue().depth == 0


def test_a_cancelled_message_is_never_offered() -> None:
    """A cancel is for scheduled messages alone, and no other command finds or takes them."""
    rig = Rig()
    declare(rig, "q")
    declare(rig, "r")
    producer = rig.producer()
    rig.do(rig.publish(producer, b"now"))
    schedule(rig, producer, b"a", b"b", delay_ms=1000)
    first, second = (word >> 16 for word in rig.queue().scheduled)
    now = next(iter(rig.queue().ready)) >> 16
    (found,) = [one for one in rig.do(FindMessages("key", "q", MessageFilter(scheduled=True))) if type(one) is Answered]
    assert [(row["offset"], row["state"], row["due_us"]) for row in found.value["messages"]] == [
        (first, "scheduled", rig.now_us + SECOND),
        (second, "scheduled", rig.now_us + SECOND),
    ]
    (found,) = [one for one in rig.do(FindMessages("key", "q")) if type(one) is Answered]
    assert [row["offset"] for row in found.value["messages"]] == [now]
    rig.do(MoveMessages("key", "q", [first, second], "r"))
    rig.do(RemoveMessages("key", "q", [first, second]))
    assert rig.queue().depth == 3
    (done,) = [one for one in rig.do(RemoveMessages("key", "q", [now, first], scheduled=True)) if type(one) is Answered]
    assert done.value == {"removed": 1, "acquired": 0, "gone": 1}
    wait(rig, 2 * SECOND)
    assert bodies_of(rig, "q") == [b"now", b"b"]


def test_a_step_of_the_clock_delivers_nothing() -> None:
    """Timers go by elapsed time."""
    rig = Rig()
    declare(rig, "q")
    schedule(rig, rig.producer(), b"a", delay_ms=60_000)
    for step_us in (3600 * SECOND, -7200 * SECOND):
        old_us = rig.now_us + rig.loop.correction_us
        rig.loop.correct_clock(rig.loop.correction_us + step_us, (old_us, old_us + step_us))
        wait(rig, 10 * SECOND)
        assert rig.queue().scheduled.count == 1
    wait(rig, 41 * SECOND)
    assert rig.queue().available == 1


@pytest.mark.parametrize("count", [1, 2500])
@pytest.mark.parametrize("step_ms", [0, 1])
def test_a_run_and_its_times_are_in_one_batch(count: int, step_ms: int) -> None:
    """So a torn write never leaves a scheduled message that is available at once."""
    rig = Rig()
    declare(rig, "q")
    first_ms = rig.now_us // 1000 + 1000
    times_ms = {b"%d" % number: first_ms + number * step_ms for number in range(count)}
    schedule_each(rig, rig.producer(), times_ms, ttl_ms=5000)
    assert (rig.queue().scheduled.count, rig.queue().expiries.count) == (count, count)
    parts = [types for types in rig.batches() if _PUBLISHED in types]
    assert sum(types.count(_PUBLISHED) for types in parts) == count
    for types in parts:
        followers = [after for one, after in pairwise(types) if one == _PUBLISHED and after != _PUBLISHED]
        assert set(followers) == {_TIMED}
        assert types.count(_TIMED) == types.count(_SCHEDULED) == len(followers)


def test_a_large_message_is_scheduled() -> None:
    """In chunks, and for several queues."""
    rig = Rig(config=EngineConfig(chunk_bytes=100))
    declare(rig, "q")
    schedule(rig, rig.producer(), b"a" * 250, b"b", b"c" * 150, delay_ms=1000, ttl_ms=60_000)
    assert rig.queue().scheduled.count == 3
    events, _ = rig.loop.replay(0).read(events_max=1000, bytes_max=1 << 20)
    kinds = [type(event) for event in events if isinstance(event, Published | Timed | Scheduled)]
    assert kinds == [Published, Timed, Scheduled] * 3
    wait(rig, SECOND + LATE_US)
    assert bodies_of(rig, "q") == [b"a" * 250, b"b", b"c" * 150]


def test_a_thousand_a_second_come_in_time() -> None:
    """Each within 20 ms of its time, and never before."""
    rig = Rig()
    declare(rig, "q")
    producer = rig.producer()
    start_us = rig.now_us
    for number in range(1000):
        schedule(rig, producer, b"m", time_ms=start_us // 1000 + 1000 + number * 7919 % 1000)
    rig.now_us = start_us + SECOND - 1000
    while rig.queue().scheduled.count:
        rig.now_us = max(rig.now_us, rig.loop.schedule.timer_us)
        rig.do()
        since_ms = (rig.now_us - start_us) // 1000 - 1000
        assert since_ms - 20 <= rig.queue().available <= since_ms + 1
    assert rig.now_us <= start_us + 2 * SECOND + LATE_US


_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.sampled_from((0, 1, 5, 5, 40, 1000)), st.integers(1, 4)),
        st.tuples(st.just("each"), st.sampled_from((0, 1, 7, 40, 1000)), st.integers(2, 5)),
        st.tuples(st.just("wait"), st.sampled_from((1_000, 4_999, 5_000, 50_000, 2_000_000)), st.just(0)),
        st.tuples(st.just("take"), st.integers(1, 4), st.just(0)),
        st.tuples(st.just("cancel"), st.integers(0, 3), st.just(0)),
        st.tuples(st.just("purge"), st.integers(0, 1), st.just(0)),
        st.tuples(st.just("restart"), st.just(0), st.just(0)),
    ),
    max_size=40,
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps=_STEPS)
def test_nothing_is_offered_early_and_nothing_is_lost(steps: list[tuple[str, int, int]]) -> None:
    """Each message is offered once, not before its time, unless it is cancelled or purged."""
    rig = Rig(SimulatedStorage(random.Random(1)), config=EngineConfig(dispatch_messages_max=5))
    declare(rig, "q")
    due: dict[bytes, int] = {}
    by_offset: dict[int, bytes] = {}
    number = consumer = 0
    for step, value, count in steps:
        if step in ("publish", "each"):
            bodies = [b"%d" % (number + one) for one in range(count)]
            number += count
            producer, offset = rig.producer(), rig.loop.log.log_end
            own = {body: value * index % 1500 if step == "each" else value for index, body in enumerate(bodies)}
            if step == "each":
                # The times are not in order, and some are equal.
                first_ms = -(-rig.now_us // 1000)
                schedule_each(rig, producer, {body: first_ms + delay_ms for body, delay_ms in own.items()})
                rounding_us = 1000 * first_ms - rig.now_us
            else:
                schedule(rig, producer, *bodies, delay_ms=value)
                rounding_us = 0
            known = sorted(word >> 16 for words in rig.queue().waiting_lists for word in words if word >> 16 >= offset)
            by_offset |= dict(zip(known[-count:], bodies, strict=True))
            due |= {body: rig.now_us + rounding_us + 1000 * delay_ms for body, delay_ms in own.items()}
        elif step == "wait":
            wait(rig, value)
        elif step == "take":
            consumer = consumer or rig.consumer("q", settled=True)
            rig.loop.set_credit(consumer, value)
            for effect in rig.do() + rig.do():
                for body in map(bytes, effect.bodies) if type(effect) is Deliver else ():
                    assert rig.now_us >= due.pop(body)
            rig.loop.set_credit(consumer, 0)
        elif step == "cancel":
            offsets = [word >> 16 for word in rig.queue().scheduled][value : value + 2]
            rig.do(RemoveMessages("key", "q", offsets, scheduled=True))
            for offset in offsets:
                del due[by_offset[offset]]
        elif step == "purge":
            kept = [by_offset[word >> 16] for word in rig.queue().scheduled] if not value else []
            rig.do(PurgeQueue("key", "q", scheduled=bool(value)))
            due = {body: due[body] for body in kept}
        elif step == "restart":
            rig, consumer = again(rig), 0
        assert rig.queue().depth == len(due)
    rig = again(rig)
    wait(rig, 10 * SECOND)
    wait(rig, LATE_US)
    assert rig.queue().scheduled.count == 0
    assert set(bodies_of(rig, "q")) == set(due)


def test_the_move_of_a_due_message_says_so() -> None:
    """The event has the reason due, and one queue."""
    rig = Rig()
    declare(rig, "q")
    schedule(rig, rig.producer(), b"a", b"b", delay_ms=10)
    wait(rig, SECOND)
    rig.loop.make_due()
    rig.do()
    events, _ = rig.loop.replay(0).read(events_max=1000, bytes_max=1 << 20)
    queue = rig.queue().id
    assert [(event.targets, event.reason.text) for event in events if isinstance(event, Moved)] == [
        ((queue,), "due")
    ] * 2
