"""Redelivery delays: a failed delivery waits, longer each time; nothing is offered early, nothing is lost."""

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ambermq.engine.commands import DetachConsumer, MoveMessages, PurgeQueue, Settle, UpdateQueue
from ambermq.engine.config import EngineConfig
from ambermq.engine.effects import Deliver
from ambermq.engine.entries.entry_word import pack_words
from ambermq.engine.entries.outcome import ACCEPTED, MODIFIED_FAILED, RELEASED
from ambermq.engine.settings.queue_settings import DURATION_MS_MAX, Settings
from tests.engine.decide.messages.test_dead_letters import again, bodies_of, declare
from tests.engine.decide.messages.test_expiry import publish, wait
from tests.engine.rig import Rig, delivered
from tests.log.simulated import SimulatedStorage

LATE_US = 20_000
"""The latest moment of a timer after its time."""


def fail(rig: Rig, consumer: int, *words: int) -> None:
    """Return deliveries as failed."""
    rig.do(Settle(consumer, pack_words(words), MODIFIED_FAILED))
    rig.loop.make_due()
    rig.do()


@pytest.mark.parametrize(
    ("count", "backoff", "longest", "delay"),
    [(1, 0, 0, 100), (9, 1, 0, 100), (3, 2, 0, 400), (4, 3, 1000, 1000), (1 << 60, 2, 0, DURATION_MS_MAX)],
)
def test_the_delay_grows_up_to_its_maximum(count: int, backoff: int, longest: int, delay: int) -> None:
    """By the backoff with each further failed delivery; a hundred years are the longest."""
    found = Settings(redelivery_delay_ms=100, redelivery_backoff=backoff, redelivery_delay_ms_max=longest)
    assert found.redelivery_after_ms(count) == delay


def test_a_failed_delivery_waits_in_its_old_place() -> None:
    """It comes before the messages behind it when its time has come, and is counted while it waits."""
    rig = Rig()
    declare(rig, "q", redelivery_delay_ms=100, messages_max=3)
    consumer = rig.consumer(credit=2)
    producer = rig.producer()
    rig.do(rig.publish(producer, b"a", b"b", b"c"))
    first, second = rig.queue().held_by(consumer)
    fail(rig, consumer, first)
    assert (rig.queue().delayed.count, rig.queue().available, rig.queue().waiting) == (1, 1, 2)
    fail(rig, consumer, second)
    wait(rig, 99_999)
    assert (rig.queue().delayed.count, rig.queue().waiting, rig.queue().depth) == (2, 3, 3)
    wait(rig, LATE_US)
    assert (rig.queue().delayed.count, rig.queue().returned.count, rig.queue().counters.delayed) == (0, 2, 2)
    rig.loop.set_credit(consumer, 3)
    assert [body for _, body in delivered(rig.do())] == [b"a", b"b", b"c"]
    assert rig.queue().entries[first >> 16].count == 1


def test_the_second_failure_waits_longer() -> None:
    """By the backoff."""
    rig = Rig()
    declare(rig, "q", redelivery_delay_ms=100, redelivery_backoff=5)
    consumer = rig.consumer(credit=9)
    rig.do(rig.publish(rig.producer(), b"a"))
    (word,) = rig.queue().held_by(consumer)
    for delay_ms in (100, 500, 2500):
        fail(rig, consumer, word)
        wait(rig, 1000 * delay_ms - 1)
        assert rig.queue().delayed.count == 1
        wait(rig, LATE_US)
        assert list(rig.queue().held_by(consumer)) == [word]


def test_a_lost_consumer_counts_as_a_failure() -> None:
    """Its deliveries wait; a released one does not, nor does any after a restart."""
    rig = Rig()
    declare(rig, "q", redelivery_delay_ms=60_000)
    consumer = rig.consumer(credit=3)
    rig.do(rig.publish(rig.producer(), b"a", b"b", b"c"))
    first, _, _ = rig.queue().held_by(consumer)
    rig.do(Settle(consumer, pack_words([first]), RELEASED))
    rig.loop.make_due()
    rig.do()
    assert rig.queue().delayed.count == 0
    rig.loop.set_credit(consumer, 0)
    rig.do(DetachConsumer(consumer))
    assert (rig.queue().delayed.count, rig.queue().available) == (2, 1)
    consumer = rig.consumer(credit=3)
    rig.do()
    assert rig.queue().held_by(consumer).count == 1
    rig = again(rig)
    assert (rig.queue().available, rig.queue().delayed.count) == (1, 2)


def test_a_restart_keeps_what_waits() -> None:
    """And its time."""
    rig = Rig()
    declare(rig, "q", redelivery_delay_ms=60_000)
    consumer = rig.consumer(credit=1)
    rig.do(rig.publish(rig.producer(), b"a"))
    fail(rig, consumer, *rig.queue().held_by(consumer))
    rig = again(rig)
    wait(rig, 59_000_000)
    assert rig.queue().delayed.count == 1
    wait(rig, 1_000_000 + LATE_US)
    assert rig.queue().available == 1


