"""What is refused, with which condition, and what is decided otherwise."""

from collections.abc import Callable

import pytest

from ambermq.engine.commands import (
    AttachConsumer,
    AttachProducer,
    Command,
    DeclareQueue,
    DeleteQueue,
    DetachConsumer,
    DetachProducer,
    Inspect,
    Publish,
    PurgeQueue,
    ReportDamage,
    ResetHost,
    Settle,
)
from ambermq.engine.config import EngineConfig
from ambermq.engine.decide.decide import decide, started
from ambermq.engine.effects import (
    AT_CLOSE,
    NOW,
    Answered,
    ConsumerEnded,
    ConsumerReady,
    OutcomeApplied,
    ProducerReady,
    ProducersEnded,
    PublishDone,
    RefusedCommand,
)
from ambermq.engine.entries.entry_word import entry_of, make_words, pack_words, unpack_words
from ambermq.engine.entries.outcome import ACCEPTED, RELEASED, OutcomeKind
from ambermq.engine.events import (
    Attached,
    Chunked,
    ConsumerAttached,
    ConsumerDetached,
    Damaged,
    Detached,
    MuxerDeclared,
    ProducerAttached,
    ProducerDetached,
    Published,
    Purged,
    QueueDeclared,
    QueueDeleted,
    Reset,
    Settled,
    Started,
)
from ambermq.engine.fold.apply import fold
from ambermq.engine.model.muxer import QUEUE_MUXER, TOPIC_MUXER, MuxerKind
from ambermq.engine.routing.router import Router
from ambermq.engine.settings.queue_settings import Settings, new_settings
from ambermq.snapshot.persistent_map import PersistentMap
from tests.engine.world import World

QUEUE = 3
"""The id of the first queue: the predeclared muxers stand before it."""


def test_the_first_start_declares_the_muxer_and_later_ones_do_not() -> None:
    """Every start is the next epoch."""
    world = World()
    assert world.events == [
        Started(0, 1_000, 1),
        MuxerDeclared(1, 1_000, QUEUE_MUXER, MuxerKind.DESTINATION),
        MuxerDeclared(2, 1_000, TOPIC_MUXER, MuxerKind.WILD_DESTINATION),
    ]
    assert started(world.state, world.context) == [Started(3, 1_000, 2)]


def test_attaching_creates_a_queue_once() -> None:
    """A queue that does not exist is declared and attached to the muxer before its peer is."""
    world = World()
    producer = world.producer("q")
    assert world.events[3:] == [
        QueueDeclared(QUEUE, 1_000, "q", new_settings("normal")),
        Attached(QUEUE + 1, 1_000, 1, QUEUE, "q"),
        ProducerAttached(QUEUE + 2, 1_000, 1, "q", "container", "link"),
    ]
    assert world.do(AttachConsumer("key", "/queues/q", "container", "link")) == [ConsumerReady("key", 6)]
    assert world.events[6:] == [ConsumerAttached(6, 1_000, QUEUE, "container", "link")]
    assert (producer, world.state.consumers[6].queue) == (5, QUEUE)
    assert world.do(AttachProducer("key", "q", "container", "link")) == [ProducerReady("key", 7, queue="q")]


