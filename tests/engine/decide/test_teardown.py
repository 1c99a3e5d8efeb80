"""What ends goes in parts where it is more than a tick takes; each part is bounded, and sound where it is the last."""

import random
from collections.abc import Iterable

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
    DeleteMuxer,
    DeleteQueue,
    DeleteSubscription,
    DetachConsumer,
    DetachProducer,
    Inspect,
    PurgeQueue,
)
from ambermq.engine.config import EngineConfig
from ambermq.engine.decide.decide import decide
from ambermq.engine.effects import (
    Answered,
    ConsumerEnded,
    ConsumerReady,
    Effect,
    ProducerReady,
    ProducersEnded,
    RefusedCommand,
    Unfinished,
)
from ambermq.engine.fold.apply import fold
from ambermq.engine.loop.schedule import SOON
from ambermq.engine.model.lifetime import Dynamic, Lifetime
from ambermq.engine.model.muxer import MuxerKind
from ambermq.engine.model.state import EMPTY_STATE
from ambermq.engine.model.subscription import SubscriptionRequest
from ambermq.engine.settings.queue_settings import Settings
from tests.engine.decide.test_end_nodes import is_sound
from tests.engine.decide.test_subscribe import DURABLE, attach, leave, subscribe
from tests.engine.histories import lived
from tests.engine.rig import Rig
from tests.engine.world import World

_CORE = 4
"""Events that stay together: a subscription's two attachments, the muxer of its selector, its queue."""
_CHANGES_MAX = 20
_MANY = 90
_TOPIC = Dynamic(Lifetime.ON_CLOSE, is_topic=True)


def _parts(world: World, command: Command) -> tuple[list[int], list[Effect]]:
    """Decide a command part by part; return how many events each of them was, and what leaves."""
    counts, effects = list[int](), list[Effect]()
    while True:
        events, answers = decide(world.state, command, world.context)
        for event in events:
            world.happened(event)
        counts.append(len(events))
        assert is_sound(world.state) or len(counts) > 1
        if not answers or type(answers[-1]) is not Unfinished:
            return counts, effects + answers
        effects += answers[:-1]
        command = answers[-1].command


def _told(effects: Iterable[Effect]) -> tuple[list[object], list[int], list[int]]:
    """Return what is answered, and the consumers and producers that are ended, each as often as that is told."""
    answers, consumers, producers = list[object](), list[int](), list[int]()
    for effect in effects:
        if type(effect) is ConsumerEnded:
            consumers.append(effect.consumer)
        elif type(effect) is ProducersEnded:
            producers += effect.producers
        else:
            answers.append(effect)
    return answers, sorted(consumers), sorted(producers)


def _some_end(world: World, rng: random.Random) -> Command:
    """Return a command that ends something that is there."""
    state = world.state
    ends: list[Command] = [DetachConsumer(one, is_closed=rng.random() < 0.5) for one in sorted(state.consumers)]
    ends += [DetachProducer(one) for one in sorted(state.producers)]
    names = sorted(queue.name for queue in state.queues.values())
    ends += [one(f"key {name}", f"/queues/{name}") for name in names for one in (DeleteQueue, PurgeQueue)]
    ends += [DeleteMuxer("key", name) for name in sorted(state.muxer_names)]
    ends += [DeleteSubscription("key", state.queues[one].name, force=True) for one in sorted(state.subscriptions)]
    return rng.choice(ends)


@given(seed=st.integers(0, 1 << 32), steps=st.integers(1, 120), changes_max=st.integers(1, 4))
@settings(deadline=None, max_examples=60)
def test_parts_come_to_what_the_whole_comes_to(seed: int, steps: int, changes_max: int) -> None:
    """After whatever has happened: the same is left, the same is told once, and no part is more than a tick takes."""
    whole, parted = lived(seed, steps), lived(seed, steps)
    command = _some_end(whole, random.Random(seed))
    parted.config = EngineConfig(tick_changes_max=changes_max)
    told = _told(whole.do(command))
    counts, effects = _parts(parted, command)
    assert _told(effects) == told
    assert parted.state == whole.state
    assert fold(EMPTY_STATE, parted.events) == parted.state
    # What happened to a link itself is told beside what ends by it.
    assert max(counts) <= changes_max + _CORE + 2


