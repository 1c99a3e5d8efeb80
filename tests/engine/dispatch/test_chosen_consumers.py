"""Exclusive queues and priorities of consumers: who gets messages, and who waits."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.engine.commands import AttachConsumer, DeclareQueue, DetachConsumer, Settle, UpdateQueue
from ambermq.engine.effects import ConsumerReady, Deliver, Drained, Effect
from ambermq.engine.entries.outcome import Outcome, OutcomeKind
from ambermq.engine.settings.queue_settings import Settings
from tests.engine.rig import Rig

EXCLUDING = Outcome(OutcomeKind.MODIFIED, undeliverable_here=True)


def attached(rig: Rig, priority: int = 0, credit: int = 0, selector: str = "") -> int:
    """Attach a consumer of the queue."""
    ready, *_ = rig.do(AttachConsumer("key", "q", "container", "link", selector=selector, priority=priority))
    assert type(ready) is ConsumerReady
    rig.loop.set_credit(ready.consumer, credit)
    return ready.consumer


def counts(effects: list[Effect]) -> Counter[int]:
    """Return how many messages each consumer got."""
    found = Counter[int]()
    for one in effects:
        if type(one) is Deliver:
            found[one.consumer] += len(one.words)
    return found


def send(rig: Rig, count: int) -> Counter[int]:
    """Publish messages; return how many each consumer gets."""
    effects = rig.do(rig.publish(rig.producer(), *[b"m"] * count))
    return counts([*effects, *rig.do()])


def exclusive() -> Rig:
    """Return a broker with an exclusive queue."""
    rig = Rig()
    rig.do(DeclareQueue("key", "q", Settings(exclusive=True)))
    return rig


@pytest.mark.parametrize("selector", ["", "TRUE"])
def test_the_first_consumer_alone_gets_messages(selector: str) -> None:
    """Also without credit; the next one takes over when it goes, with what came back."""
    rig = exclusive()
    first, second = attached(rig, selector=selector), attached(rig, credit=100)
    assert send(rig, 3) == Counter()
    rig.loop.set_credit(first, 2)
    assert counts(rig.do()) == Counter({first: 2}) if not selector else True
    effects = rig.do(DetachConsumer(first)) + rig.do()
    assert sum(counts(effects).values()) == 3
    assert set(counts(effects)) == {second}


def test_the_next_one_waits_for_what_earlier_ones_hold() -> None:
    """After the queue became exclusive: so the order of messages is kept."""
    rig = Rig()
    rig.do(DeclareQueue("key", "q", Settings()))
    first, second = attached(rig, credit=1), attached(rig, credit=10)
    assert send(rig, 2) == Counter({first: 1, second: 1})
    rig.do(UpdateQueue("key", "q", lambda _state: {}, {"exclusive": True}))
    assert send(rig, 2) == Counter()
    rig.loop.set_credit(first, 5)
    assert counts(rig.do()) == Counter({first: 2})
    rig.do(UpdateQueue("key", "q", lambda _state: {}, {"exclusive": False}))
    assert set(send(rig, 4)) == {first, second}


def test_a_waiting_consumer_is_drained_at_once() -> None:
    """It gets nothing, and is told so."""
    rig = exclusive()
    first, second = attached(rig, credit=1), attached(rig)
    assert send(rig, 3) == Counter({first: 1})
    rig.loop.set_credit(second, 5, draining=True)
    assert [one.consumer for one in rig.do() if type(one) is Drained] == [second]


def test_the_highest_priority_with_credit_is_served() -> None:
    """Equal ones take turns; the lower ones get the rest."""
    rig = Rig()
    low, high, equal = attached(rig, -1, 100), attached(rig, 5, 2), attached(rig, 5, 2)
    assert send(rig, 10) == Counter({high: 2, equal: 2, low: 6})
    rig.loop.set_credit(high, 3)
    assert send(rig, 4) == Counter({high: 3, low: 1})
    rig.do(DetachConsumer(high))
    assert rig.queue().available == 0


def test_an_excluded_consumer_leaves_the_message_to_others() -> None:
    """Whatever its priority."""
    rig = Rig()
    high, low = attached(rig, 5, 10), attached(rig, 0, 10)
    assert send(rig, 1) == Counter({high: 1})
    effects = rig.do(Settle(high, rig.queue().held_by(high).to_bytes(), EXCLUDING))
    rig.loop.make_due()
    assert counts([*effects, *rig.do()]) == Counter({low: 1})


@settings(max_examples=80, deadline=None)
@given(
    consumers=st.lists(st.tuples(st.integers(-1, 2), st.integers(0, 6)), min_size=1, max_size=6),
    count=st.integers(0, 30),
    is_exclusive=st.booleans(),
)
def test_every_message_goes_to_someone_allowed(
    consumers: list[tuple[int, int]], count: int, *, is_exclusive: bool
) -> None:
    """As many as there is credit of those that may get some; a higher priority is never passed over."""
    rig = Rig()
    rig.do(DeclareQueue("key", "q", Settings(exclusive=is_exclusive)))
    known = [(attached(rig, priority, credit), priority, credit) for priority, credit in consumers]
    got = send(rig, count) if count else Counter[int]()
    allowed = known[:1] if is_exclusive else known
    assert sum(got.values()) == min(count, sum(credit for _, _, credit in allowed))
    left = count
    for level in sorted({priority for _, priority, _ in allowed}, reverse=True):
        credit = sum(credit for _, priority, credit in allowed if priority == level)
        assert sum(got[one] for one, priority, _ in allowed if priority == level) == min(left, credit)
        left -= min(left, credit)