LIMITS = EngineConfig(queues_max=1, producers_max=2, consumers_max=2, queue_messages_max=3, name_bytes_max=8)
NOT_CREATED = "no queue 'other'; addresses are not created on this broker (auto_create)"
REFUSALS: list[tuple[EngineConfig, Command, str, str]] = [
    (LIMITS, AttachProducer("key", "other", "c", "l"), "amqp:resource-limit-exceeded", "at most 1 queues (queues_max)"),
    (LIMITS, AttachConsumer("key", "other", "c", "l"), "amqp:resource-limit-exceeded", "at most 1 queues (queues_max)"),
    (LIMITS, DeclareQueue("key", "o", Settings()), "amqp:resource-limit-exceeded", "at most 1 queues (queues_max)"),
    (
        EngineConfig(producers_max=1),
        AttachProducer("key", "q", "c", "l"),
        "amqp:resource-limit-exceeded",
        "at most 1 producers (producers_max)",
    ),
    (
        EngineConfig(consumers_max=1),
        AttachConsumer("key", "q", "c", "l"),
        "amqp:resource-limit-exceeded",
        "at most 1 consumers (consumers_max)",
    ),
    (EngineConfig(auto_create=False), AttachProducer("key", "other", "c", "l"), "amqp:not-found", NOT_CREATED),
    (EngineConfig(auto_create=False), AttachConsumer("key", "other", "c", "l"), "amqp:not-found", NOT_CREATED),
    (LIMITS, AttachConsumer("key", "/other", "c", "l"), "amqp:not-found", "no node at '/other'"),
    (LIMITS, DeclareQueue("key", "$other", Settings()), "amqp:not-found", "begin with $ are reserved"),
    (LIMITS, AttachProducer("key", "x" * 9, "c", "l"), "amqp:invalid-field", "has 1 to 8 bytes of UTF-8, this has 9"),
    (LIMITS, DeclareQueue("key", "q", Settings(messages_max=4)), "amqp:precondition-failed", "messages_max 4"),
    (LIMITS, DeleteQueue("key", "other"), "amqp:not-found", "no queue 'other'"),
    (LIMITS, PurgeQueue("key", "other"), "amqp:not-found", "no queue 'other'"),
    (LIMITS, DeleteQueue("key", "q", if_unused=True), "amqp:precondition-failed", "queue 'q' has 1 consumer"),
    (LIMITS, DeleteQueue("key", "q", if_empty=True), "amqp:precondition-failed", "queue 'q' holds 1 message"),
]


@pytest.mark.parametrize(("config", "command", "condition", "part"), REFUSALS)
def test_a_refusal_changes_nothing_and_says_why(
    config: EngineConfig, command: Command, condition: str, part: str
) -> None:
    """On a broker with one queue that holds one message, one producer and one consumer."""
    world = World()
    world.publish(world.producer(), 1)
    world.consumer()
    world.config = config
    events, effects = decide(world.state, command, world.context)
    assert events == []
    (refused,) = effects
    assert type(refused) is RefusedCommand
    assert (refused.key, refused.condition, refused.after) == ("key", condition, NOW)
    assert part in refused.description


def test_with_auto_create_off_what_exists_can_be_used() -> None:
    """Only creation is switched off; declaring still works."""
    world = World(EngineConfig(auto_create=False))
    world.do(DeclareQueue("key", "q", Settings()))
    world.publish(world.producer(), 1)
    assert world.queue().available == 1


def publish(producer: int, bodies: list[bytes], *, durable: bool = True, settled: bool = False) -> Publish:
    """Return a run."""
    return Publish("link", producer, 7, bodies, [0] * len(bodies), sum(map(len, bodies)), durable, settled)


def test_an_accepted_run_waits_for_the_log_only_when_it_is_durable() -> None:
    """One event, one outcome for the run; a run that asks for no durability is accepted as it is written."""
    world = World()
    producer = world.producer()
    first = world.next_offset
    bodies = [b"a", b"bb"]
    events, effects = decide(world.state, publish(producer, bodies), world.context)
    assert effects == [PublishDone("link", 7, 2, OutcomeKind.ACCEPTED, False, after=AT_CLOSE)]
    assert events == [Published(first, 1_000, (QUEUE,), producer, make_words(first, [1, 2]), 3)]
    events, effects = decide(world.state, publish(producer, bodies, durable=False, settled=True), world.context)
    assert effects == [PublishDone("link", 7, 2, OutcomeKind.ACCEPTED, True, after=NOW)]
    assert events == [Published(first, 1_000, (QUEUE,), producer, make_words(first, [1, 2]), 3, durable=False)]


def unroutable(world: World) -> int:
    producer = world.producer()
    world.do(DeleteQueue("key", "q"))
    return producer


def gone(world: World) -> int:
    producer = world.producer()
    world.do(DetachProducer(producer))
    return producer


