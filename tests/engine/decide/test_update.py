"""Deciding what changes of queues and muxers that are there, and what does not."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.engine.commands import (
    AttachConsumer,
    AttachMember,
    AttachProducer,
    Command,
    DeclareMuxer,
    DeclareQueue,
    Publish,
    UpdateMuxer,
    UpdateQueue,
)
from ambermq.engine.config import EngineConfig
from ambermq.engine.decide.explain_route import explain
from ambermq.engine.effects import AT_CLOSE, Answered, ProducerReady, PublishDone, RefusedCommand
from ambermq.engine.entries.outcome import OutcomeKind
from ambermq.engine.events import Event, MuxerUpdated, Published, QueueUpdated
from ambermq.engine.fold.apply import fold
from ambermq.engine.model.muxer import MuxerKind, Options
from ambermq.engine.model.state import EMPTY_STATE, State
from ambermq.engine.routing.lossy_draw import passes
from ambermq.engine.routing.router import no_fields
from ambermq.engine.settings.queue_settings import Settings
from tests.engine.world import World

_LOSSY = Options(probability=0.5, seed=7)


def read(state: State) -> Any:
    """What an answer is made of here: all that may change."""
    queues = {queue.name: queue.settings.messages_max for queue in state.queues.values()}
    options = {muxer.name: (muxer.options.probability, muxer.options.seed) for muxer in state.muxers.values()}
    return queues | options


def wired() -> World:
    """A muxer of each class, named by it, a queue behind the LOSSY one, and one beside it."""
    world = World(EngineConfig(queue_messages_max=6))
    for kind in MuxerKind:
        world.do(DeclareMuxer("key", kind.text, kind, _LOSSY if kind is MuxerKind.LOSSY else Options()))
    world.do(DeclareQueue("key", "q", Settings(messages_max=3)))
    world.do(DeclareQueue("key", "lost", Settings(messages_max=1000)))
    world.do(AttachMember("key", "lossy", "lost"))
    return world


def sent(world: World, address: str, count: int) -> list[OutcomeKind]:
    """The outcome of each of so many messages."""
    (ready,) = world.do(AttachProducer("key", address, "container", "link"))
    assert type(ready) is ProducerReady
    outcomes = []
    for done in world.do(Publish("link", ready.producer, 0, [b""] * count, [0] * count, 0)):
        assert type(done) is PublishDone
        outcomes += [done.kind] * done.count
    return outcomes


def test_a_queue_goes_by_another_bound_at_once() -> None:
    """Below what it holds nothing goes away, and nothing comes until it holds less; 0 is the engine's own bound."""
    world = wired()
    assert sent(world, "q", 4) == [OutcomeKind.ACCEPTED] * 3 + [OutcomeKind.REJECTED]
    world.do(UpdateQueue("key", "q", read, {"messages_max": 2}))
    assert world.queue().available == 3
    assert sent(world, "q", 1) == [OutcomeKind.REJECTED]
    consumer = world.consumer(credit=2)
    assert len(world.dealt()[consumer]) == 2
    assert sent(world, "q", 2) == [OutcomeKind.ACCEPTED, OutcomeKind.REJECTED]
    world.do(UpdateQueue("key", "q", read, {"messages_max": 0}))
    assert sent(world, "q", 5) == [OutcomeKind.ACCEPTED] * 4 + [OutcomeKind.REJECTED]


def test_a_lossy_muxer_goes_on_from_its_last_draw() -> None:
    """By the new probability and seed: the same law, the next numbers."""
    world = wired()
    sent(world, "/muxers/lossy", 10)
    lossy = world.state.muxer_named("lossy")
    assert lossy is not None
    assert world.state.draws[lossy.id] == 10
    before = world.queue("lost").available
    world.do(UpdateMuxer("key", "lossy", read, probability=0.25, seed=-3))
    sent(world, "/muxers/lossy", 40)
    assert world.state.draws[lossy.id] == 50
    passed = sum(passes(-3, "lossy", number, 0.25) for number in range(10, 50))
    assert world.queue("lost").available - before == passed


def test_a_muxer_that_lets_nothing_pass_is_seen_by_the_next_message() -> None:
    """By way of other muxers too, whatever was remembered of routes; and the way told is that of now."""
    world = wired()
    world.do(AttachMember("key", "simple", "muxer:lossy"))
    world.do(UpdateMuxer("key", "lossy", read, probability=1))
    sent(world, "/muxers/simple", 3)
    assert world.queue("lost").available == 3
    world.do(UpdateMuxer("key", "lossy", read, probability=0.0))
    assert sent(world, "/muxers/simple", 3) == [OutcomeKind.ACCEPTED] * 3
    assert world.queue("lost").available == 3
    explained = explain(world.state, "/muxers/simple", no_fields(b""), world.context)
    told = {world.state.muxers[hop.muxer].name: world.state.muxers[hop.muxer].options for hop in explained.hops}
    assert told["lossy"] == Options(probability=0.0, seed=7)