@pytest.mark.parametrize("selector", ["", "a = 1"], ids=["plain", "with-selector"])
@pytest.mark.parametrize("parts", range(7))
def test_a_subscription_that_is_cut_while_it_ends_receives(selector: str, parts: int) -> None:
    """A kill between any two parts leaves it with its own wiring, or nothing of it; each part is a tick at most."""
    rig = Rig(config=EngineConfig(tick_changes_max=_CHANGES_MAX))
    (ready,) = rig.do(AttachConsumer("key", "/topics/t", "me", "s", selector=selector, subscription_request=DURABLE))
    assert type(ready) is ConsumerReady
    queue = rig.loop.state.consumers[ready.consumer].queue
    name = f"/queues/$subscription.{queue}"
    rig.do(DeclareMuxer("key", "more", MuxerKind.WILD_DESTINATION))
    rig.do(*[AttachMember("key", "more", name, f"number.{number}") for number in range(_MANY)])
    rig.loop.submit(DetachConsumer(ready.consumer, is_closed=True))
    for _ in range(parts):
        before = rig.loop.log.draft.next_offset
        rig.step()
        assert rig.loop.log.draft.next_offset - before <= _CHANGES_MAX + _CORE + 1
    if rig.loop.log.draft.record_count:
        rig.loop.log.write(rig.now_us)
    assert (rig.due >= SOON) is (parts < 5)
    live = rig.loop.state
    again = rig.next_life()
    assert (queue in live.subscriptions) is (parts < 5)
    if parts < 5:
        topic = live.muxer_names["TOPIC"]
        assert again.loop.router.route(again.loop.state, topic, "t", None).queues == ((queue,) if not selector else ())
        wired = again.loop.router.attachments_of(
            again.loop.state, live.muxer_names.get(f"$subscription.{queue}", queue)
        )
        assert any(muxer == topic for muxer, _ in wired)
        assert type(again.do(DeleteSubscription("key", "s"))[0]) is Answered
    state = again.loop.state
    assert not state.subscriptions
    assert set(state.muxer_names) == {"QUEUE", "TOPIC", "more"}
    assert not any(muxer.attachments for muxer in state.muxers.values())


@pytest.mark.parametrize("selector", ["", "a = 1"], ids=["plain", "with-selector"])
@pytest.mark.parametrize("is_owner_cut", [False, True])
def test_a_temporary_topic_of_many_subscriptions_ends_in_several_ticks(selector: str, is_owner_cut: bool) -> None:
    """Its receivers are told once; a start that comes in between does the rest."""
    rig = Rig(config=EngineConfig(tick_changes_max=_CHANGES_MAX))
    (made,) = rig.do(AttachProducer("key", "", "me", "l", dynamic=_TOPIC))
    assert type(made) is ProducerReady
    rig.do(*[AttachConsumer("key", made.address, "me", f"link {one}", selector=selector) for one in range(_MANY)])
    assert len(rig.loop.state.subscriptions) == _MANY
    rig.loop.submit(DetachProducer(made.producer))
    rig.loop.submit(Inspect("after", lambda state: len(state.queues)))
    effects = list[Effect]()
    ticks = 0
    while rig.due >= SOON and not (is_owner_cut and ticks == 2):
        before = rig.loop.log.draft.next_offset
        told = rig.step() + rig.completed()
        ended = [one for one in told if type(one) is ConsumerEnded]
        assert rig.loop.log.draft.next_offset - before + len(ended) <= _CHANGES_MAX + _CORE + 1
        effects += told
        assert is_sound_but_for_its_topic(rig)
        ticks += 1
    if is_owner_cut:
        assert 0 < len(rig.loop.state.subscriptions) < _MANY
    else:
        assert ticks > _MANY // _CHANGES_MAX
        assert len([one for one in effects if type(one) is ConsumerEnded]) == _MANY
        assert [one.value for one in effects if type(one) is Answered] == [0]
        assert not rig.loop.demand.wants
    rig.loop.log.write(rig.now_us)
    again = rig.next_life()
    assert not again.loop.state.queues
    assert set(again.loop.state.muxer_names) == {"QUEUE", "TOPIC"}