def full(world: World) -> int:
    producer = world.producer()
    world.publish(producer, 1, 1, 1)
    return producer


def small(world: World) -> int:
    world.do(DeclareQueue("key", "q", Settings(messages_max=1)))
    producer = world.producer()
    world.publish(producer, 1)
    return producer


def no_room(world: World) -> int:
    world.room_bytes = 2
    return world.producer()


@pytest.mark.parametrize(
    ("prepare", "kind", "condition", "part"),
    [
        (unroutable, OutcomeKind.RELEASED, "", ""),
        (gone, OutcomeKind.REJECTED, "amqp:not-found", "the producer is gone"),
        (
            full,
            OutcomeKind.REJECTED,
            "amqp:resource-limit-exceeded",
            "it holds 3 messages, at most 3 (queue_messages_max)",
        ),
        (small, OutcomeKind.REJECTED, "amqp:resource-limit-exceeded", "queue 'q' is full: it holds 1 message"),
        (no_room, OutcomeKind.REJECTED, "amqp:resource-limit-exceeded", "no room left on its disk"),
    ],
)
def test_a_run_that_cannot_be_stored_is_undone_as_a_whole(
    prepare: Callable[[World], int], kind: OutcomeKind, condition: str, part: str
) -> None:
    """Nothing is written, so its sender need not wait."""
    world = World(LIMITS)
    producer = prepare(world)
    events, effects = decide(world.state, publish(producer, [b"a", b"bb"]), world.context)
    assert events == []
    (done,) = effects
    assert type(done) is PublishDone
    assert (done.kind, done.condition, done.first_id, done.count, done.after) == (kind, condition, 7, 2, NOW)
    assert part in done.description


def test_a_limit_is_what_still_fits() -> None:
    """The last message, the last byte, with what the log keeps beside it: a record and the queue."""
    world = World(LIMITS)
    producer = world.producer()
    world.room_bytes = 3 * (48 + 8 + 1)
    (done,) = world.do(publish(producer, [b"a", b"b", b"c"]))
    assert type(done) is PublishDone
    assert done.kind is OutcomeKind.ACCEPTED
    world.room_bytes -= 1
    (done,) = world.do(publish(producer, [b"a", b"b", b"c"]))
    assert type(done) is PublishDone
    assert done.kind is OutcomeKind.REJECTED


def test_a_large_message_is_cut_into_chunks_that_its_record_names() -> None:
    """The last piece is the record's own body; the word accounts for the whole."""
    world = World(EngineConfig(chunk_bytes=4))
    producer = world.producer()
    first = world.next_offset
    (done,) = world.do(publish(producer, [b"0123456789"]))
    assert type(done) is PublishDone
    assert done.kind is OutcomeKind.ACCEPTED
    *chunks, message = world.events[-3:]
    assert chunks == [Chunked(first, 1_000, producer, b"0123"), Chunked(first + 1, 1_000, producer, b"4567")]
    assert message == Published(
        first + 2, 1_000, (QUEUE,), producer, make_words(first + 2, [10]), 10, chunks=(first, first + 1)
    )
    assert type(message) is Published
    assert [bytes(body) for body in message.bodies] == [b"89"]
    assert world.queue().entries[first + 2].chunks == (first, first + 1)


def test_a_run_of_large_messages_is_as_many_runs_of_one() -> None:
    """Large, small and empty ones among each other: one outcome, the same messages."""
    world, other = World(EngineConfig(chunk_bytes=4)), World(EngineConfig(chunk_bytes=4))
    bodies = [b"", b"0123456789", b"abcd", b"ABCDE"]
    (done,) = world.do(publish(world.producer(), bodies))
    assert type(done) is PublishDone
    assert done.count == 4
    producer = other.producer()
    for body in bodies:
        other.do(publish(producer, [body]))
    assert world.state == other.state
    assert world.events == other.events
    assert [list(map(bytes, event.bodies)) for event in world.events if type(event) is Published] == [
        [b""],
        [b"89"],
        [b"abcd"],
        [b"E"],
    ]


