"""Locks of deliveries: none ends early, what has expired is offered again, and late outcomes change nothing."""

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ambermq.engine.commands import DetachConsumer, RenewLocks, Settle, UpdateQueue
from ambermq.engine.config import EngineConfig
from ambermq.engine.effects import Answered, Deliver, LocksExpired, RefusedCommand
from ambermq.engine.entries.entry_word import pack_words, unpack_words
from ambermq.engine.entries.outcome import ACCEPTED, MODIFIED_FAILED, RELEASED
from tests.engine.decide.messages.test_dead_letters import again, bodies_of, declare
from tests.engine.decide.messages.test_expiry import wait
from tests.engine.rig import Rig, delivered
from tests.log.simulated import SimulatedStorage

LATE_US = 60_000
"""The latest moment of the end of a lock of these tests after its time, in steps of the rig."""


def locked(rig: Rig, *, lock_ms: int = 1000, count: int = 2, **values: object) -> tuple[int, list[int]]:
    """Declare a queue with locks; return a consumer with the words that it holds."""
    declare(rig, "q", lock_ms=lock_ms, **values)
    consumer = rig.consumer(credit=count)
    rig.do(rig.publish(rig.producer(), *[b"%d" % number for number in range(count)]))
    return consumer, list(rig.queue().held_by(consumer))


def renewal(queue: str, deliveries: list[tuple[int, int]]) -> RenewLocks:
    """Return a command whose answer has the time."""
    return RenewLocks("key", queue, deliveries, lambda locked_until_ms: {"until": locked_until_ms})


def settle(rig: Rig, consumer: int, *words: int, outcome: object = ACCEPTED) -> None:
    """Settle deliveries, and end the delay of the decision."""
    rig.do(Settle(consumer, pack_words(words), outcome))  # type: ignore[arg-type]
    rig.loop.make_due()
    rig.do()


def test_a_delivery_that_is_not_settled_returns() -> None:
    """With one more failed delivery, to its place; the consumer and its other deliveries stay."""
    rig = Rig()
    consumer, (first, second) = locked(rig)
    settle(rig, consumer, second)
    wait(rig, 999_000)
    assert rig.queue().acquired_count == 1
    wait(rig, 1000 + LATE_US)
    assert (rig.queue().acquired_count, rig.queue().available, rig.queue().consumers) == (0, 1, 1)
    assert rig.queue().entries[first >> 16].count == 1
    assert rig.queue().counters.failed == 1
    rig.loop.set_credit(consumer, 1)
    (effect,) = [one for one in rig.do() if type(one) is Deliver]
    assert effect.entries is not None
    assert effect.entries[0] is not None
    assert (effect.words, effect.entries[0].attempt, effect.lock_ms) == ((first,), 1, 1000)


