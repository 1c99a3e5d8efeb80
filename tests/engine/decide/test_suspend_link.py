"""Links are suspended, resumed and ended."""

from ambermq.engine.commands import (
    AttachConsumer,
    AttachProducer,
    DeclareMuxer,
    DeleteQueue,
    DetachConsumer,
    DetachProducer,
    EndSuspended,
    ExpireLinks,
    Publish,
    ResendHeld,
    SettleTags,
    Suspension,
)
from ambermq.engine.config import EngineConfig
from ambermq.engine.decide.decide import started
from ambermq.engine.dispatch.demand import Want
from ambermq.engine.effects import ConsumerReady, Deliver, Effect, ProducerReady, PublishDone
from ambermq.engine.entries.entry_word import unpack_words
from ambermq.engine.entries.outcome import ACCEPTED, Outcome, OutcomeKind
from ambermq.engine.events import LinkEnded, LinkResumed, LinkSuspended, ProducerDetached
from ambermq.engine.model.muxer import MuxerKind
from ambermq.engine.model.publish_options import Unroutable
from ambermq.engine.model.subscription import SubscriptionRequest
from ambermq.engine.model.suspended_link import Keeping
from ambermq.engine.snapshots.state_codec import image_of, state_of
from tests.engine.world import World

NEVER = Keeping(2, 300_000)
SESSION = Keeping()


def consumer_of(world: World, address: str = "q", *, credit: int = 10, **fields: object) -> ConsumerReady:
    """Attach the link `in` of container `c`, with credit."""
    command = AttachConsumer("key", address, "c", "in", **fields)  # type: ignore[arg-type]  # fields of the command
    (ready,) = [one for one in world.do(command) if type(one) is ConsumerReady]
    world.demand.add(Want(ready.consumer, world.state.consumers[ready.consumer].queue, "link"))
    world.set_credit(ready.consumer, credit)
    return ready


def holding(world: World, keeping: Keeping = SESSION, count: int = 3) -> tuple[int, list[int]]:
    """Return a consumer with deliveries, and their words."""
    consumer = consumer_of(world, keeping=keeping, credit=count).consumer
    world.publish(world.producer(), *[10] * count)
    return consumer, world.dealt()[consumer]


def suspend(world: World, consumer: int, suspension: Suspension = Suspension.OPEN) -> None:
    world.demand.remove(consumer)
    world.do(DetachConsumer(consumer, suspension=suspension))


def counts(world: World) -> list[int]:
    """Return the delivery-counts of the available messages."""
    queue = world.queue()
    words = [word for one in queue.available_lists for word in one]
    return [queue.entries[word >> 16].count if word >> 16 in queue.entries else 0 for word in words]


def restart(world: World) -> None:
    """Start the broker again."""
    for event in started(world.state, world.context):
        world.happened(event)


def test_a_suspended_link_keeps_what_it_holds() -> None:
    """It is no consumer any more, and no other consumer gets its deliveries."""
    world = World()
    consumer, words = holding(world)
    suspend(world, consumer)
    assert type(world.events[-1]) is LinkSuspended
    assert not world.state.consumers
    assert world.queue().consumers == 0
    assert list(world.queue().held_by(consumer)) == words
    other = world.consumer(credit=10)
    assert world.dealt() == {}
    assert world.state.suspended[consumer].held == 3
    assert state_of(image_of(world.state)) == world.state
    assert other


def test_a_link_without_deliveries_just_ends() -> None:
    """There is nothing to resume."""
    world = World()
    suspend(world, consumer_of(world).consumer)
    assert not world.state.suspended


def test_without_a_timeout_the_end_of_the_session_returns_them() -> None:
    """Each with one more failed delivery, in parts of a tick."""
    world = World(EngineConfig(tick_changes_max=2))
    consumer, _ = holding(world)
    suspend(world, consumer)
    world.do(ExpireLinks((consumer, 999)))
    assert not world.state.suspended
    assert counts(world) == [1, 1, 1]


def test_a_timeout_begins_with_the_end_of_the_session() -> None:
    """Until then no time passes."""
    world = World()
    consumer, _ = holding(world, Keeping(0, 5_000))
    suspend(world, consumer)
    world.now_us += 10_000_000
    world.do(EndSuspended(consumer))
    assert world.state.suspended[consumer].until_us == 0
    world.do(ExpireLinks((consumer,)))
    world.now_us += 4_999_999
    world.do(EndSuspended(consumer))
    assert counts(world) == []
    world.now_us += 1
    world.do(EndSuspended(consumer))
    assert counts(world) == [1, 1, 1]
    assert type(world.events[-1]) is LinkEnded