def is_sound_but_for_its_topic(rig: Rig) -> bool:
    """A node that still exists has all that it was created with."""
    state = rig.loop.state
    return all(rig.loop.router.attachments_of(state, queue) for queue in state.subscriptions)


@pytest.mark.parametrize("cut_after", [1, 3, 100])
def test_temporary_nodes_of_a_connection_that_goes_end_in_several_ticks(cut_after: int) -> None:
    """As many as a tick takes at a time; what is left at a kill goes at the next start."""
    rig = Rig(config=EngineConfig(tick_changes_max=_CHANGES_MAX))
    queue = Dynamic(Lifetime.ON_CLOSE)
    made = rig.do(*[AttachConsumer("key", "", "me", f"link {one}", dynamic=queue) for one in range(_MANY)])
    links = [one.consumer for one in made if type(one) is ConsumerReady]
    answers = rig.do(*[AttachProducer("key", f"/queues/$temporary.{one}", "you", "l") for one in rig.loop.state.queues])
    assert len(answers) == len(links) == _MANY
    for link in links:
        rig.loop.submit(DetachConsumer(link))
    effects = list[Effect]()
    for _ in range(cut_after):
        before = rig.loop.log.draft.next_offset
        told = rig.step() + rig.completed()
        ended = [one for one in told if type(one) is ProducersEnded]
        assert rig.loop.log.draft.next_offset - before + len(ended) <= _CHANGES_MAX + _CORE
        effects += told
    if cut_after == 100:
        all_ended = [one.producers for one in effects if type(one) is ProducersEnded]
        assert frozenset().union(*all_ended) == {one.producer for one in answers if type(one) is ProducerReady}
    else:
        assert 0 < len(rig.loop.state.queues) < _MANY
    rig.loop.log.write(rig.now_us)
    again = rig.next_life()
    assert not again.loop.state.queues


@pytest.mark.parametrize("what", ["queue", "muxer"])
def test_links_to_what_is_deleted_are_ended_a_tick_of_them_at_a_time(what: str) -> None:
    """Each is told once, of all of them before the answer."""
    rig = Rig(config=EngineConfig(tick_changes_max=_CHANGES_MAX))
    if what == "queue":
        rig.do(DeclareQueue("key", "q", Settings()))
        links = {rig.consumer() for _ in range(_MANY)}
        rig.loop.submit(DeleteQueue("key", "q"))
    else:
        rig.do(DeclareMuxer("key", "m", MuxerKind.SIMPLE))
        links = {rig.producer("/muxers/m/x") for _ in range(_MANY)}
        rig.loop.submit(DeleteMuxer("key", "m"))
    answers, ended = list[object](), list[int]()
    while rig.due >= SOON:
        assert not answers
        some, *others = _told(rig.step() + rig.completed())
        answers += some
        assert sum(map(len, others)) <= _CHANGES_MAX
        ended += [*others[0], *others[1]]
    assert len(ended) == len(links)
    assert set(ended) == links
    assert [type(one) for one in answers] == [Answered]
    assert not rig.loop.state.queues
    assert not rig.loop.state.producers
    assert not rig.loop.demand.wants