@pytest.mark.parametrize(
    ("command", "event"),
    [
        (UpdateQueue("key", "q", read, {"messages_max": 9}), QueueUpdated),
        (UpdateQueue("key", "/queues/q", read, {"messages_max": 0}, template="normal"), QueueUpdated),
        (UpdateQueue("key", "q", read, {"messages_max": 3}), None),
        (UpdateQueue("key", "q", read), None),
        (UpdateMuxer("key", "lossy", read, probability=0.0), MuxerUpdated),
        (UpdateMuxer("key", "lossy", read, seed=8, kind=MuxerKind.LOSSY, separator="."), MuxerUpdated),
        (UpdateMuxer("key", "lossy", read, probability=0.5, seed=7), None),
        (UpdateMuxer("key", "simple", read), None),
        (UpdateMuxer("key", "QUEUE", read, kind=MuxerKind.DESTINATION), None),
        (UpdateMuxer("key", "wild-property", read, separator="."), None),
    ],
)
def test_what_is_so_already_is_no_event(command: Command, event: type[Event] | None) -> None:
    """The answer says so, besides what there is after it, and waits for the log either way."""
    world = wired()
    count = len(world.events)
    (answer,) = world.do(command)
    assert type(answer) is Answered
    assert (answer.value, answer.after) == (read(world.state) | {"updated": event is not None}, AT_CLOSE)
    assert [type(one) for one in world.events[count:]] == ([] if event is None else [event])


@pytest.mark.parametrize(
    ("command", "condition", "words"),
    [
        (UpdateQueue("key", "none", read), "amqp:not-found", "no queue 'none'"),
        (
            UpdateQueue("key", "q", read, {"messages_max": 9}, template="other"),
            "amqp:precondition-failed",
            "which does not change, but the request asks for template 'other': declare another queue",
        ),
        (UpdateMuxer("key", "none", read), "amqp:not-found", "no muxer 'none'"),
        (UpdateMuxer("key", "$temporary.1", read), "amqp:invalid-field", "does not begin with '$'"),
        (
            UpdateMuxer("key", "lossy", read, seed=9, kind=MuxerKind.SIMPLE),
            "amqp:precondition-failed",
            "class lossy, which does not change, but the request asks for class simple: declare another muxer",
        ),
        (
            UpdateMuxer("key", "wild-destination", read, separator="/"),
            "amqp:precondition-failed",
            "is '.', which does not change, but the request asks for separator '/': declare another muxer",
        ),
        (UpdateMuxer("key", "wild-destination", read, separator=""), "amqp:invalid-field", "separator"),
        (UpdateMuxer("key", "simple", read, separator="/"), "amqp:invalid-field", "has no separator"),
        (UpdateMuxer("key", "simple", read, probability=0.5), "amqp:invalid-field", "has no probability and no seed"),
        (UpdateMuxer("key", "lossy", read, probability=1.5), "amqp:invalid-field", "from 0 to 1"),
        (UpdateMuxer("key", "lossy", read, probability=float("nan")), "amqp:invalid-field", "from 0 to 1"),
        (UpdateMuxer("key", "lossy", read, seed=1 << 63), "amqp:invalid-field", "64 bits"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_happens(command: Command, condition: str, words: str) -> None:
    """With the condition that fits, and one message that says what, and what to do instead."""
    world = wired()
    count = len(world.events)
    (refused,) = world.do(command)
    assert type(refused) is RefusedCommand
    assert (refused.condition, words in refused.description) == (condition, True), refused.description
    assert len(world.events) == count


_CHANGES = st.lists(
    st.one_of(
        st.builds(
            UpdateQueue,
            st.just("key"),
            st.just("lost"),
            st.just(read),
            st.fixed_dictionaries({}, optional={"messages_max": st.none() | st.integers(0, 9)}),
        ),
        st.builds(
            UpdateMuxer,
            st.just("key"),
            st.just("lossy"),
            st.just(read),
            st.none() | st.floats(0, 1),
            st.none() | st.integers(-9, 9),
        ),
        st.integers(1, 9),
    ),
    max_size=9,
)


@settings(max_examples=50, deadline=None)
@given(_CHANGES)
def test_messages_fare_by_what_was_said_last(changes: list[Command | int]) -> None:
    """Each passes by the options of its time, and reaches the queue as far as its bound of then goes; a fold agrees."""
    world = wired()
    lossy = world.state.muxer_named("lossy")
    assert lossy is not None
    bound, probability, seed, number, held = 1000, 0.5, 7, 0, 0
    for change in changes:
        if isinstance(change, int):
            sent(world, "/muxers/lossy", change)
            passed = sum(passes(seed, "lossy", number + index, probability) for index in range(change))
            held, number = max(held, min(held + passed, bound or 6)), number + change
        else:
            world.do(change)
            if type(change) is UpdateQueue:
                asked = change.changes.get("messages_max")
                bound = bound if asked is None else int(str(asked))
            elif type(change) is UpdateMuxer:
                probability = probability if change.probability is None else change.probability
                seed = seed if change.seed is None else change.seed
        assert (world.queue("lost").available, world.state.draws.get(lossy.id, 0)) == (held, number)
        assert read(world.state) | {"lost": bound, "lossy": (probability, seed)} == read(world.state)
    assert fold(EMPTY_STATE, world.events) == world.state


def test_an_update_of_what_is_gone_changes_nothing() -> None:
    """As events are that name what a repair of the log could not save."""
    world = wired()
    gone: list[Event] = [QueueUpdated(999, 5, 998, Settings()), MuxerUpdated(999, 5, 998, Options())]
    assert fold(world.state, gone) == world.state
    assert all(type(event) is not Published for event in world.events)


def test_the_queue_of_a_subscription_is_updated_as_any() -> None:
    """By its address, and it is the subscription's still."""
    world = wired()
    world.do(AttachConsumer("key", "/topics/news", "container", "link"))
    (queue,) = world.state.subscriptions
    before = world.state.subscriptions[queue]
    (answer,) = world.do(UpdateQueue("key", f"/queues/$subscription.{queue}", read, {"messages_max": 1}))
    assert type(answer) is Answered
    assert (world.state.queues[queue].settings.messages_max, world.state.subscriptions[queue]) == (1, before)
