"""Times to live: of messages, of queues, of both; what expires is never offered, and goes where dead letters go."""

import random
from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ambermq.engine.commands import (
    AttachMember,
    DeclareMuxer,
    DetachConsumer,
    MoveMessages,
    Publish,
    Settle,
    UpdateQueue,
)
from ambermq.engine.config import EngineConfig
from ambermq.engine.effects import Deliver
from ambermq.engine.entries.discard_reason import MoveReason
from ambermq.engine.entries.entry_word import pack_words
from ambermq.engine.entries.outcome import ACCEPTED, RELEASED
from ambermq.engine.events import Timed
from ambermq.engine.events.registry import NUMBERS
from ambermq.engine.model.muxer import MuxerKind
from tests.engine.decide.messages.test_dead_letters import REJECTED_FOR, again, bodies_of, declare
from tests.engine.rig import Rig
from tests.log.simulated import SimulatedStorage

SECOND = 1_000_000


def publish(rig: Rig, producer: int, ttl_ms: int, *bodies: bytes, expires_ms: int = 0) -> None:
    """Publish messages with a time to live of their own, or a time of the clock when they expire."""
    command = Publish("link", producer, 0, list(bodies), [0] * len(bodies), sum(map(len, bodies)), ttl_ms=ttl_ms)
    command.expires_ms = expires_ms
    rig.do(command)


def publish_each(rig: Rig, producer: int, lives_ms: Sequence[int], *, by_clock: bool = False) -> None:
    """Publish messages one after the other in one tick, each with a time to live, or a time of the clock."""
    for number, life_ms in enumerate(lives_ms):
        command = Publish("link", producer, number, [b"%d" % number], [0], len(b"%d" % number))
        command.ttl_ms, command.expires_ms = (0, life_ms) if by_clock else (life_ms, 0)
        rig.loop.submit(command)
    rig.do()


