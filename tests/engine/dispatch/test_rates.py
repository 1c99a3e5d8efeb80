"""Consumers with a rate: how many messages they get by which time, and what others get."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.engine.commands import AttachConsumer, DeclareQueue, DetachConsumer, Settle
from ambermq.engine.config import EngineConfig
from ambermq.engine.effects import ConsumerReady, Deliver, Drained, Effect
from ambermq.engine.entries.entry_word import pack_words
from ambermq.engine.entries.outcome import ACCEPTED
from ambermq.engine.loop.schedule import FOREVER_US
from ambermq.engine.settings.queue_settings import Settings
from tests.engine.rig import Rig

SECOND = 1_000_000


def attached(rig: Rig, rate: float, credit: int = 0, **values: object) -> int:
    """Attach a consumer."""
    ready, *_ = rig.do(AttachConsumer("key", "q", "container", "link", rate=rate, **values))  # type: ignore[arg-type]
    assert type(ready) is ConsumerReady
    rig.loop.set_credit(ready.consumer, credit)
    return ready.consumer


def count_of(effects: list[Effect], consumer: int) -> int:
    """Return how many messages a consumer got."""
    return sum(len(one.words) for one in effects if type(one) is Deliver and one.consumer == consumer)


def after(rig: Rig, duration_us: int) -> list[Effect]:
    """Advance the time, with a step at each timer; return the effects."""
    end_us, effects = rig.now_us + duration_us, rig.do()
    while rig.loop.schedule.next_us <= end_us:
        rig.now_us = max(rig.now_us, rig.loop.schedule.next_us)
        effects += rig.do()
    rig.now_us = end_us
    return effects + rig.do()


def filled(count: int, *, config: EngineConfig | None = None) -> Rig:
    """Return a broker with a queue of messages."""
    rig = Rig(config=config)
    rig.do(DeclareQueue("key", "q", Settings()))
    rig.do(rig.publish(rig.producer(), *[b"m"] * count))
    return rig


@pytest.mark.parametrize("selector", ["", "TRUE"])
@pytest.mark.parametrize("rate", [2, 10, 100])
def test_it_gets_its_rate(rate: int, selector: str) -> None:
    """Those of 50 ms at once, or one; then as many a second as it says."""
    rig = filled(1000)
    consumer, burst = attached(rig, rate, 1000, selector=selector), max(rate // 20, 1)
    assert count_of(rig.do(), consumer) == burst
    assert count_of(after(rig, 3 * SECOND), consumer) == 3 * rate
    assert rig.queue().held_by(consumer).count == 3 * rate + burst


def test_new_credit_brings_no_more() -> None:
    """Nor does the settlement of what it got; the time without messages brings those of 50 ms at most."""
    rig = filled(10)
    consumer = attached(rig, 10, 1)
    total = 0
    for _ in range(20):
        effects = after(rig, SECOND // 20)
        total += count_of(effects, consumer)
        for effect in effects:
            if type(effect) is Deliver:
                rig.do(Settle(consumer, pack_words(effect.words), ACCEPTED))
        rig.loop.set_credit(consumer, 5)
    assert total == 10
    after(rig, 10 * SECOND)
    assert rig.loop.schedule.timer_us == FOREVER_US
    assert count_of(rig.do(rig.publish(rig.producer(), *[b"m"] * 10)) + rig.do(), consumer) == 1


def test_others_get_the_rest() -> None:
    """Also those of a lower priority: what a rate holds back is no credit."""
    rig = filled(100)
    slow, other = attached(rig, 1, priority=5), attached(rig, 0)
    rig.loop.set_credit(slow, 50)
    rig.loop.set_credit(other, 50)
    effects = rig.do() + rig.do()
    assert (count_of(effects, slow), count_of(effects, other)) == (1, 50)


@pytest.mark.parametrize("selector", ["", "TRUE"])
def test_a_drain_is_answered_at_once(selector: str) -> None:
    """What the rate holds back is not available."""
    rig = filled(10)
    consumer = attached(rig, 1, 5, selector=selector)
    assert count_of(rig.do(), consumer) == 1
    rig.loop.set_credit(consumer, 4, draining=True)
    effects = rig.do()
    assert [type(one) for one in effects] == [Drained]
    assert count_of(after(rig, 10 * SECOND), consumer) == 0
    assert rig.loop.schedule.timer_us == FOREVER_US


def test_an_ended_consumer_has_no_timer() -> None:
    """However many come and go."""
    rig = filled(10)
    for _ in range(1500):
        consumer = attached(rig, 0.001, 10)
        rig.do()
        rig.do(DetachConsumer(consumer))
    assert rig.loop.schedule.timer_us == FOREVER_US
    assert len(rig.loop._rates._timers) < 1100
    assert not rig.loop.demand.starved


def test_many_consumers_are_served_in_bounded_ticks() -> None:
    """A tick refills no more consumers than it delivers messages."""
    rig = filled(300, config=EngineConfig(dispatch_messages_max=10))
    consumers = [attached(rig, 1) for _ in range(50)]
    for consumer in consumers:
        rig.loop.set_credit(consumer, 10)
    after(rig, 0)
    before = rig.queue().delivered
    assert before == 50
    rig.now_us += SECOND
    rig.step()
    rig.completed()
    assert rig.queue().delivered - before <= 10
    effects = after(rig, 0)
    assert rig.queue().delivered == 100
    assert max(count_of(effects, one) for one in consumers) == 1


@given(st.integers(0, 2**32))
@settings(max_examples=40, deadline=None)
def test_no_message_waits_in_vain(seed: int) -> None:
    """Whatever credit, settlement and time do: no time has more than the rate, and with credit all arrive at last."""
    draw = random.Random(seed)
    rate, rig = draw.choice([1, 7, 50, 300]), filled(60)
    consumer, got = attached(rig, rate, selector=draw.choice(["", "TRUE"])), list[tuple[int, int]]()
    begin_us = rig.now_us
    for _ in range(25):
        rig.loop.set_credit(consumer, draw.randrange(8), draining=draw.random() < 0.1)
        effects = after(rig, draw.choice([0, 1000, 20_000, 150_000]))
        got.append((rig.now_us, count_of(effects, consumer)))
        words = [word for one in effects if type(one) is Deliver for word in one.words]
        if words and draw.random() < 0.7:
            rig.do(Settle(consumer, pack_words(words), ACCEPTED))
    for first in range(len(got)):
        since_us = got[first - 1][0] if first else begin_us
        for last in range(first, len(got)):
            total = sum(count for _, count in got[first : last + 1])
            assert total <= rate * (got[last][0] - since_us) / SECOND + max(rate / 20, 1)
    rig.loop.set_credit(consumer, 60)
    after(rig, 61 * SECOND)
    assert not rig.queue().available