def test_an_attach_without_a_map_is_no_resumption() -> None:
    """What the link held comes back before anything new, as if it had not been kept."""
    world = World()
    consumer, words = holding(world, NEVER)
    suspend(world, consumer)
    world.publish(world.producer(), 10)
    ready = consumer_of(world)
    assert ready.held == ()
    assert world.dealt()[ready.consumer][:3] == words
    assert [world.queue().entries[word >> 16].count for word in words] == [1, 1, 1]


def test_another_user_does_not_resume_it() -> None:
    """The user is a part of its key."""
    world = World()
    consumer, words = holding(world, NEVER)
    suspend(world, consumer)
    ready = consumer_of(world, by="mallory", resumes=dict.fromkeys(words))
    assert ready.held == ()
    assert consumer in world.state.suspended


def test_a_resumed_link_holds_what_it_held_and_outcomes_apply() -> None:
    """The outcomes that the receiver reached take effect once; the rest is delivered again on demand."""
    world = World()
    consumer, words = holding(world, NEVER)
    suspend(world, consumer)
    rejected = Outcome(OutcomeKind.REJECTED)
    ready = consumer_of(world, resumes={words[0]: ACCEPTED, words[1]: rejected, 77: ACCEPTED})
    assert ready.held == tuple(words)
    assert any(type(event) is LinkResumed for event in world.events)
    assert list(world.queue().held_by(ready.consumer)) == words[2:]
    assert (world.queue().accepted, world.queue().counters.rejected) == (1, 1)
    *gone, effect = world.do(ResendHeld(ready.consumer, "link", tuple(words)))
    assert effects_of(gone) == []
    assert len(gone) == 2
    assert type(effect) is Deliver
    assert effect.is_resumed
    assert list(effect.words) == words[2:]
    assert world.state.suspended_held == 0


def test_a_resumption_at_another_queue_is_none() -> None:
    """The terminus is another one: what the link held returns."""
    world = World()
    consumer, words = holding(world, NEVER)
    suspend(world, consumer)
    ready = consumer_of(world, "other", resumes=dict.fromkeys(words))
    assert ready.held == ()
    assert counts(world) == [1, 1, 1]


def test_a_start_keeps_unsettled_state_alone() -> None:
    """Of links that are attached as of suspended ones; their time begins with the start."""
    for keeping, kept in ((Keeping(2, 5_000), True), (Keeping(1, 5_000), False), (Keeping(2, 0), False)):
        for is_suspended in (True, False):
            world = World()
            consumer, words = holding(world, keeping)
            if is_suspended:
                suspend(world, consumer)
            world.now_us += 1_000_000
            restart(world)
            assert (list(world.queue().held_by(consumer)) == words) is kept
            assert counts(world) == ([] if kept else [1, 1, 1])
            if kept:
                assert world.state.suspended[consumer].until_us == world.now_us + 5_000_000
            assert state_of(image_of(world.state)) == world.state


def test_a_start_keeps_as_much_as_the_limits_allow() -> None:
    """What is beyond them returns."""
    world = World(EngineConfig(suspended_deliveries_max=2))
    holding(world, NEVER)
    restart(world)
    assert counts(world) == [1, 1, 1]


def test_limits_of_suspended_links() -> None:
    """Beyond a limit a link ends as it does without recovery."""
    for config in (EngineConfig(suspended_links_max=0), EngineConfig(suspended_deliveries_max=2)):
        world = World(config)
        consumer, _ = holding(world, NEVER)
        suspend(world, consumer)
        assert counts(world) == [1, 1, 1]


def test_a_shared_subscription_keeps_nothing() -> None:
    """Its other consumers must get the message."""
    world = World()
    request = SubscriptionRequest("s", is_durable=True, is_shared=True)
    ready = consumer_of(world, "/topics/t", keeping=NEVER, subscription_request=request)
    (queue,) = world.state.subscriptions
    world.do(Publish("link", world.producer("/topics/t"), 0, [b"x"], [0], 1))
    world.dealt()
    suspend(world, ready.consumer)
    assert not world.state.suspended
    assert world.state.queues[queue].available == 1