def test_a_settlement_names_only_what_is_held() -> None:
    """Unknown words and another's are left out; where nothing is left there is no event, but an answer."""
    world = World()
    mine, other = world.consumer(credit=2), world.consumer(credit=2)
    world.publish(world.producer(), 1, 1, 1, 1)
    dealt = world.dealt()
    words = [*dealt[other], 5, *reversed(dealt[mine])]
    events, effects = decide(world.state, Settle(mine, pack_words(words), ACCEPTED, "reply"), world.context)
    assert effects == [OutcomeApplied("reply", after=AT_CLOSE)]
    assert events == [Settled(world.next_offset, 1_000, QUEUE, mine, ACCEPTED, pack_words(dealt[mine]))]
    for nothing in (Settle(mine, pack_words(dealt[other]), ACCEPTED, "reply"), Settle(99, b"", ACCEPTED, "reply")):
        assert decide(world.state, nothing, world.context) == ([], [OutcomeApplied("reply")])
    assert decide(world.state, Settle(mine, pack_words([5]), ACCEPTED), world.context) == ([], [])


def test_a_consumer_that_goes_releases_what_it_never_saw() -> None:
    """What was not sent goes back uncounted, of what it holds only; the rest fails with the detaching."""
    world = World()
    consumer = world.consumer(credit=2)
    world.publish(world.producer(), 1, 1)
    words = world.dealt()[consumer]
    at = world.next_offset
    assert world.do(DetachConsumer(consumer, pack_words([words[1], 5]))) == []
    assert world.events[-2:] == [
        Settled(at, 1_000, QUEUE, consumer, RELEASED, pack_words(words[1:])),
        ConsumerDetached(at + 1, 1_000, consumer),
    ]
    counts = [world.queue().entries.get(entry_of(word)) for word in words]
    assert [entry and entry.count for entry in counts] == [1, 0]
    assert world.do(DetachConsumer(consumer)) == []
    assert world.events[-1] == ConsumerDetached(at + 1, 1_000, consumer)


def test_a_producer_that_goes_goes_once() -> None:
    """A second time is nothing."""
    world = World()
    producer = world.producer()
    at = world.next_offset
    world.do(DetachProducer(producer))
    assert world.events[-1] == ProducerDetached(at, 1_000, producer)
    assert decide(world.state, DetachProducer(producer), world.context) == ([], [])


def test_declaring_again_alike_changes_nothing() -> None:
    """The answer says whether it was created."""
    world = World()
    declare = DeclareQueue("key", "/queues/a%2Fb", Settings(messages_max=4))
    assert world.do(declare) == [Answered("key", {"created": True})]
    before = world.state
    assert world.do(declare) == [Answered("key", {"created": False})]
    assert world.state is before
    assert world.queue("a/b").settings == Settings(messages_max=4)


def test_a_deletion_ends_consumers_and_tells_how_much_is_gone() -> None:
    """Attachments go first, in one decision; what was acquired counts too."""
    world = World()
    one, two = world.consumer(credit=1), world.consumer()
    world.publish(world.producer(), 1, 1, 1)
    world.dealt()
    at = world.next_offset
    effects = world.do(DeleteQueue("key", "q"))
    assert [type(effect) for effect in effects] == [ConsumerEnded, ConsumerEnded, Answered]
    assert [effect.consumer for effect in effects if type(effect) is ConsumerEnded] == [one, two]
    assert effects[-1] == Answered("key", {"messages": 3})
    assert world.events[-2:] == [Detached(at, 1_000, 1, QUEUE, QUEUE + 1, "q"), QueueDeleted(at + 1, 1_000, QUEUE)]
    assert world.state.queue_named("q") is None


