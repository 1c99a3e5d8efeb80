"""What ends, when it ends, and what goes with it."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.engine.commands import (
    AttachConsumer,
    AttachProducer,
    DeleteQueue,
    DetachConsumer,
    DetachProducer,
    PurgeQueue,
    Settle,
)
from ambermq.engine.decide.decide import started
from ambermq.engine.effects import ConsumerEnded, ConsumerReady, ProducerReady, ProducersEnded, RefusedCommand
from ambermq.engine.entries.entry_word import pack_words
from ambermq.engine.entries.outcome import ACCEPTED, RELEASED
from ambermq.engine.events import Detached, MuxerDeleted, QueueDeleted
from ambermq.engine.fold.apply import fold
from ambermq.engine.model.lifetime import Dynamic, Lifetime
from ambermq.engine.model.state import EMPTY_STATE, Consumer, Producer, State
from ambermq.engine.model.subscription import SubscriptionRequest
from tests.engine.histories import lived
from tests.engine.world import World

POLICIES = list(Lifetime)[1:]


def producer(world: World, address: str = "", **fields: Any) -> ProducerReady:
    """Attach a producer."""
    (ready,) = world.do(AttachProducer("key", address, "container", "link", **fields))
    assert type(ready) is ProducerReady
    return ready


def consumer(world: World, address: str = "", **fields: Any) -> ConsumerReady:
    """Attach a consumer."""
    ready = world.do(AttachConsumer("key", address, "container", "link", **fields))[-1]
    assert type(ready) is ConsumerReady
    return ready


def _led(links: Mapping[int, Consumer | Producer]) -> dict[int, set[int]]:
    """Return what leads where, looked for among all links."""
    found: dict[int, set[int]] = {}
    for link in links.values():
        for node in {link.queue} if isinstance(link, Consumer) else {link.muxer, link.node} - {0}:
            found.setdefault(node, set()).add(link.id)
    return found


def is_sound(state: State) -> bool:
    """What is counted is right, and nothing points to what is gone."""
    queues, muxers = state.queues, state.muxers
    consumers = list(state.consumers.values())
    links = [one.node for one in state.producers.values() if one.node]
    assert all(queue.consumers == sum(one.queue == queue.id for one in consumers) for queue in queues.values())
    for table, one_by_one in ((state.links, _led(state.producers)), (state.receivers, _led(state.consumers))):
        assert {node: set(some) for node, some in table.items()} == one_by_one
    assert all(node in queues or node in muxers for node in links)
    assert set(state.subscriptions) <= set(queues)
    assert set(state.no_locals) <= set(state.subscriptions)
    keyed = {queue: one.key for queue, one in state.subscriptions.items() if one.key is not None}
    assert {queue: key for key, queue in state.subscription_queues.items()} == keyed
    for muxer in muxers.values():
        assert all(one.member in queues or one.member in muxers for one in muxer.attachments.values())
        if muxer.name.startswith("$subscription"):
            assert muxer.name in state.queue_names
    for queue in queues.values():
        if queue.lifetime is Lifetime.NO_LINKS:
            assert queue.consumers or queue.id in state.links
        if queue.lifetime is Lifetime.NO_LINKS_OR_MESSAGES:
            assert queue.consumers or queue.depth or queue.id in state.links
    return True


@given(st.integers(0, 1 << 32), st.integers(0, 200))
@settings(deadline=None)
def test_whatever_happens_is_sound(seed: int, steps: int) -> None:
    """Links are counted, keys lead to subscriptions, nothing outlives what it lives by; a fold says the same."""
    world = lived(seed, steps)
    assert is_sound(world.state)
    assert fold(EMPTY_STATE, world.events) == world.state
    for event in started(world.state, world.context):
        world.happened(event)
    assert is_sound(world.state)
    assert not any(queue.lifetime and not queue.depth for queue in world.state.queues.values())
    assert not any(muxer.options.lifetime for muxer in world.state.muxers.values())


@pytest.mark.parametrize("lifetime", POLICIES)
@pytest.mark.parametrize("is_topic", [False, True])
def test_any_client_can_use_the_name_of_a_dynamic_node(lifetime: Lifetime, is_topic: bool) -> None:
    """The address that is answered leads there, for senders and receivers; it is never one that was used before."""
    world = World()
    made = producer(world, dynamic=Dynamic(lifetime, is_topic))
    other = consumer(world, made.address)
    sender = producer(world, made.address)
    world.publish(sender.producer, 5)
    assert world.state.queues[world.state.consumers[other.consumer].queue].depth == 1
    assert producer(world, dynamic=Dynamic(lifetime, is_topic)).address != made.address


@pytest.mark.parametrize(
    ("lifetime", "ends_after"),
    [
        (Lifetime.ON_CLOSE, "owner"),
        (Lifetime.NO_MESSAGES, "message"),
        (Lifetime.NO_LINKS, "links"),
        (Lifetime.NO_LINKS_OR_MESSAGES, "both"),
    ],
)
def test_a_queue_ends_as_its_policy_says(lifetime: Lifetime, ends_after: str) -> None:
    """Looked at after its maker went, after the last message went, after the last link went."""

    def is_there() -> bool:
        return made.address.removeprefix("/queues/") in world.state.queue_names

    world = World()
    made = producer(world, dynamic=Dynamic(lifetime))
    reader = world.consumer(made.address, credit=1)
    world.publish(made.producer, 5)
    (words,) = world.dealt().values()
    lives = {"made": is_there()}
    world.do(DetachProducer(made.producer))
    lives["owner"] = is_there()
    world.do(Settle(reader, pack_words(words), ACCEPTED))
    lives["message"] = is_there()
    world.do(DetachConsumer(reader))
    lives["links"] = is_there()
    names = list(lives)
    end = names.index({"both": "links"}.get(ends_after, ends_after))
    assert lives == {name: index < end for index, name in enumerate(names)}


def test_what_has_links_or_messages_lives_by_either() -> None:
    """Released messages are there still; a purge takes the last ones."""
    world = World()
    made = producer(world, dynamic=Dynamic(Lifetime.NO_LINKS_OR_MESSAGES))
    world.publish(made.producer, 5)
    world.do(DetachProducer(made.producer))
    reader = world.consumer(made.address, credit=1)
    (words,) = world.dealt().values()
    world.do(Settle(reader, pack_words(words), RELEASED))
    world.do(DetachConsumer(reader))
    assert made.address.removeprefix("/queues/") in world.state.queue_names
    world.do(PurgeQueue("key", made.address))
    assert made.address.removeprefix("/queues/") not in world.state.queue_names


def test_links_that_are_left_are_ended() -> None:
    """Receivers and senders of a queue that goes hear of it, and nothing of them stays."""
    world = World()
    made = producer(world, dynamic=Dynamic())
    reader, sender = consumer(world, made.address), producer(world, made.address)
    effects = world.do(DetachProducer(made.producer))
    assert [(type(one), one.condition) for one in effects] == [
        (ConsumerEnded, "amqp:resource-deleted"),
        (ProducersEnded, "amqp:resource-deleted"),
    ]
    assert effects[0].consumer == reader.consumer
    assert effects[1].producers == {sender.producer}
    assert not world.state.consumers
    assert not world.state.producers
    assert [type(event) for event in world.events[-2:]] == [Detached, QueueDeleted]


def test_a_temporary_topic_takes_its_subscriptions_along() -> None:
    """With and without a selector, and created by a sender or a receiver."""
    world = World()
    made = consumer(world, dynamic=Dynamic(is_topic=True))
    selecting = consumer(world, made.address, selector="size > 1")
    effects = world.do(DetachConsumer(made.consumer))
    assert [one.consumer for one in effects if type(one) is ConsumerEnded] == [selecting.consumer]
    assert not world.state.queues
    assert {muxer.name for muxer in world.state.muxers.values()} == {"QUEUE", "TOPIC"}
    assert type(world.events[-1]) is MuxerDeleted


def test_a_temporary_topic_is_no_topic_of_others() -> None:
    """A subscriber to everything gets nothing of it."""
    world = World()
    everything = consumer(world, "/topics/#")
    made = producer(world, dynamic=Dynamic(is_topic=True))
    world.publish(made.producer, 5)
    assert not world.state.queues[world.state.consumers[everything.consumer].queue].depth


@pytest.mark.parametrize("address", ["/queues/$temporary.7", "/topics/$temporary.7", "/topics/$subscription.7"])
def test_nothing_is_made_at_a_given_name(address: str) -> None:
    """A link to a node that has ended creates nothing, for a sender and for a receiver."""
    world = World()
    for command in (AttachProducer("key", address, "c", "l"), AttachConsumer("key", address, "c", "l")):
        (refused,) = world.do(command)
        assert type(refused) is RefusedCommand
        assert refused.condition == "amqp:not-found"


def test_a_start_ends_what_lived_by_links() -> None:
    """What has messages and lives by them stays, and goes with the last of them."""
    world = World()
    for lifetime in POLICIES:
        world.publish(producer(world, dynamic=Dynamic(lifetime)).producer, 5)
        producer(world, dynamic=Dynamic(lifetime))
        producer(world, dynamic=Dynamic(lifetime, is_topic=True))
    consumer(world, "/topics/a")
    consumer(world, "/topics/b", subscription_request=SubscriptionRequest("kept", is_durable=True))
    for event in started(world.state, world.context):
        world.happened(event)
    left = sorted(world.state.queues.values(), key=lambda queue: queue.id)
    kinds = (Lifetime.NO_MESSAGES, Lifetime.NO_LINKS_OR_MESSAGES, Lifetime.PERMANENT)
    assert [queue.lifetime for queue in left] == [*kinds]
    reader = world.consumer(f"/queues/{left[0].name}", credit=1)
    world.do(Settle(reader, pack_words(world.dealt()[reader]), ACCEPTED))
    assert left[0].id not in world.state.queues


def test_deleting_a_subscriptions_queue_ends_it() -> None:
    """By hand as by its receiver: the muxer of its selector goes too."""
    world = World()
    one = consumer(world, "/topics/a", selector="b = 1", subscription_request=SubscriptionRequest("s", is_durable=True))
    queue = world.state.queues[world.state.consumers[one.consumer].queue]
    world.do(DeleteQueue("key", f"/queues/{queue.name}"))
    assert is_sound(world.state)
    assert not world.state.subscriptions
    assert queue.name not in world.state.muxer_names