def clock_ms(rig: Rig, after_ms: int) -> int:
    """Return a time of the clock, in milliseconds since 1970 and rounded down, after a number of them."""
    return max(1, (rig.now_us + rig.loop.correction_us) // 1000 + after_ms)


def wait(rig: Rig, duration_us: int) -> None:
    """Advance the time, and run what is due then."""
    rig.now_us += duration_us
    rig.do()
    while rig.loop.schedule.timer_us <= rig.now_us:
        rig.do()


@pytest.mark.parametrize("own_ms", [0, 1000])
@pytest.mark.parametrize("queue_ms", [0, 1000])
def test_a_message_expires_at_the_earlier_time(own_ms: int, queue_ms: int) -> None:
    """Its own or that of its queue; without either never."""
    rig = Rig()
    declare(rig, "q", message_ttl_ms=queue_ms)
    publish(rig, rig.producer("q"), own_ms, b"a", b"b")
    wait(rig, SECOND - 1)
    assert rig.queue().depth == 2
    wait(rig, 20_000)
    assert rig.queue().depth == (0 if own_ms or queue_ms else 2)
    if own_ms or queue_ms:
        assert rig.queue().counters.discarded == 2
        assert rig.queue().expiries.count == 0


def test_an_expired_message_goes_to_the_target_without_its_time() -> None:
    """Its reason says so; it does not expire there, unless the target has a time to live."""
    rig = Rig()
    declare(rig, "late")
    declare(rig, "q", dead_letter="late")
    publish(rig, rig.producer("q"), 50, b"a")
    wait(rig, SECOND)
    (entry,) = rig.queue("late").entries.values()
    assert entry.marks is not None
    assert (entry.marks.reason, entry.expires_us) == (MoveReason.EXPIRED, 0)
    wait(rig, 1000 * SECOND)
    assert bodies_of(rig, "late") == [b"a"]


def test_a_ring_of_expiries_ends() -> None:
    """A to B to A by expiry: the message ends with the reason loop."""
    rig = Rig()
    declare(rig, "a", message_ttl_ms=10)
    declare(rig, "b", message_ttl_ms=10, dead_letter="a")
    rig.do(UpdateQueue("key", "a", lambda _state: {}, {"dead_letter": "b"}))
    rig.do(rig.publish(rig.producer("a"), b"m"))
    for _ in range(10):
        wait(rig, SECOND)
    assert [rig.queue(name).depth for name in ("a", "b")] == [0, 0]
    assert [rig.queue(name).counters.discarded for name in ("a", "b")] == [0, 1]


def test_what_a_consumer_holds_is_not_taken_away() -> None:
    """Accepted is accepted; given back it expires then, also by the end of its consumer."""
    rig = Rig()
    declare(rig, "q")
    consumer = rig.consumer("q", credit=4)
    publish(rig, rig.producer("q"), 10, b"a", b"b", b"c")
    words = list(rig.queue().held_by(consumer))
    wait(rig, SECOND)
    assert rig.queue().depth == 3
    rig.do(Settle(consumer, pack_words(words[:1]), ACCEPTED))
    rig.do(Settle(consumer, pack_words(words[1:2]), RELEASED))
    rig.loop.make_due()
    rig.do()
    assert (rig.queue().accepted, rig.queue().counters.discarded, rig.queue().depth) == (1, 1, 1)
    rig.do(DetachConsumer(consumer))
    assert (rig.queue().counters.discarded, rig.queue().depth) == (2, 0)


def test_an_expired_message_is_never_offered() -> None:
    """Although its timer is late: what comes behind it is offered."""
    rig = Rig()
    declare(rig, "q")
    producer = rig.producer("q")
    publish(rig, producer, 10, b"a", b"b")
    rig.do(rig.publish(producer, b"c"))
    consumer = rig.consumer("q")
    rig.now_us += 10_000
    rig.loop.set_credit(consumer, 10)
    effects = rig.do() + rig.do()
    assert [bytes(body) for one in effects if type(one) is Deliver for body in one.bodies] == [b"c"]
    assert rig.queue().counters.discarded == 2


def test_a_restart_keeps_the_times() -> None:
    """Of queues and of messages; what expired meanwhile is given up at once."""
    rig = Rig()
    declare(rig, "q", message_ttl_ms=5000)
    producer = rig.producer("q")
    publish(rig, producer, 1000, b"a")
    rig.do(rig.publish(producer, b"b"))
    rig.now_us += 10
    rig = again(rig)
    wait(rig, 2 * SECOND)
    assert rig.queue().depth == 1
    rig = again(rig)
    wait(rig, 9 * SECOND)
    assert rig.queue().depth == 0


def test_a_step_of_the_clock_expires_nothing() -> None:
    """Timers go by elapsed time."""
    rig = Rig()
    declare(rig, "q", message_ttl_ms=60_000)
    publish(rig, rig.producer("q"), 60_000, b"a")
    for step_us in (3600 * SECOND, -7200 * SECOND):
        old_us = rig.now_us + rig.loop.correction_us
        rig.loop.correct_clock(rig.loop.correction_us + step_us, (old_us, old_us + step_us))
        wait(rig, 10 * SECOND)
        assert rig.queue().depth == 1
    wait(rig, 41 * SECOND)
    assert rig.queue().depth == 0


def test_many_expire_in_parts() -> None:
    """A tick gives up about as many as it delivers."""
    rig = Rig(config=EngineConfig(dispatch_messages_max=10))
    declare(rig, "q", message_ttl_ms=100)
    declare(rig, "r")
    publish(rig, rig.producer("q"), 0, *[b"x"] * 95)
    for _ in range(50):
        publish(rig, rig.producer("r"), 100, b"y")
    rig.now_us += SECOND
    seen = []
    while rig.loop.schedule.timer_us <= rig.now_us:
        before = rig.queue("q").depth + rig.queue("r").depth
        rig.step()
        rig.completed()
        seen.append(before - rig.queue("q").depth - rig.queue("r").depth)
    assert (sum(seen), max(seen) <= 20) == (145, True)


def test_a_message_expires_at_its_time_of_the_clock() -> None:
    """Not before it and at most a millisecond after it; a time to live has precedence, and that of the queue bounds."""
    rig = Rig()
    rig.now_us = 5_000_500
    declare(rig, "q")
    declare(rig, "short", message_ttl_ms=100)
    for name in ("q", "short"):
        publish(rig, rig.producer(name), 0, b"a", expires_ms=5_200)
        publish(rig, rig.producer(name), 300, b"b", expires_ms=5_200)
    assert [rig.queue().expiry_of(word) for word in rig.queue().ready] == [5_200_500, 5_300_500]
    assert all(5_100_500 <= rig.queue("short").expiry_of(word) < 5_101_000 for word in rig.queue("short").ready)
    wait(rig, 199_499)
    assert (rig.queue().depth, rig.queue("short").depth) == (2, 0)
    wait(rig, 10_000)
    assert rig.queue().depth == 1
    rig = again(rig)
    wait(rig, SECOND)
    assert rig.queue().depth == 0


@pytest.mark.parametrize("expires_ms", [1, 4_999, 5_000])
def test_a_time_that_has_passed_is_never_offered(expires_ms: int) -> None:
    """A consumer that waits does not get the message: it is a dead letter at once, without its time."""
    rig = Rig()
    declare(rig, "q", dead_letter="late")
    consumer = rig.consumer("q")
    rig.now_us = 5_000_000
    rig.loop.set_credit(consumer, 10)
    rig.do()
    publish(rig, rig.producer("q"), 0, b"a", expires_ms=expires_ms)
    assert list(rig.queue().held_by(consumer)) == []
    wait(rig, 10_000)
    (entry,) = rig.queue("late").entries.values()
    assert entry.marks is not None
    assert (entry.marks.reason, entry.expires_us, rig.queue().depth) == (MoveReason.EXPIRED, 0, 0)
    wait(rig, 1000 * SECOND)
    assert bodies_of(rig, "late") == [b"a"]


def test_the_clock_of_the_arrival_counts() -> None:
    """Its later steps change nothing; a time that no clock reaches is a hundred years at most."""
    rig = Rig()
    declare(rig, "q")
    step_us = 3600 * SECOND
    rig.loop.correct_clock(step_us, (rig.now_us, rig.now_us + step_us))
    publish(rig, rig.producer("q"), 0, b"a", expires_ms=clock_ms(rig, 60_000))
    publish(rig, rig.producer("q"), 0, b"b", expires_ms=(1 << 63) - 1)
    rig.loop.correct_clock(3 * step_us, (rig.now_us + step_us, rig.now_us + 3 * step_us))
    wait(rig, 59 * SECOND)
    assert rig.queue().depth == 2
    wait(rig, 2 * SECOND)
    (word,) = rig.queue().ready
    assert rig.queue().expiry_of(word) <= rig.now_us + 100 * 365 * 86_400 * SECOND


def test_each_queue_of_a_fan_out_has_the_time() -> None:
    """And what is moved away has it no more."""
    rig = Rig()
    for name in ("a", "b", "other"):
        declare(rig, name)
    rig.do(DeclareMuxer("key", "both", MuxerKind.SIMPLE))
    rig.do(AttachMember("key", "both", "a"), AttachMember("key", "both", "b"))
    publish(rig, rig.producer("/muxers/both"), 0, b"m", expires_ms=clock_ms(rig, 1000))
    (word,) = rig.queue("a").ready
    rig.do(MoveMessages("key", "a", [word >> 16], "other"))
    wait(rig, 2 * SECOND)
    assert [rig.queue(name).depth for name in ("a", "b", "other")] == [0, 0, 1]


def test_messages_with_a_time_each_leave_together() -> None:
    """By one event in a tick, which takes a quarter as many messages as it delivers."""
    rig = Rig(config=EngineConfig(dispatch_messages_max=80))
    declare(rig, "q")
    producer = rig.producer("q")
    for number in range(50):
        publish(rig, producer, 0, b"m", expires_ms=clock_ms(rig, 100 + 61 * number % 2000))
    rig.now_us += 10 * SECOND
    seen, first = [], rig.loop.log.draft.next_offset
    while rig.loop.schedule.timer_us <= rig.now_us:
        before = rig.queue().depth
        rig.step()
        rig.completed()
        seen.append(before - rig.queue().depth)
    assert (sum(seen), max(seen), rig.loop.log.draft.next_offset - first) == (50, 20, 3)


def test_a_large_message_has_its_time() -> None:
    """In chunks, and several of them in one run."""
    rig = Rig(config=EngineConfig(chunk_bytes=100))
    declare(rig, "q")
    publish(rig, rig.producer("q"), 100, b"a" * 250, b"b", b"c" * 150)
    assert rig.queue().expiries.count == 3
    events, _ = rig.loop.replay(0).read(events_max=1000, bytes_max=1 << 20)
    assert [event.count for event in events if isinstance(event, Timed)] == [1, 1, 1]
    wait(rig, SECOND)
    assert (rig.queue().depth, rig.queue().expiries.count) == (0, 0)


@pytest.mark.parametrize("by_clock", [False, True])
def test_messages_whose_expiries_differ_are_stored_in_runs(*, by_clock: bool) -> None:
    """With one event for hundreds of them and no object for a message: so a start does not fold an event for each."""
    rig, count = Rig(), 2500
    declare(rig, "q")
    start_ms = clock_ms(rig, 0) if by_clock else 0
    lives_ms = [start_ms + 10_000 + 7919 * number % 50_000 for number in range(count)]
    publish_each(rig, rig.producer("q"), lives_ms, by_clock=by_clock)
    queue = rig.queue()
    wanted_ms = [life_ms - start_ms for life_ms in lives_ms]
    found_ms = [-(-(expires_us - rig.now_us) // 1000) for _, expires_us in queue.expiries.items()]
    assert max(abs(found - wanted) for found, wanted in zip(found_ms, wanted_ms, strict=True)) <= 1
    assert len(queue.entries) == 0
    rig = again(rig)
    assert rig.queue().expiries == queue.expiries
    wait(rig, 61 * SECOND)
    assert (rig.queue().depth, rig.queue().expiries.count) == (0, 0)
    assert 3 <= sum([types.count(NUMBERS[Timed]) for types in rig.batches()]) <= count // 100


def test_a_run_expires_as_its_messages_do_one_by_one() -> None:
    """Equal times to live in a run of different ones, one that has expired, and a step of the clock before it."""
    states = []
    for joins in (True, False):
        rig = Rig(now_us=1_000 * SECOND)
        declare(rig, "q")
        old_us = rig.now_us + rig.loop.correction_us
        rig.loop.correct_clock(7 * SECOND, (old_us, old_us + 7 * SECOND))
        producer = rig.producer("q")
        lives_ms = [clock_ms(rig, after_ms) for after_ms in (50, 50, -10, 3000, 20)]
        for some in [lives_ms] if joins else [[one] for one in lives_ms]:
            publish_each(rig, producer, some, by_clock=True)
        wait(rig, 0)
        states.append([rig.queue().expiries.get(word >> 16) for word in rig.queue().ready])
    assert len(states[0]) == 4
    assert states[0] == states[1]


_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.sampled_from((0, 5, 40, 1000)), st.integers(1, 4)),
        st.tuples(st.just("publish each"), st.sampled_from((1, 5, 40, 1000)), st.integers(2, 4)),
        st.tuples(st.just("publish until"), st.sampled_from((-7, 0, 1, 40, 1000)), st.integers(1, 4)),
        st.tuples(st.just("wait"), st.sampled_from((1_000, 4_999, 5_000, 50_000, 2_000_000)), st.just(0)),
        st.tuples(st.just("ttl"), st.sampled_from((0, 20, 300)), st.just(0)),
        st.tuples(st.just("take"), st.integers(1, 3), st.just(0)),
        st.tuples(st.just("give"), st.sampled_from((0, 1, 2)), st.just(0)),
        st.tuples(st.just("restart"), st.just(0), st.just(0)),
    ),
    max_size=30,
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps=_STEPS)
def test_messages_expire_as_a_model_says(steps: list[tuple[str, int, int]]) -> None:
    """Each message is offered until its time and never after it, to the microsecond for its own time."""
    rig = Rig(SimulatedStorage(random.Random(1)), config=EngineConfig(dispatch_messages_max=5))
    declare(rig, "q", dead_letter="late")
    due: dict[bytes, tuple[int, int]] = {}
    """The earliest and the latest time of each message's expiry; (0, 0) without one."""
    number, queue_ms, held = 0, 0, list[tuple[int, bytes]]()
    consumer = 0
    for step, value, count in steps:
        if step in ("publish", "publish until"):
            bodies = [b"%d" % (number + one) for one in range(count)]
            number += count
            if step == "publish until":
                expires_ms = clock_ms(rig, value)
                publish(rig, rig.producer("q"), 0, *bodies, expires_ms=expires_ms)
                # In whole milliseconds from the arrival on.
                own_ms = max(0, -(-(1000 * expires_ms - rig.now_us) // 1000)) or -1
            else:
                publish(rig, rig.producer("q"), value, *bodies)
                own_ms = value
            times = [rig.now_us + 1000 * max(0, ms) for ms in (own_ms, queue_ms) if ms]
            late = 2 * 1000 * queue_ms // 1024 + 2 if queue_ms and (not own_ms or queue_ms < own_ms) else 0
            due |= dict.fromkeys(bodies, (min(times), min(times) + late) if times else (0, 0))
        elif step == "publish each":
            lives_ms = [value + 37 * (number + one) % 90 for one in range(count)]
            producer = rig.producer("q")
            for one, ttl_ms in enumerate(lives_ms, number):
                command = Publish("link", producer, one, [b"%d" % one], [0], len(b"%d" % one), ttl_ms=ttl_ms)
                rig.loop.submit(command)
                earliest = min(ttl_ms, queue_ms or ttl_ms)
                late = 2 * 1000 * queue_ms // 1024 + 2 if earliest < ttl_ms else 0
                due[b"%d" % one] = (rig.now_us + 1000 * earliest, rig.now_us + 1000 * earliest + late)
            rig.do()
            number += count
        elif step == "wait":
            wait(rig, value)
        elif step == "ttl":
            queue_ms = value
            rig.do(UpdateQueue("key", "q", lambda _state: {}, {"message_ttl_ms": value}))
        elif step == "take":
            consumer = consumer or rig.consumer("q")
            rig.loop.set_credit(consumer, value)
            for effect in rig.do() + rig.do():
                if type(effect) is Deliver:
                    for word, body in zip(effect.words, effect.bodies, strict=True):
                        latest = due[bytes(body)][1]
                        assert not latest or rig.now_us < latest, (body, due)
                        held.append((word, bytes(body)))
            rig.loop.set_credit(consumer, 0)
        elif step == "give" and held:
            outcome = (ACCEPTED, RELEASED, REJECTED_FOR)[value]
            word, _ = held.pop(0)
            rig.do(Settle(consumer, pack_words([word]), outcome))
        elif step == "restart":
            rig, consumer, held = again(rig), 0, []
    rig.loop.make_due()
    rig.do()
    wait(rig, 10_000)
    wait(rig, 10_000)
    waiting = set(bodies_of(rig, "q"))
    for body in waiting:
        latest = due[body][1]
        assert not latest or rig.now_us < latest