def test_a_deleted_queue_takes_its_suspended_links() -> None:
    """Nothing is left of them."""
    world = World()
    consumer, _ = holding(world, NEVER)
    suspend(world, consumer)
    world.do(DeleteQueue("key", "q"))
    assert (len(world.state.suspended), len(world.state.suspended_ids), world.state.suspended_held) == (0, 0, 0)


def producer_of(world: World, **fields: object) -> ProducerReady:
    command = AttachProducer("key", "q", "c", "out", **fields)  # type: ignore[arg-type]  # fields of the command
    (ready,) = world.do(command)
    assert type(ready) is ProducerReady
    return ready


def post(world: World, producer: int, tag: bytes) -> PublishDone:
    (done,) = world.do(Publish("link", producer, 0, [b"x"], [0], 1, tag=tag))
    assert type(done) is PublishDone
    return done


def test_a_kept_tag_is_stored_once() -> None:
    """Over detaches, resumptions and starts, until its sender settles it."""
    world = World()
    first = producer_of(world, keeping=NEVER).producer
    assert post(world, first, b"a").kind is OutcomeKind.ACCEPTED
    assert post(world, first, b"a").kind is OutcomeKind.ACCEPTED
    assert world.queue().depth == 1
    world.do(DetachProducer(first, suspension=Suspension.OVER))
    assert [*world.state.tags[first]] == [b"a"]
    assert state_of(image_of(world.state)) == world.state
    restart(world)
    second = producer_of(world, keeping=NEVER, resumes=(b"a", b"b"))
    assert second.kept == (b"a",)
    post(world, second.producer, b"a")
    post(world, second.producer, b"b")
    assert world.queue().depth == 2
    restart(world)
    third = producer_of(world, keeping=NEVER, resumes=(b"b",))
    assert third.kept == (b"b",)
    world.do(SettleTags(third.producer, (b"b", b"unknown")))
    assert not world.state.tags
    world.do(DetachProducer(third.producer, suspension=Suspension.OVER))
    assert type(world.events[-1]) is ProducerDetached


def test_the_tag_of_a_message_that_reaches_no_queue_is_kept_if_it_is_accepted() -> None:
    """A released one may be sent again, and is decided anew."""
    world = World()
    world.do(DeclareMuxer("key", "m", MuxerKind.SIMPLE))
    for unroutable, kept in ((Unroutable.DISCARD, [b"a"]), (Unroutable.RELEASE, [])):
        command = AttachProducer("key", "/muxers/m/x", "c", unroutable.name, unroutable=unroutable, keeping=NEVER)
        (ready,) = world.do(command)
        assert type(ready) is ProducerReady
        post(world, ready.producer, b"a")
        assert [*world.state.tags.get(ready.producer, ())] == kept
    restart(world)
    assert [[*tags] for tags in world.state.tags.values()] == [[b"a"]]


def test_an_incomplete_map_settles_nothing() -> None:
    """The absence of a tag proves nothing then."""
    world = World()
    first = producer_of(world).producer
    for tag in (b"a", b"b"):
        post(world, first, tag)
    world.do(DetachProducer(first, suspension=Suspension.OPEN))
    assert producer_of(world, resumes=(b"a",), is_incomplete=True).kept == (b"a", b"b")


def test_kept_tags_have_a_limit() -> None:
    """A message beyond it is rejected."""
    world = World(EngineConfig(unsettled_tags_max=1))
    producer = producer_of(world).producer
    post(world, producer, b"a")
    done = post(world, producer, b"b")
    assert (done.kind, done.condition) == (OutcomeKind.REJECTED, "amqp:resource-limit-exceeded")
    world.do(SettleTags(producer, (b"a",)))
    assert post(world, producer, b"b").kind is OutcomeKind.ACCEPTED


def test_the_tags_of_a_link_that_keeps_nothing_are_forgotten() -> None:
    """They end with it."""
    world = World()
    producer = producer_of(world).producer
    post(world, producer, b"a")
    world.do(DetachProducer(producer))
    assert not world.state.tags


def effects_of(effects: list[Effect]) -> list[int]:
    return [word for one in effects if type(one) is Deliver for word in one.words]


def test_nothing_is_delivered_again_that_is_settled() -> None:
    """The words that the consumer does not hold are left out."""
    world = World()
    consumer, words = holding(world)
    world.settle(world.queue().id, consumer, words[:1], ACCEPTED)
    assert effects_of(world.do(ResendHeld(consumer, "link", tuple(words)))) == words[1:]
    assert unpack_words(world.queue().held_by(consumer).to_bytes()) == tuple(words[1:])
