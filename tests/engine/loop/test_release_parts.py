"""A consumer that holds more messages than a tick takes returns them in parts."""

from collections.abc import Callable

import pytest

from ambermq.engine.commands import AttachConsumer, Command, DeleteQueue, DetachConsumer, Settle
from ambermq.engine.config import EngineConfig
from ambermq.engine.effects import Answered, ConsumerEnded, ConsumerReady
from ambermq.engine.entries.entry_word import pack_words
from ambermq.engine.entries.outcome import ACCEPTED, MODIFIED_FAILED, REJECTED, RELEASED, Outcome
from ambermq.engine.loop.schedule import SOON
from ambermq.engine.model.queue import Queue
from ambermq.engine.model.subscription import SubscriptionRequest
from tests.engine.rig import Rig, held

_COUNT_MAX = 20
DURABLE = SubscriptionRequest(is_durable=True)


def _small() -> Rig:
    return Rig(config=EngineConfig(tick_changes_max=_COUNT_MAX))


def _changes(rig: Rig, read: Callable[[], int]) -> list[int]:
    """How much a number changes in each tick until all is decided."""
    changes, before = [], read()
    while rig.due >= SOON:
        rig.step()
        changes.append(abs(read() - before))
        before = read()
        rig.completed()
    return changes


@pytest.mark.parametrize("unsent", [0, 13, 30, 90])
def test_the_end_of_a_consumer_returns_few_messages_a_tick(unsent: int) -> None:
    """Those that were not sent count as no failed delivery; the state is that of a consumer that ends at once."""
    queues: list[Queue] = []
    for config in (EngineConfig(), EngineConfig(tick_changes_max=_COUNT_MAX)):
        rig = Rig(config=config)
        consumer, words = held(rig, 90)
        rig.loop.submit(DetachConsumer(consumer, pack_words(words[90 - unsent :])))
        changes = _changes(rig, lambda rig=rig: rig.queue().acquired_count)  # type: ignore[misc]
        assert sum(changes) == 90
        assert max(changes) <= config.tick_changes_max
        assert not rig.loop.state.consumers
        queues.append(rig.queue())
        rig.loop.log.write(rig.now_us)
        rig.next_life()
    whole, parts = queues
    assert (parts.returned, parts.entries, parts.counters) == (whole.returned, whole.entries, whole.counters)
    assert parts.counters.failed == 90 - unsent


def test_a_kill_between_the_parts_loses_nothing() -> None:
    """Each message has one failed delivery afterwards, whatever part it was in."""
    rig = _small()
    consumer, words = held(rig, 90)
    rig.step(DetachConsumer(consumer))
    assert 0 < rig.queue().acquired_count < 90
    rig.loop.log.write(rig.now_us)
    again = Rig(rig.storage) if rig.kill() is None else rig
    assert list(again.queue().returned) == words
    assert {entry.count for entry in again.queue().entries.values()} == {1}


def test_what_comes_back_in_parts_goes_to_others() -> None:
    """The ended consumer gets none of it again, though it had credit."""
    rig = _small()
    consumer, words = held(rig, 90)
    rig.loop.set_credit(consumer, 1000)
    other = rig.consumer(credit=1000)
    rig.do(DetachConsumer(consumer))
    assert sorted(rig.queue().held_by(other)) == words


def test_the_link_of_a_subscription_is_stolen_in_parts() -> None:
    """The old link hears of it once, and the new one is answered when the old one has returned all."""
    rig = _small()
    attach = AttachConsumer("one", "/topics/t", "container", "link", subscription_request=DURABLE)
    (ready,) = rig.do(attach)
    assert type(ready) is ConsumerReady
    rig.loop.set_credit(ready.consumer, 1000)
    rig.do(rig.publish(rig.producer("/topics/t"), *[b"x"] * 90))
    queue = rig.loop.state.consumers[ready.consumer].queue
    effects = rig.step(AttachConsumer("two", "/topics/t", "container", "link", subscription_request=DURABLE))
    effects += rig.completed()
    assert [type(effect) for effect in effects] == [ConsumerEnded]
    assert rig.loop.state.queues[queue].acquired_count == 90 - _COUNT_MAX // 2
    *more, again = rig.do()
    assert type(again) is ConsumerReady
    assert all(type(effect) is ConsumerEnded and effect.consumer == ready.consumer for effect in more)
    assert rig.loop.state.queues[queue].available == 90
    assert rig.loop.state.queues[queue].consumers == 1


def test_a_deleted_queue_with_many_links_releases_in_parts() -> None:
    """A part ends at most one consumer that holds more than it takes."""
    rig = _small()
    consumer, _ = held(rig, 90)
    for _ in range(30):
        rig.consumer()
    rig.loop.submit(DeleteQueue("key", "q"))
    changes = _changes(rig, lambda: 0 if not rig.loop.state.queues else rig.queue().acquired_count)
    assert max(changes) <= _COUNT_MAX
    assert not rig.loop.state.queues
    assert consumer not in rig.loop.state.consumers


@pytest.mark.parametrize(("outcome", "most"), [(MODIFIED_FAILED, 30), (RELEASED, 30), (REJECTED, 100), (ACCEPTED, 100)])
def test_settlements_count_by_their_messages(outcome: Outcome, most: int) -> None:
    """A tick takes those whose messages are as many as its changes, and one more."""
    rig = _small()
    consumer, words = held(rig, 200)
    commands: list[Command] = [
        Settle(consumer, pack_words(words[start : start + 10]), outcome, ("reply", start))
        for start in range(0, 200, 10)
    ]
    for command in commands:
        rig.loop.submit(command)
    changes = _changes(rig, lambda: rig.queue().acquired_count)
    assert sum(changes) == 200
    assert max(changes) <= most
    assert type(rig.do(DeleteQueue("key", "q"))[-1]) is Answered