def test_a_reset_ends_every_link_and_declares_the_wiring_again() -> None:
    """In the order of their ids; what was there is counted."""
    world = World()
    sender, one, two = world.producer(), world.consumer(), world.consumer("other")
    world.publish(sender, 1, 1, 1)
    at = world.next_offset
    effects = world.do(ResetHost("key"))
    why = ("amqp:resource-deleted", "the virtual host was reset")
    assert effects == [
        ConsumerEnded(one, *why),
        ConsumerEnded(two, *why),
        ProducersEnded(frozenset([sender]), *why),
        Answered("key", {"queues": 2, "messages": 3}),
    ]
    assert world.events[-3:] == [
        Reset(at, 1_000),
        MuxerDeclared(at + 1, 1_000, QUEUE_MUXER, MuxerKind.DESTINATION),
        MuxerDeclared(at + 2, 1_000, TOPIC_MUXER, MuxerKind.WILD_DESTINATION),
    ]
    assert world.state == World().state.with_fields(
        muxers=world.state.muxers, muxer_names=world.state.muxer_names, time_us=1_000
    )


def test_a_deletion_on_conditions_that_hold_is_done() -> None:
    """Unused and empty."""
    world = World()
    world.producer()
    assert world.do(DeleteQueue("key", "q", if_unused=True, if_empty=True)) == [Answered("key", {"messages": 0})]


def test_a_purge_takes_what_is_available_now() -> None:
    """What is acquired stays; of nothing, nothing is written."""
    world = World()
    world.consumer(credit=1)
    world.publish(world.producer(), 1, 1, 1)
    world.dealt()
    at = world.next_offset
    assert world.do(PurgeQueue("key", "q")) == [Answered("key", {"messages": 2})]
    assert world.events[-1] == Purged(at, 1_000, QUEUE, at)
    assert (world.queue().available, world.queue().acquired_count) == (0, 1)
    assert world.do(PurgeQueue("key", "q")) == [Answered("key", {"messages": 0})]
    assert world.events[-1].offset == at


def test_damage_is_a_fact_where_the_queue_still_is() -> None:
    """And nothing where it is not."""
    world = World()
    world.publish(world.producer(), 1)
    (word,) = unpack_words(world.queue().ready.to_bytes())
    at = world.next_offset
    assert decide(world.state, ReportDamage(QUEUE, word), world.context) == (
        [Damaged(at, 1_000, QUEUE, pack_words([word]))],
        [],
    )
    assert decide(world.state, ReportDamage(99, word), world.context) == ([], [])


def test_an_inspection_answers_with_what_is_read() -> None:
    """And waits like any other answer."""
    world = World()
    world.producer()
    read = decide(world.state, Inspect("key", lambda state: len(state.queues)), world.context)
    assert read == ([], [Answered("key", 1, after=AT_CLOSE)])


def test_a_run_fills_a_queue_and_the_rest_is_rejected() -> None:
    """A run of n fares as n runs of one: a queue takes what it has room for and rejects the others."""
    world = World(EngineConfig(queue_messages_max=3))
    producer = world.producer()
    world.publish(producer, 100)
    done = [effect for effect in world.publish(producer, 1, 2, 3, 4) if isinstance(effect, PublishDone)]
    assert [(effect.kind, effect.count) for effect in done] == [(OutcomeKind.ACCEPTED, 2), (OutcomeKind.REJECTED, 2)]
    assert done[1].first_id == done[0].first_id + 2
    assert done[1].condition == "amqp:resource-limit-exceeded"
    assert world.queue().available == 3


def test_queues_get_their_way_back_where_the_muxer_was_lost() -> None:
    """A start that has to declare the muxer again attaches every queue to it, so that messages reach them."""
    world = World()
    world.producer("a")
    world.producer("b")
    lost = world.state.with_fields(muxers=PersistentMap(), muxer_names=PersistentMap())
    events = started(lost, world.context)
    assert [type(event) for event in events] == [Started, MuxerDeclared, Attached, Attached, MuxerDeclared]
    state = fold(lost, events)
    muxer, router = state.muxer_names[QUEUE_MUXER], Router()
    routes = [router.plain_route(state, muxer, name) for name in ("a", "b")]
    assert routes == [(state.queue_names["a"],), (state.queue_names["b"],)]