def test_what_fails_too_often_does_not_wait() -> None:
    """It is a dead letter at once; what waits may expire, be moved, and be purged."""
    rig = Rig()
    declare(rig, "dead")
    declare(rig, "q", redelivery_delay_ms=60_000, delivery_count_max=2, dead_letter="dead")
    consumer = rig.consumer(credit=9)
    producer = rig.producer()
    publish(rig, producer, 30_000, b"a")
    rig.do(rig.publish(producer, b"b", b"c", b"d"))
    words = list(rig.queue().held_by(consumer))
    fail(rig, consumer, *words)
    assert rig.queue().delayed.count == 4
    wait(rig, 31_000_000)
    assert rig.queue("dead").depth == 1
    rig.do(MoveMessages("key", "q", [words[3] >> 16], "dead"))
    assert rig.queue("dead").depth == 2
    wait(rig, 30_000_000)
    fail(rig, consumer, words[1])
    assert bodies_of(rig, "dead") == [b"a", b"d", b"b"]
    fail(rig, consumer, words[2])
    assert rig.queue().depth == 0
    rig.loop.set_credit(consumer, 1)
    rig.do(rig.publish(producer, b"e"))
    fail(rig, consumer, *rig.queue().held_by(consumer))
    rig.do(PurgeQueue("key", "q"))
    assert (rig.queue().depth, rig.queue().size, len(rig.queue().entries)) == (0, 0, 0)
    wait(rig, 120_000_000)


def test_a_selecting_consumer_gets_it_again() -> None:
    """Although its scan has passed the message."""
    rig = Rig()
    declare(rig, "q", redelivery_delay_ms=100)
    consumer = rig.consumer(credit=9, selector="TRUE")
    rig.do(rig.publish(rig.producer(), b"a", b"b", b"c"))
    first, second, _ = rig.queue().held_by(consumer)
    for _ in range(3):
        fail(rig, consumer, second)
        fail(rig, consumer, first)
        wait(rig, 100_000 + LATE_US)
        wait(rig, LATE_US)
        assert rig.queue().acquired_count == 3


def test_many_are_available_in_parts() -> None:
    """A tick makes about a quarter as many available as it delivers."""
    rig = Rig(config=EngineConfig(dispatch_messages_max=40))
    declare(rig, "q", redelivery_delay_ms=100)
    consumer = rig.consumer(credit=95)
    rig.do(rig.publish(rig.producer(), *[b"x"] * 95))
    fail(rig, consumer, *rig.queue().held_by(consumer))
    rig.loop.set_credit(consumer, 0)
    rig.now_us += 1_000_000
    seen = []
    while rig.loop.schedule.timer_us <= rig.now_us:
        before = rig.queue().delayed.count
        rig.step()
        rig.completed()
        seen.append(before - rig.queue().delayed.count)
    assert (sum(seen), max(seen)) == (95, 10)
    assert rig.queue().counters.delayed == 95


_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.integers(1, 4)),
        st.tuples(st.just("wait"), st.sampled_from((1_000, 4_999, 5_000, 50_000, 2_000_000))),
        st.tuples(st.just("delay"), st.sampled_from((0, 5, 30))),
        st.tuples(st.just("take"), st.integers(1, 4)),
        st.tuples(st.just("give"), st.sampled_from((ACCEPTED, RELEASED, MODIFIED_FAILED))),
        st.tuples(st.just("detach"), st.just(0)),
        st.tuples(st.just("restart"), st.just(0)),
    ),
    max_size=40,
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps=_STEPS)
def test_nothing_is_offered_early_and_nothing_is_lost(steps: list[tuple[str, object]]) -> None:
    """Each message that is not accepted is there at the end; a failed one is not offered before its time."""
    rig = Rig(SimulatedStorage(random.Random(1)), config=EngineConfig(dispatch_messages_max=5))
    declare(rig, "q", redelivery_delay_ms=5, redelivery_backoff=2)
    number, delay_ms, consumer = 0, 5, 0
    live, early = set[bytes](), dict[bytes, int]()
    fails: dict[bytes, int] = {}
    held: list[tuple[int, bytes]] = []
    for step, value in steps:
        if step == "publish":
            bodies = [b"%d" % (number + one) for one in range(value)]  # type: ignore[arg-type]
            number += len(bodies)
            live |= set(bodies)
            rig.do(rig.publish(rig.producer(), *bodies))
        elif step == "wait":
            wait(rig, value)  # type: ignore[arg-type]
        elif step == "delay":
            delay_ms = value  # type: ignore[assignment]
            rig.do(UpdateQueue("key", "q", lambda _state: {}, {"redelivery_delay_ms": value}))
        elif step == "take":
            consumer = consumer or rig.consumer()
            rig.loop.set_credit(consumer, value)  # type: ignore[arg-type]
            for effect in rig.do() + rig.do():
                if type(effect) is Deliver:
                    for word, body in zip(effect.words, map(bytes, effect.bodies), strict=True):
                        assert rig.now_us >= early.pop(body, 0)
                        held.append((word, body))
            rig.loop.set_credit(consumer, 0)
        elif step == "give" and held:
            word, body = held.pop(0)
            rig.do(Settle(consumer, pack_words([word]), value))  # type: ignore[arg-type]
            rig.loop.make_due()
            rig.do()
            if value is ACCEPTED:
                live.discard(body)
            elif value is MODIFIED_FAILED:
                fails[body] = fails.get(body, 0) + 1
                early[body] = rig.now_us + 1000 * delay_ms * 2 ** (fails[body] - 1)
        elif step in ("detach", "restart"):
            if step == "detach" and consumer:
                rig.do(DetachConsumer(consumer))
            for _, body in held:
                fails[body] = fails.get(body, 0) + 1
                early[body] = 0 if step == "restart" else rig.now_us + 1000 * delay_ms * 2 ** (fails[body] - 1)
            held, consumer = [], 0
            if step == "restart":
                rig = again(rig)
    assert rig.queue().depth == len(live)
    assert rig.queue().delayed.count <= len(early)
    rig = again(rig)
    wait(rig, 10**15)
    wait(rig, LATE_US)
    assert rig.queue().delayed.count == 0
    assert set(bodies_of(rig, "q")) == live
