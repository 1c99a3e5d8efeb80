"""A subscription is found, made, or made anew."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.engine.commands import AttachConsumer, AttachProducer, DeleteSubscription, DetachConsumer
from ambermq.engine.config import EngineConfig
from ambermq.engine.effects import Answered, ConsumerEnded, ConsumerReady, Effect, ProducerReady, RefusedCommand
from ambermq.engine.errors import Refused
from ambermq.engine.events import Subscribed
from ambermq.engine.model.lifetime import Dynamic, Lifetime
from ambermq.engine.model.subscription import Subscription, SubscriptionRequest
from tests.engine.world import World

DURABLE = SubscriptionRequest("s", is_durable=True)
SHARED = SubscriptionRequest("s", is_durable=True, is_shared=True)


def subscribe(world: World, topic: str = "t", container: str = "me", **fields: Any) -> int:
    """Subscribe; return the queue."""
    ready = attach(world, topic, container, **fields)[-1]
    assert type(ready) is ConsumerReady, ready
    return world.state.consumers[ready.consumer].queue


def attach(world: World, topic: str = "t", container: str = "me", **fields: Any) -> list[Effect]:
    """Subscribe; return what comes of it."""
    return world.do(AttachConsumer("key", f"/topics/{topic}", container, "link", **fields))


def refused(world: World, *arguments: str, **fields: Any) -> tuple[str, str]:
    """Subscribe in vain."""
    (effect,) = attach(world, *arguments, **fields)
    assert type(effect) is RefusedCommand
    return effect.condition, effect.description


def leave(world: World, queue: int, *, is_closed: bool = False) -> None:
    """Detach every receiver of a queue."""
    for consumer in [one.id for one in world.state.consumers.values() if one.queue == queue]:
        world.do(DetachConsumer(consumer, is_closed=is_closed))


NAMES = st.sampled_from(["a", "b", "a/b", "b/a", "a|b", ""])
ASKED = st.tuples(NAMES, NAMES, st.booleans(), st.booleans())


@given(ASKED, ASKED)
@settings(deadline=None)
def test_keys_are_tuples(one: tuple[str, str, bool, bool], other: tuple[str, str, bool, bool]) -> None:
    """Two durable subscriptions are one where container (of global ones: none) and name are the same, and else two.

    A container without an id has none but global ones.
    """
    world = World()
    queues = []
    for container, name, is_shared, is_global in (one, other):
        asked = SubscriptionRequest(name or "link", is_durable=True, is_shared=is_shared, is_global=is_global)
        effect = attach(world, container=container, subscription_request=asked)[-1]
        queues.append(world.state.consumers[effect.consumer].queue if type(effect) is ConsumerReady else 0)
    keys = [(None if is_global else container, name or "link") for container, name, _, is_global in (one, other)]
    nameless = [container == "" for container, _ in keys]
    if any(nameless):
        assert [queue == 0 for queue in queues] == nameless
    elif keys[0] != keys[1]:
        assert queues[0] != queues[1] > 0
    elif one[2] == other[2]:
        assert queues[0] == queues[1]
    else:
        assert queues[1] == 0


def test_a_volatile_one_belongs_to_its_link() -> None:
    """Two links of one name, as of nameless containers, have two; each ends with its link."""
    world = World()
    one, other = subscribe(world, container=""), subscribe(world, container="")
    assert one != other
    leave(world, one)
    assert set(world.state.subscriptions) == {other}


@pytest.mark.parametrize(("is_durable", "is_shared"), [(True, False), (False, True), (True, True)])
def test_a_container_without_an_id_has_no_durable_subscription(is_durable: bool, is_shared: bool) -> None:
    """Neither made, nor found in an older log, nor recalled: others without a name are not the same."""
    world = World()
    asked = SubscriptionRequest("s", is_durable, is_shared)
    condition, said = refused(world, container="", subscription_request=asked)
    assert (condition, "container-id" in said) == ("amqp:invalid-field", True)
    older = Subscription("t", "s", "", is_shared, not is_durable)
    queue = subscribe(world)
    world.happened(Subscribed(world.next_offset, world.now_us, queue, older))
    assert refused(world, container="", subscription_request=asked)[0] == "amqp:invalid-field"
    recall = AttachConsumer("key", "", "", "link", subscription_request=SubscriptionRequest("s"), is_recalled=True)
    (unknown,) = world.do(recall)
    assert type(unknown) is RefusedCommand
    assert unknown.condition == "amqp:not-found"
    assert world.do(DeleteSubscription("key", "s", "", force=True))[-1] == Answered("key", {"messages": 0})
    subscribe(world, container="", subscription_request=SubscriptionRequest("s", is_durable, is_shared, is_global=True))


def test_a_durable_one_is_left_and_found_again() -> None:
    """With its messages; a link that is closed for good ends it."""
    world = World()
    queue = subscribe(world, subscription_request=DURABLE)
    leave(world, queue)
    world.publish(world.producer("/topics/t"), 5)
    assert subscribe(world, subscription_request=DURABLE) == queue
    assert world.state.queues[queue].depth == 1
    leave(world, queue, is_closed=True)
    assert not world.state.subscriptions
    assert subscribe(world, subscription_request=DURABLE) != queue


def test_the_newest_link_has_what_is_not_shared() -> None:
    """The other one is ended as stolen."""
    world = World()
    queue = subscribe(world, subscription_request=DURABLE)
    ended, ready = attach(world, subscription_request=DURABLE)
    assert type(ended) is ConsumerEnded
    assert ended.condition == "amqp:link:stolen"
    assert type(ready) is ConsumerReady
    assert world.state.queues[queue].consumers == 1


NO_LOCAL = SubscriptionRequest("s", is_durable=True, is_no_local=True)


@pytest.mark.parametrize("change", [("u", {}), ("t", {"selector": "a = 1"}), ("t", {"subscription_request": NO_LOCAL})])
def test_what_is_asked_otherwise_is_made_anew(change: tuple[str, dict[str, Any]]) -> None:
    """Topic, selector or no-local: the queue that there was is gone with its messages."""
    world = World()
    queue = subscribe(world, subscription_request=DURABLE)
    leave(world, queue)
    world.publish(world.producer("/topics/t"), 5)
    topic, fields = change
    other = subscribe(world, topic, **{"subscription_request": DURABLE, **fields})
    assert set(world.state.queues) == {other}
    assert not world.state.queues[other].depth
    assert world.state.subscriptions[other].topic == topic


def test_a_shared_one_in_use_stays_as_it_is() -> None:
    """Another topic is refused while there are receivers; without them the subscription is replaced."""
    world = World()
    queue = subscribe(world, subscription_request=SHARED)
    assert subscribe(world, subscription_request=SHARED) == queue
    assert refused(world, "u", subscription_request=SHARED)[0] == "amqp:resource-locked"
    leave(world, queue)
    assert subscribe(world, "u", subscription_request=SHARED) != queue


def test_a_link_of_several_ends_nothing() -> None:
    """Closed for good, it leaves a shared subscription to the others; the last one ends it."""
    world = World()
    queue = subscribe(world, subscription_request=SHARED)
    subscribe(world, subscription_request=SHARED)
    first = min(world.state.consumers)
    world.do(DetachConsumer(first, is_closed=True))
    assert queue in world.state.subscriptions
    leave(world, queue, is_closed=True)
    assert queue not in world.state.subscriptions


def test_a_recalled_subscription_names_its_topic() -> None:
    """Shared or not, by container or global; what is in use elsewhere is locked, what is not there not found."""
    world = World()
    for asked in (DURABLE, SubscriptionRequest("g", True, True, True), SubscriptionRequest("h", True, True)):
        queue = subscribe(world, selector="a = 1", subscription_request=asked)
        command = AttachConsumer("key", "", "me", "link", subscription_request=asked, is_recalled=True)
        if asked.is_shared:
            (locked,) = world.do(command)
            assert type(locked) is RefusedCommand
            assert locked.condition == "amqp:resource-locked"
        leave(world, queue)
        (ready,) = world.do(command)
        assert type(ready) is ConsumerReady
        assert ready.subscription == world.state.subscriptions[queue]
    (none,) = world.do(AttachConsumer("key", "", "you", "link", subscription_request=DURABLE, is_recalled=True))
    assert type(none) is RefusedCommand
    assert none.condition == "amqp:not-found"


def test_the_own_containers_messages_stay_away() -> None:
    """From a no-local subscription alone, and by container, not by link."""
    world = World()
    closed = subscribe(world, container="container", subscription_request=SubscriptionRequest("n", is_no_local=True))
    others = subscribe(world, container="you", subscription_request=SubscriptionRequest("o", is_no_local=True))
    open_ = subscribe(world, container="container")
    world.publish(world.producer("/topics/t"), 5)
    assert [world.state.queues[queue].depth for queue in (closed, others, open_)] == [0, 1, 1]


def test_a_container_without_an_id_gets_the_messages_of_all() -> None:
    """No-local leaves out nothing of nameless containers, be it asked for now or said by an older log."""
    world = World()
    nameless = subscribe(world, container="", subscription_request=SubscriptionRequest("n", is_no_local=True))
    older = subscribe(world, container="")
    said = Subscription("t", "link", "", is_volatile=True, is_no_local=True)
    world.happened(Subscribed(world.next_offset, world.now_us, older, said))
    (ready,) = world.do(AttachProducer("key", "/topics/t", "", "link"))
    assert type(ready) is ProducerReady
    world.publish(ready.producer, 5)
    assert [world.state.queues[queue].depth for queue in (nameless, older)] == [1, 1]


def test_what_cannot_be_is_refused() -> None:
    """A pattern or selector that is none, by position and token; a temporary topic's durable subscription."""
    world = World()
    condition, said = refused(world, selector="a = = 1")
    assert condition == "amqp:invalid-field"
    assert "character 4" in said
    assert "'='" in said
    assert refused(world, "a.b*")[0] == "amqp:invalid-field"
    assert not world.state.queues


