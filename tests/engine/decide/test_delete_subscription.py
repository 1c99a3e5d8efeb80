"""Subscriptions are found by name, and deleted by hand."""

from typing import Any

import pytest

from ambermq.engine.commands import AttachMember, AttachProducer, DeleteQueue, DeleteSubscription, DetachProducer
from ambermq.engine.config import EngineConfig
from ambermq.engine.decide.delete_subscription import subscription_named
from ambermq.engine.effects import Answered, ConsumerEnded, Effect, ProducerReady, RefusedCommand
from ambermq.engine.errors import Refused
from ambermq.engine.fold.apply import fold
from ambermq.engine.model.lifetime import Dynamic, Lifetime
from ambermq.engine.model.state import EMPTY_STATE
from ambermq.engine.model.subscription import SubscriptionRequest
from tests.engine.decide.test_subscribe import DURABLE, leave, subscribe
from tests.engine.world import World


def delete(world: World, name: str, **fields: Any) -> list[Effect]:
    """Delete a subscription; return what comes of it."""
    return world.do(DeleteSubscription("key", name, **fields))


def refused(world: World, name: str, **fields: Any) -> tuple[str, str]:
    """Delete a subscription in vain; nothing has happened."""
    before = len(world.events)
    (effect,) = delete(world, name, **fields)
    assert isinstance(effect, RefusedCommand)
    assert len(world.events) == before
    return effect.condition, effect.description


def test_a_name_means_one_subscription_or_none() -> None:
    """Its own name, with the container where several have it, or the name of its queue."""
    world = World()
    mine, yours = (
        subscribe(world, subscription_request=DURABLE),
        subscribe(world, container="you", subscription_request=DURABLE),
    )
    assert subscription_named(world.state, "s", "me") == mine
    assert subscription_named(world.state, "s", "you") == yours
    assert subscription_named(world.state, f"$subscription.{yours}") == yours
    with pytest.raises(Refused, match="means 2 subscriptions") as both:
        subscription_named(world.state, "s")
    assert both.value.condition == "amqp:precondition-failed"
    for name, container in (("other", None), ("s", "unknown"), ("q", None)):
        with pytest.raises(Refused, match="no subscription") as none:
            subscription_named(world.state, name, container)
        assert none.value.condition == "amqp:not-found"


@pytest.mark.parametrize("selector", ["", "a = 1"], ids=["plain", "with-selector"])
def test_one_that_is_not_used_goes_with_all_it_is_made_of(selector: str) -> None:
    """Its queue, its attachments, and the muxer of its selector."""
    world = World()
    before = (len(world.state.queues), len(world.state.muxers))
    queue = subscribe(world, subscription_request=DURABLE, selector=selector)
    leave(world, queue)
    (answer,) = delete(world, "s")
    assert answer == Answered("key", {"messages": 0})
    assert not world.state.subscriptions
    assert not world.state.subscription_queues
    assert (len(world.state.queues), len(world.state.muxers)) == before
    topic = world.state.muxer_named("TOPIC")
    assert topic is not None
    assert not topic.attachments
    assert fold(EMPTY_STATE, world.events) == world.state


def test_one_that_is_used_goes_only_by_force() -> None:
    """Its receivers are ended then."""
    world = World()
    queue = subscribe(world, subscription_request=DURABLE)
    assert refused(world, "s") == ("amqp:precondition-failed", "subscription 's' has 1 receivers")
    ended, answer = delete(world, "s", force=True)
    assert isinstance(ended, ConsumerEnded)
    assert ended.condition == "amqp:resource-deleted"
    assert isinstance(answer, Answered)
    assert queue not in world.state.queues
    assert not world.state.consumers


def test_a_temporary_topic_that_lived_by_it_goes_too() -> None:
    """As where its receiver leaves."""
    world = World()
    made = world.do(AttachProducer("key", "", "me", "l", dynamic=Dynamic(Lifetime.NO_LINKS, is_topic=True)))[-1]
    assert isinstance(made, ProducerReady)
    name = made.address.removeprefix("/topics/")
    queue = subscribe(world, name, subscription_request=SubscriptionRequest("s"))
    topic = world.state.muxer_named(name)
    assert topic is not None
    (producer,) = world.state.producers.values()
    assert producer.node == topic.id
    delete(world, f"$subscription.{queue}", force=True)
    assert world.state.muxer_named(name) is not None, "it has a producer still"
    queue = subscribe(world, name, subscription_request=SubscriptionRequest("s"))
    leave_producer(world, producer.id)
    assert world.state.muxer_named(name) is not None, "it has a subscription still"
    delete(world, f"$subscription.{queue}", force=True)
    assert world.state.muxer_named(name) is None


@pytest.mark.parametrize("selector", ["", "a = 1"], ids=["plain", "with-selector"])
def test_so_it_does_where_the_queue_is_deleted(selector: str) -> None:
    """A subscription is its queue, whatever it is deleted as."""
    world = World()
    made = world.do(AttachProducer("key", "", "me", "l", dynamic=Dynamic(Lifetime.NO_LINKS, is_topic=True)))[-1]
    assert isinstance(made, ProducerReady)
    queue = subscribe(
        world, made.address.removeprefix("/topics/"), subscription_request=SubscriptionRequest("s"), selector=selector
    )
    leave_producer(world, made.producer)
    effects = world.do(DeleteQueue("key", f"/queues/$subscription.{queue}"))
    assert effects[-1] == Answered("key", {"messages": 0})
    assert {muxer.name for muxer in world.state.muxers.values()} == {"QUEUE", "TOPIC"}
    assert fold(EMPTY_STATE, world.events) == world.state


@pytest.mark.parametrize("changes_max", [1, 2, 3, 10_000])
@pytest.mark.parametrize("selector", ["", "a = 1"], ids=["plain", "with-selector"])
def test_so_it_does_where_that_takes_several_ticks(selector: str, changes_max: int) -> None:
    """Its topic was left in the first of them."""
    world = World(EngineConfig(tick_changes_max=changes_max))
    made = world.do(AttachProducer("key", "", "me", "l", dynamic=Dynamic(Lifetime.NO_LINKS, is_topic=True)))[-1]
    assert isinstance(made, ProducerReady)
    queue = subscribe(
        world, made.address.removeprefix("/topics/"), subscription_request=SubscriptionRequest("s"), selector=selector
    )
    name = f"/queues/$subscription.{queue}"
    for number in range(4):
        world.do(AttachMember("key", "TOPIC", name, f"number.{number}"))
    leave_producer(world, made.producer)
    assert world.do(DeleteQueue("key", name))[-1] == Answered("key", {"messages": 0})
    assert {muxer.name for muxer in world.state.muxers.values()} == {"QUEUE", "TOPIC"}
    assert fold(EMPTY_STATE, world.events) == world.state


def leave_producer(world: World, producer: int) -> None:
    """Detach a producer."""
    world.do(DetachProducer(producer))
