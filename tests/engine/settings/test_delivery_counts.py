"""`delivery_count_max`: a message whose deliveries fail that often is discarded; `paused`: nothing is delivered."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.engine.commands import AttachConsumer, DeclareQueue, DetachConsumer, Settle, UpdateQueue
from ambermq.engine.config import EngineConfig
from ambermq.engine.effects import ConsumerEnded, ConsumerReady, Drained
from ambermq.engine.entries.outcome import ACCEPTED, MODIFIED_FAILED, RELEASED, Outcome, OutcomeKind
from ambermq.engine.events.registry import TYPE_NAMES
from ambermq.engine.model.lifetime import Dynamic, Lifetime
from ambermq.engine.model.queue_template import QueueTemplate, QueueTemplates
from ambermq.engine.settings.queue_settings import Settings
from tests.engine.rig import Rig, delivered

_DISCARDED = {name: number for number, name in TYPE_NAMES.items()}["discarded"]
MODIFIED = Outcome(OutcomeKind.MODIFIED)


def filled(count_max: int, *bodies: bytes, config: EngineConfig | None = None) -> tuple[Rig, int]:
    """Return a broker with a queue that holds messages, and a consumer of it without credit."""
    rig = Rig(config=config)
    rig.do(DeclareQueue("key", "q", Settings(delivery_count_max=count_max)))
    rig.do(rig.publish(rig.producer(), *bodies))
    return rig, rig.consumer()


def take(rig: Rig, consumer: int, count: int) -> list[bytes]:
    """Return what a consumer gets for credit."""
    rig.loop.set_credit(consumer, count)
    return [body for _, body in delivered(rig.do())]


def restarted(rig: Rig) -> Rig:
    """Return the life after a SIGKILL that comes when all is written."""
    rig.loop.make_due()
    rig.do()
    return rig.next_life()


def settle(rig: Rig, consumer: int, outcome: Outcome) -> None:
    """Settle everything that a consumer holds, without further credit."""
    rig.loop.set_credit(consumer, 0)
    rig.do(Settle(consumer, rig.queue().held_by(consumer).to_bytes(), outcome))


def test_a_message_fails_as_often_as_its_queue_allows() -> None:
    """Then it is gone by an event with that reason, and the others stay."""
    rig, consumer = filled(3, b"poison", b"good")
    for count in range(3):
        assert rig.queue().available == 2, count
        assert take(rig, consumer, 1) == [b"poison"]
        settle(rig, consumer, MODIFIED_FAILED)
    assert rig.queue().available == 1
    assert (rig.queue().counters.discarded, rig.queue().counters.failed) == (1, 3)
    assert take(rig, consumer, 5) == [b"good"]
    assert sum(batch.count(_DISCARDED) for batch in rig.batches()) == 1


@pytest.mark.parametrize("outcome", [RELEASED, MODIFIED])
def test_what_has_not_failed_does_not_count(outcome: Outcome) -> None:
    """Released, and modified without delivery-failed."""
    rig, consumer = filled(1, b"one")
    for _ in range(5):
        assert take(rig, consumer, 1) == [b"one"]
        settle(rig, consumer, outcome)
    assert rig.queue().available == 1


def test_a_lost_consumer_fails_what_it_was_sent_and_nothing_else() -> None:
    """In one part or in many: what it held once too often is discarded, before another consumer gets it."""
    rig, consumer = filled(2, *(b"%d" % number for number in range(9)), config=EngineConfig(tick_changes_max=4))
    other = rig.consumer()
    for _ in range(2):
        assert rig.queue().available == 9
        assert len(take(rig, consumer, 4)) == 4
        rig.loop.set_credit(consumer, 0)
        rig.do(DetachConsumer(consumer))
        consumer = rig.consumer()
    assert (rig.queue().available, rig.queue().counters.discarded) == (5, 4)
    assert take(rig, other, 9) == [b"%d" % number for number in range(4, 9)]


def test_a_restart_is_no_reason_to_discard() -> None:
    """A broker that crashes is no poison message: the count rises, and the message is offered once more at least."""
    rig, consumer = filled(1, b"one")
    assert take(rig, consumer, 1) == [b"one"]
    for _ in range(3):
        rig = restarted(rig)
        consumer = rig.consumer()
        assert take(rig, consumer, 1) == [b"one"]
    settle(rig, consumer, MODIFIED_FAILED)
    assert rig.queue().depth == 0
    assert restarted(rig).queue().counters.discarded == 1


def test_a_lowered_maximum_waits_for_the_next_failure() -> None:
    """By itself it removes nothing; 0 switches it off."""
    rig, consumer = filled(0, b"one")
    for _ in range(4):
        take(rig, consumer, 1)
        settle(rig, consumer, MODIFIED_FAILED)
    rig.do(UpdateQueue("key", "q", lambda _state: {}, {"delivery_count_max": 2}))
    assert rig.queue().available == 1
    assert take(rig, consumer, 1) == [b"one"]
    settle(rig, consumer, RELEASED)
    assert rig.queue().available == 1
    take(rig, consumer, 1)
    settle(rig, consumer, MODIFIED_FAILED)
    assert rig.queue().available == 0


def test_a_temporary_queue_ends_with_its_last_message() -> None:
    """Also if that was discarded."""
    templates = QueueTemplates((QueueTemplate(Settings("temporary", delivery_count_max=1)),)).with_defaults()
    rig = Rig(config=EngineConfig(templates=templates))
    wanted = Dynamic(Lifetime.NO_MESSAGES)
    (ready,) = rig.do(AttachConsumer("key", "", "container", "link", dynamic=wanted))
    assert isinstance(ready, ConsumerReady)
    (queue,) = rig.loop.state.queues.values()
    rig.do(rig.publish(rig.producer(f"/queues/{queue.name}"), b"one"))
    assert take(rig, ready.consumer, 1) == [b"one"]
    rig.loop.set_credit(ready.consumer, 0)
    held = rig.loop.state.queues[queue.id].held_by(ready.consumer).to_bytes()
    effects = rig.do(Settle(ready.consumer, held, MODIFIED_FAILED))
    assert not rig.loop.state.queues
    assert any(isinstance(effect, ConsumerEnded) for effect in effects)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 3), st.lists(st.tuples(st.integers(1, 4), st.sampled_from("fradk")), max_size=25))
def test_no_message_is_delivered_more_often_than_it_may_fail(count_max: int, steps: list[tuple[int, str]]) -> None:
    """Whatever outcomes, detaches and kills come in between; and none is lost before."""
    rig, consumer = filled(count_max, *(b"%d" % number for number in range(5)))
    failures: dict[bytes, int] = {}
    accepted: set[bytes] = set()
    for count, step in steps:
        got = take(rig, consumer, count)
        assert all(failures.get(body, 0) < count_max for body in got)
        held = set(got)
        rig.loop.set_credit(consumer, 0)
        if step == "k":
            rig = restarted(rig)
            consumer = rig.consumer()
            continue
        if step == "d":
            rig.do(DetachConsumer(consumer))
            consumer = rig.consumer()
        else:
            settle(rig, consumer, {"f": MODIFIED_FAILED, "r": RELEASED, "a": ACCEPTED}[step])
        for body in held:
            failures[body] = failures.get(body, 0) + (step in "fd")
        accepted |= held if step == "a" else set()
    queue = rig.queue()
    gone = {body for body, count in failures.items() if count >= count_max} | accepted
    assert queue.available <= 5 - len(accepted)
    assert queue.available >= 5 - len(gone) - queue.counters.discarded
    assert queue.counters.discarded + len(accepted) + queue.depth == 5


def test_a_paused_queue_takes_and_delivers_nothing() -> None:
    """Producers go on, a drain is answered, what is held can be settled, and a restart does not resume it."""
    rig, consumer = filled(0, b"one", b"two")
    assert take(rig, consumer, 1) == [b"one"]
    rig.do(UpdateQueue("key", "q", lambda _state: {}, {"paused": True}))
    assert take(rig, consumer, 5) == []
    rig.do(rig.publish(rig.producer(), b"three"))
    rig.loop.set_credit(consumer, 5, draining=True)
    assert [type(effect) for effect in rig.do()] == [Drained]
    rig.do(Settle(consumer, rig.queue().held_by(consumer).to_bytes(), RELEASED))
    assert rig.queue().available == 3
    rig = restarted(rig)
    consumer = rig.consumer(credit=9)
    assert delivered(rig.do()) == []
    effects = rig.do(UpdateQueue("key", "q", lambda _state: {}, {"paused": False}))
    assert delivered(effects) == [(consumer, b"one"), (consumer, b"two"), (consumer, b"three")]