def test_selectors_are_bounded_by_the_muxers_that_they_need() -> None:
    """Each has one of its own."""
    world = World(EngineConfig(muxers_max=3))
    subscribe(world, selector="a = 1")
    assert refused(world, selector="a = 2") == ("amqp:resource-limit-exceeded", "at most 3 muxers (muxers_max)")


def test_no_other_link_receives_from_the_queue_of_a_subscription() -> None:
    """It is private: the topic leads there."""
    world = World()
    queue = subscribe(world)
    name = world.state.queues[queue].name
    (effect,) = world.do(AttachConsumer("key", f"/queues/{name}", "c", "l"))
    assert type(effect) is RefusedCommand
    assert effect.condition == "amqp:not-allowed"


def test_a_subscription_belongs_to_the_user_that_made_it() -> None:
    """The decision asks about each subscription that exists; one without an owner gets the first user that attaches."""
    world = World()
    queue = subscribe(world, subscription_request=DURABLE, user="alice")
    assert world.state.subscriptions[queue].owner == "alice"
    asked: list[Subscription] = []

    def refuse(subscription: Subscription) -> None:
        asked.append(subscription)
        raise Refused("amqp:unauthorized-access", "no")

    named = {"user": "bob", "authorize": refuse}
    assert refused(world, subscription_request=DURABLE, **named)[0] == "amqp:unauthorized-access"
    (effect,) = world.do(AttachConsumer("key", "", "me", "s", is_recalled=True, **named))
    assert type(effect) is RefusedCommand
    assert [one.owner for one in asked] == ["alice", "alice"]
    assert world.state.queues[queue].consumers == 1
    older = subscribe(world, subscription_request=SHARED, container="old")
    assert world.state.subscriptions[older].owner == ""
    assert subscribe(world, subscription_request=SHARED, container="old", user="bob") == older
    assert world.state.subscriptions[older].owner == "bob"
    assert subscribe(world, subscription_request=SHARED, container="old", user="carl") == older
    assert world.state.subscriptions[older].owner == "bob"
    assert type(world.do(DeleteSubscription("key", "s", "me", force=True, authorize=refuse))[0]) is RefusedCommand


def test_what_a_user_may_not_create_is_not_created() -> None:
    """Queues at addresses, durable subscriptions, temporary nodes: nothing is left behind."""
    world = World()
    commands = [
        AttachProducer("key", "q", "me", "link", may_create=False),
        AttachConsumer("key", "q", "me", "link", may_create=False),
        AttachConsumer("key", "/topics/t", "me", "s", subscription_request=DURABLE, may_create=False),
    ]
    for command in commands:
        (effect,) = world.do(command)
        assert type(effect) is RefusedCommand
        assert effect.condition == "amqp:unauthorized-access"
    without = World(EngineConfig(temporary_nodes=False, durable_subscriptions=False))
    for command in (
        AttachConsumer("key", "", "me", "link", dynamic=Dynamic(Lifetime.ON_CLOSE)),
        AttachProducer("key", "", "me", "link", dynamic=Dynamic(Lifetime.ON_CLOSE)),
        AttachConsumer("key", "/topics/t", "me", "s", subscription_request=DURABLE),
    ):
        (effect,) = without.do(command)
        assert type(effect) is RefusedCommand
        assert effect.condition == "amqp:not-allowed"
    assert not world.state.queues
    assert not without.state.queues