def test_a_delivery_says_until_when_it_is_locked() -> None:
    """By the clock, from the moment when it leaves; a settled one has no lock, nor has one of another queue."""
    rig = Rig()
    declare(rig, "q", lock_ms=30_000)
    declare(rig, "plain")
    for name in ("q", "plain"):
        rig.consumer(name, credit=1)
        rig.do(rig.publish(rig.producer(name), b"a"))
    rig.consumer(credit=1, settled=True)
    producer, plain = rig.producer(), rig.producer("plain")
    effects = rig.do(rig.publish(producer, b"b"), rig.publish(plain, b"c"))
    found = [one.locked_until_ms for one in effects if type(one) is Deliver]
    assert found == [0]
    consumer = rig.consumer(credit=1)
    (effect,) = [one for one in rig.do(rig.publish(producer, b"d")) if type(one) is Deliver]
    assert (effect.consumer, effect.locked_until_ms) == (consumer, rig.now_us // 1000 + 30_000)


def test_the_same_consumer_may_get_it_again() -> None:
    """In the tick of the expiry, whose effect comes first; the second lock is counted by itself."""
    rig = Rig()
    consumer, (first,) = locked(rig, count=1)
    rig.loop.set_credit(consumer, 9)
    rig.now_us += 1_000_000 + LATE_US
    effects = rig.step()
    assert [type(one) for one in effects] == [LocksExpired, Deliver]
    assert list(rig.queue().held_by(consumer)) == [first]
    wait(rig, 990_000)
    assert rig.queue().entries[first >> 16].attempt == 1
    wait(rig, 10_000 + LATE_US)
    assert rig.queue().entries[first >> 16].attempt == 2


def test_an_outcome_in_time_counts() -> None:
    """Although its decision comes after the end of the lock: it came before."""
    rig = Rig()
    consumer, (first, second) = locked(rig)
    rig.now_us += 999_000
    rig.loop.settle(Settle(consumer, pack_words([first]), ACCEPTED))
    rig.now_us += 1000 + LATE_US
    effects = rig.loop.step(rig.now_us)
    assert [unpack_words(one.words) for one in effects if type(one) is LocksExpired] == [(second,)]
    rig.loop.make_due()
    rig.do()
    assert (rig.queue().accepted, rig.queue().depth) == (1, 1)


def test_a_released_message_has_a_lock_of_its_own() -> None:
    """The end of the first one does not end it, and a lost consumer leaves no lock behind."""
    rig = Rig()
    consumer, (first,) = locked(rig, count=1)
    wait(rig, 600_000)
    rig.loop.set_credit(consumer, 1)
    settle(rig, consumer, first, outcome=RELEASED)
    wait(rig, 600_000)
    assert (rig.queue().acquired_count, rig.queue().entries[first >> 16].count) == (1, 0)
    wait(rig, 400_000 + LATE_US)
    assert rig.queue().entries[first >> 16].count == 1
    rig.loop.set_credit(consumer, 1)
    rig.do()
    rig.do(DetachConsumer(consumer))
    assert rig.loop._locks.word_count == 0
    wait(rig, 5_000_000)
    assert rig.queue().entries[first >> 16].count == 2


def test_a_renewed_lock_ends_later() -> None:
    """All deliveries of a request or none; one that has expired, or is of an earlier attempt, is refused."""
    rig = Rig()
    consumer, (first, second) = locked(rig)
    wait(rig, 800_000)
    (answer,) = rig.do(renewal("q", [(first, 0)]))
    assert isinstance(answer, Answered)
    assert answer.value == {"until": rig.now_us // 1000 + 1000}
    wait(rig, 900_000)
    assert list(rig.queue().held_by(consumer)) == [first]
    for deliveries in ([(first, 0), (second, 0)], [(first, 1)]):
        (refusal,) = rig.do(renewal("q", deliveries))
        assert isinstance(refusal, RefusedCommand)
        assert refusal.condition == "amqp:precondition-failed"
    wait(rig, 100_000 + LATE_US)
    assert rig.queue().acquired_count == 0
    (refusal,) = rig.do(renewal("none", [(first, 0)]))
    assert isinstance(refusal, RefusedCommand)
    assert refusal.condition == "amqp:not-found"


def test_expired_locks_count_as_failed_deliveries() -> None:
    """So the redelivery delay and the maximum hold for them."""
    rig = Rig()
    declare(rig, "dead")
    consumer, _ = locked(rig, count=1, redelivery_delay_ms=500, delivery_count_max=2, dead_letter="dead")
    rig.loop.set_credit(consumer, 1)
    wait(rig, 1_000_000 + LATE_US)
    assert rig.queue().delayed.count == 1
    wait(rig, 500_000 + LATE_US)
    assert rig.queue().acquired_count == 1
    wait(rig, 1_000_000 + LATE_US)
    assert bodies_of(rig, "dead") == [b"0"]


def test_a_setting_holds_for_later_deliveries() -> None:
    """Switched off, it ends the locks that there are."""
    rig = Rig()
    consumer, words = locked(rig)
    rig.do(UpdateQueue("key", "q", lambda _state: {}, {"lock_ms": 0}))
    wait(rig, 9_000_000)
    assert rig.queue().acquired_count == 2
    rig.do(UpdateQueue("key", "q", lambda _state: {}, {"lock_ms": 100}))
    rig.loop.set_credit(consumer, 1)
    rig.do(rig.publish(rig.producer(), b"late"))
    wait(rig, 200_000)
    assert list(rig.queue().held_by(consumer)) == words


def test_a_restart_returns_what_was_locked() -> None:
    """At once, as what any consumer held; and the attempts survive."""
    rig = Rig()
    _, (first, _) = locked(rig)
    rig = again(rig)
    assert (rig.queue().available, rig.queue().entries[first >> 16].attempt) == (2, 1)
    consumer = rig.consumer(credit=2)
    rig.do()
    wait(rig, 900_000)
    assert rig.queue().held_by(consumer).count == 2
    wait(rig, 100_000 + LATE_US)
    assert rig.queue().acquired_count == 0


@pytest.mark.parametrize("count", [1, 3000])
def test_locks_end_in_parts(count: int) -> None:
    """A tick ends about as many as it delivers."""
    rig = Rig(config=EngineConfig(dispatch_messages_max=1000))
    locked(rig, count=count)
    rig.now_us += 2_000_000
    seen = []
    while rig.loop.schedule.timer_us <= rig.now_us:
        before = rig.queue().acquired_count
        rig.step()
        rig.completed()
        seen.append(before - rig.queue().acquired_count)
    assert (sum(seen), max(seen)) == (count, min(count, 1000))


_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.integers(1, 4)),
        st.tuples(st.just("wait"), st.sampled_from((1_000, 4_999, 20_000, 50_000, 2_000_000))),
        st.tuples(st.just("lock"), st.sampled_from((5, 30))),
        st.tuples(st.just("take"), st.integers(1, 4)),
        st.tuples(st.just("give"), st.sampled_from((ACCEPTED, RELEASED, MODIFIED_FAILED))),
        st.tuples(st.just("renew"), st.just(0)),
        st.tuples(st.just("detach"), st.just(0)),
        st.tuples(st.just("restart"), st.just(0)),
    ),
    max_size=40,
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps=_STEPS)
def test_no_lock_ends_early_and_nothing_is_lost(steps: list[tuple[str, object]]) -> None:
    """A delivery is held up to its end unless it is settled, not beyond, and what is not accepted is there at last.

    A life folds to the state that the one before it had: `again` checks it.
    """
    rig = Rig(SimulatedStorage(random.Random(1)), config=EngineConfig(dispatch_messages_max=5))
    declare(rig, "q", lock_ms=5)
    number, lock_ms, consumer = 0, 5, 0
    live = set[bytes]()
    held = dict[int, tuple[int, int, bytes]]()

    def note(effects: list[object]) -> None:
        for effect in effects:
            if type(effect) is LocksExpired:
                for word in unpack_words(effect.words):
                    assert held.pop(word)[0] <= rig.now_us
            elif type(effect) is Deliver:
                columns = effect.entries or [None] * len(effect.words)
                for word, entry, body in zip(effect.words, columns, map(bytes, effect.bodies), strict=True):
                    assert word not in held
                    attempt = 0 if entry is None else entry.attempt
                    held[word] = rig.now_us + 1000 * effect.lock_ms, attempt, body

    for step, value in steps:
        if step == "publish":
            bodies = [b"%d" % (number + one) for one in range(value)]  # type: ignore[arg-type]
            number += len(bodies)
            live |= set(bodies)
            note([*rig.do(rig.publish(rig.producer(), *bodies))])
        elif step == "wait":
            rig.now_us += value  # type: ignore[operator]
            while rig.loop.schedule.timer_us <= rig.now_us:
                note([*rig.do()])
            assert all(end_us > rig.now_us - LATE_US for end_us, _, _ in held.values())
        elif step == "lock":
            lock_ms = value  # type: ignore[assignment]
            rig.do(UpdateQueue("key", "q", lambda _state: {}, {"lock_ms": lock_ms}))
        elif step == "take":
            consumer = consumer or rig.consumer()
            rig.loop.set_credit(consumer, value)  # type: ignore[arg-type]
            note([*rig.do(), *rig.do()])
            rig.loop.set_credit(consumer, 0)
        elif step == "give" and held:
            word = next(iter(held))
            _, _, body = held.pop(word)
            settle(rig, consumer, word, outcome=value)
            live -= {body} if value is ACCEPTED else set()
        elif step == "renew" and held:
            word, (_, attempt, body) = next(iter(held.items()))
            effects = rig.do(renewal("q", [(word, attempt)]))
            note([one for one in effects if type(one) is not Answered])
            if any(type(one) is Answered for one in effects):
                held[word] = rig.now_us + 1000 * lock_ms, attempt, body
        elif step == "detach" and consumer:
            rig.do(DetachConsumer(consumer))
            consumer = 0
            held.clear()
        elif step == "restart":
            rig = again(rig)
            consumer = 0
            held.clear()
        assert sorted(held) == sorted([word for one in rig.queue().acquired.values() for word in one])
    rig = again(rig)
    rig.consumer(credit=1000)
    found = [body for _ in range(40) for _, body in delivered(rig.do())]
    assert sorted(found) == sorted(live)