def test_what_comes_back_of_links_to_what_is_deleted_counts_as_changes() -> None:
    """Where they are more than a part takes: it ends those whose messages are no more than that."""
    rig = Rig(config=EngineConfig(tick_changes_max=_CHANGES_MAX))
    consumers = [rig.consumer(credit=9) for _ in range(_CHANGES_MAX + 5)]
    rig.do(rig.publish(rig.producer(), *[b"x"] * 9 * len(consumers)))
    assert rig.queue().acquired_count == 9 * len(consumers)
    rig.loop.submit(DeleteQueue("key", "q"))
    counts = []
    while rig.due >= SOON:
        counts.append(len(_told(rig.step() + rig.completed())[1]))
    # With the queue itself nothing comes back.
    assert counts == [2, 2, 2, 19]
    assert sum(counts) == len(consumers)
    assert not rig.loop.state.queues


def test_links_that_go_with_a_core_are_changes_too() -> None:
    """A part that ends as many of them as it takes ends nothing more."""
    rig = Rig(config=EngineConfig(tick_changes_max=_CHANGES_MAX))
    queue = Dynamic(Lifetime.ON_CLOSE)
    made = rig.do(*[AttachConsumer("key", "", "me", f"link {one}", dynamic=queue) for one in range(6)])
    for one in sorted(rig.loop.state.queues):
        rig.do(*[AttachProducer("key", f"/queues/$temporary.{one}", "you", "l") for _ in range(_CHANGES_MAX - 2)])
    for ready in made:
        assert type(ready) is ConsumerReady
        rig.loop.submit(DetachConsumer(ready.consumer))
    counts = []
    while rig.due >= SOON:
        told = rig.step() + rig.completed()
        counts.append(sum(len(one.producers) for one in told if type(one) is ProducersEnded))
    assert sum(counts) == 6 * (_CHANGES_MAX - 2)
    assert max(counts) <= _CHANGES_MAX


def test_a_subscription_is_made_anew_when_the_old_one_has_gone_in_parts() -> None:
    """The receiver gets the new one; the link of the old one is ended in the first part."""
    world = _with_many(tick_changes_max=10)
    (old,) = world.state.subscriptions
    counts, effects = _parts(world, AttachConsumer("key", "/topics/other", "me", "link", subscription_request=DURABLE))
    assert len(counts) == 4
    assert max(counts) <= 10 + _CORE + 6
    (new,) = world.state.subscriptions
    assert new != old
    assert [type(one) for one in effects] == [ConsumerEnded, ConsumerReady]
    assert world.state.subscriptions[new].topic == "other"
    assert is_sound(world.state)


def test_what_could_not_be_made_anew_is_refused_before_anything_has_gone() -> None:
    """A refusal says that nothing has changed."""
    world = _with_many(tick_changes_max=10, attachments_max=33)
    before = world.state
    (refused,) = world.do(
        AttachConsumer("key", "/topics/other", "me", "link", selector="a = 1", subscription_request=DURABLE)
    )
    assert type(refused) is RefusedCommand
    assert world.state == before


def _with_many(**limits: int) -> World:
    """A subscription with many more attachments."""
    world = World(EngineConfig(**limits))
    queue = subscribe(world, subscription_request=DURABLE)
    world.do(DeclareMuxer("key", "more", MuxerKind.WILD_DESTINATION))
    for number in range(32):
        world.do(AttachMember("key", "more", f"/queues/$subscription.{queue}", f"number.{number}"))
    return world


def test_one_that_goes_with_its_last_link_in_parts_is_gone_when_it_is_asked_for() -> None:
    """What was submitted behind it is decided when all of it has gone."""
    world = _with_many(tick_changes_max=10)
    (old,) = world.state.subscriptions
    leave(world, old, is_closed=True)
    assert type(attach(world, "t", subscription_request=SubscriptionRequest("s", is_durable=True))[-1]) is ConsumerReady
    (new,) = world.state.subscriptions
    assert new > old
