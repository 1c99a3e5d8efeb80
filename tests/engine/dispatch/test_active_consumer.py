"""The active consumer of an exclusive queue, and consumers that want to be the only one."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.engine.commands import AttachConsumer, DeclareQueue, DetachConsumer, Settle, UpdateQueue
from ambermq.engine.effects import ActiveChanged, ConsumerReady, Deliver, Effect, RefusedCommand
from ambermq.engine.entries.entry_word import pack_words
from ambermq.engine.entries.outcome import ACCEPTED
from ambermq.engine.settings.queue_settings import Settings
from tests.engine.decide.messages.test_dead_letters import again
from tests.engine.rig import Rig


def told(effects: list[Effect]) -> list[tuple[int, bool]]:
    """Return what consumers are told, in order."""
    return [(one.consumer, one.is_active) for one in effects if type(one) is ActiveChanged]


def attached(rig: Rig, credit: int = 0, selector: str = "") -> tuple[int, list[tuple[int, bool]]]:
    """Attach a consumer; return it, and what is told after its attach is answered."""
    ready, *others = rig.do(AttachConsumer("key", "q", "container", "link", selector=selector))
    assert type(ready) is ConsumerReady
    rig.loop.set_credit(ready.consumer, credit)
    return ready.consumer, told([*others, *rig.do()])


def exclusive(*, is_so: bool = True) -> Rig:
    """Return a broker with a queue."""
    rig = Rig()
    rig.do(DeclareQueue("key", "q", Settings(exclusive=is_so)))
    return rig


def update(rig: Rig, **changes: object) -> list[tuple[int, bool]]:
    """Change settings of the queue; return what is told."""
    return told(rig.do(UpdateQueue("key", "q", lambda _state: {}, changes)))


@pytest.mark.parametrize("selector", ["", "TRUE"])
def test_each_consumer_is_told(selector: str) -> None:
    """The first one that it is active, the others that they are not; the next one when the first one goes."""
    rig = exclusive()
    first, said = attached(rig, selector=selector)
    assert said == [(first, True)]
    second, said = attached(rig)
    assert said == [(second, False)]
    third, said = attached(rig, 10)
    assert said == [(third, False)]
    assert told(rig.do(DetachConsumer(second))) == []
    assert told(rig.do(DetachConsumer(first)) + rig.do()) == [(third, True)]
    assert told(rig.do(DetachConsumer(third))) == []
    again_first, said = attached(rig)
    assert said == [(again_first, True)]


def test_a_queue_that_is_not_exclusive_says_nothing() -> None:
    """Until it is: then the active one is told, and when that is over."""
    rig = exclusive(is_so=False)
    first, said = attached(rig)
    assert said == []
    assert attached(rig)[1] == []
    assert update(rig, exclusive=True) == [(first, True)]
    assert update(rig, paused=True) == []
    third, said = attached(rig)
    assert said == [(third, False)]
    assert update(rig, exclusive=False) == [(first, False)]
    assert update(rig, exclusive=True, paused=False) == [(first, True)]


def test_it_is_told_before_its_first_message() -> None:
    """Also of messages that are durable already, and after what the one before held is back."""
    rig = exclusive()
    first, _ = attached(rig, 2)
    second, _ = attached(rig, 10)
    rig.do(rig.publish(rig.producer(), b"a", b"b", b"c"))
    assert rig.queue().held_by(first).count == 2
    effects = rig.do(DetachConsumer(first)) + rig.do()
    kinds = [type(one) for one in effects if type(one) in (ActiveChanged, Deliver)]
    assert kinds[0] is ActiveChanged
    assert kinds.count(ActiveChanged) == 1
    assert rig.queue().held_by(second).count == 3


def locked(rig: Rig, **values: bool) -> RefusedCommand:
    """Return the refusal of a consumer."""
    (refusal,) = rig.do(AttachConsumer("key", "q", "container", "link", **values))
    assert type(refusal) is RefusedCommand
    assert refusal.condition == "amqp:resource-locked"
    return refusal


def test_the_only_consumer_refuses_others() -> None:
    """While it is there; it is refused where another one is."""
    rig = exclusive(is_so=False)
    (ready,) = rig.do(AttachConsumer("key", "q", "container", "link", is_exclusive=True))
    assert type(ready) is ConsumerReady
    assert locked(rig).description == "queue 'q' has an exclusive consumer, which is its only one"
    locked(rig, is_exclusive=True)
    rig.do(DetachConsumer(ready.consumer))
    rig.consumer()
    assert "has 1 consumer" in locked(rig, is_exclusive=True).description
    rig.consumer()
    again(rig)


def test_a_start_ends_the_lock() -> None:
    """As it ends every link; the lock itself is in the log."""
    rig = exclusive(is_so=False)
    rig.do(AttachConsumer("key", "q", "container", "link", is_exclusive=True))
    (consumer,) = rig.loop.state.consumers.values()
    assert consumer.is_exclusive
    rig = again(rig)
    rig.consumer()


def test_a_new_queue_is_made_for_the_only_consumer() -> None:
    """The attach creates it; a shared subscription takes another one, an exclusive one does not."""
    rig = Rig()
    rig.do(AttachConsumer("key", "q", "container", "link", is_exclusive=True))
    locked(rig)


@given(st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_the_last_word_is_true(seed: int) -> None:
    """Whatever attaches, goes and changes: who was last told to be active is the first one, if the queue is quiet."""
    draw, rig = random.Random(seed), exclusive()
    producer, known, live = rig.producer(), dict[int, bool](), list[int]()
    is_exclusive, effects = True, list[Effect]()
    for _ in range(30):
        match draw.randrange(6):
            case 0 | 1:
                effects = rig.do(AttachConsumer("key", "q", "container", "link", selector=draw.choice(["", "TRUE"])))
                (ready,) = [one for one in effects if type(one) is ConsumerReady]
                live.append(ready.consumer)
                rig.loop.set_credit(ready.consumer, draw.randrange(3))
            case 2 if live:
                effects = rig.do(DetachConsumer(live.pop(draw.randrange(len(live)))))
            case 3:
                is_exclusive = draw.random() < 0.7
                effects = rig.do(UpdateQueue("key", "q", lambda _state: {}, {"exclusive": is_exclusive}))
            case 4 if live:
                consumer = draw.choice(live)
                words = list(rig.queue().held_by(consumer))
                effects = rig.do(Settle(consumer, pack_words(words), ACCEPTED)) if words else []
                rig.loop.set_credit(consumer, draw.randrange(3))
            case _:
                effects = rig.do(rig.publish(producer, b"m"))
        known.update(told([*effects, *rig.do()]))
        active = [one for one in live if known.get(one)]
        assert active == (sorted(live)[:1] if is_exclusive else [])
