"""Queues at their maxima, against a model that takes one message after the other."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ambermq.engine.commands import AttachMember, DeclareMuxer, DeclareQueue, Publish, Settle, UpdateQueue
from ambermq.engine.config import EngineConfig
from ambermq.engine.effects import PublishDone
from ambermq.engine.entries.entry_word import pack_words, size_code, size_of
from ambermq.engine.entries.outcome import RELEASED, OutcomeKind
from ambermq.engine.events import Discarded, QueueConfigured, QueueDeclared, QueueUpdated
from ambermq.engine.fold.apply import fold
from ambermq.engine.model.muxer import MuxerKind
from ambermq.engine.model.state import EMPTY_STATE
from ambermq.engine.settings.queue_settings import DROP_HEAD, REJECT, Settings
from tests.engine.world import World

_QUEUES = ("a", "b")


def accounted(size: int) -> int:
    """Return the bytes that a message of a size counts for."""
    return size_of(size_code(size))


@dataclass
class Model:
    """One queue: the offsets and sizes that wait, and the settings."""

    settings: Settings
    length_max: int
    waiting: dict[int, int] = field(default_factory=dict)

    def has_room(self, size: int) -> bool:
        """Return whether one more message fits."""
        bytes_max = self.settings.bytes_max
        has_bytes = not bytes_max or sum(self.waiting.values()) + accounted(size) <= bytes_max
        return has_bytes and len(self.waiting) < (self.settings.messages_max or self.length_max)

    def refuses(self, size: int) -> bool:
        """Return whether a message is refused."""
        if self.settings.overflow == REJECT:
            return not self.has_room(size)
        return 0 < self.settings.bytes_max < accounted(size)

    def take(self, offset: int, size: int) -> None:
        """Add a message, and discard the oldest ones for it."""
        while not self.has_room(size):
            del self.waiting[min(self.waiting)]
        self.waiting[offset] = accounted(size)


_SETTINGS = st.builds(
    lambda count, size, overflow: Settings(messages_max=count, bytes_max=size, overflow=overflow),
    st.integers(0, 5),
    st.sampled_from((0, 10, 3000, 9000)),
    st.sampled_from((REJECT, DROP_HEAD)),
)
_SIZES = st.sampled_from((0, 1, 4, 11, 2049, 5000))
_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.lists(_SIZES, min_size=1, max_size=8)),
        st.tuples(st.just("take"), st.integers(1, 4)),
        st.tuples(st.just("return"), st.integers(1, 4)),
        st.tuples(st.just("update"), _SETTINGS),
    ),
    max_size=12,
)


class Broker:
    """Two queues behind one muxer, and a consumer of the first."""

    def __init__(self, first: Settings, second: Settings, config: EngineConfig) -> None:
        self.world = World(config)
        self.world.do(DeclareMuxer("key", "both", MuxerKind.SIMPLE))
        self.models: dict[str, Model] = {}
        for name, one in zip(_QUEUES, (first, second), strict=True):
            self.world.do(DeclareQueue("key", name, one))
            self.world.do(AttachMember("key", "both", name))
            self.models[name] = Model(one, config.queue_messages_max)
        self.producer = self.world.producer("/muxers/both")
        self.consumer = self.world.consumer("a")
        self.held: list[int] = []

    def publish(self, sizes: list[int], *, one_by_one: bool) -> list[OutcomeKind]:
        """Publish, and return the outcome of each message."""
        runs = [[size] for size in sizes] if one_by_one else [sizes]
        outcomes: list[OutcomeKind] = []
        for run in runs:
            bodies = [bytes(size) for size in run]
            done = self.world.do(Publish("link", self.producer, 0, list(bodies), [0] * len(run), sum(run)))
            for one in done:
                assert type(one) is PublishDone
                assert one.first_id == len(outcomes) % len(run) or len(runs) > 1
                outcomes += [one.kind] * one.count
        return outcomes

    def expect(self, sizes: list[int]) -> list[OutcomeKind]:
        """Return the outcomes of the model; the offsets are read from the queues afterwards."""
        outcomes = []
        for size in sizes:
            if any(model.refuses(size) for model in self.models.values()):
                outcomes.append(OutcomeKind.REJECTED)
                continue
            outcomes.append(OutcomeKind.ACCEPTED)
            self.number += 1
            for model in self.models.values():
                model.take(self.number, size)
        return outcomes

    number = 1 << 40
    """Above every offset: the order is what matters."""

    def check(self) -> None:
        """Assert that both queues are as the model has them."""
        for name, model in self.models.items():
            queue = self.world.queue(name)
            sizes = [size_of(word) for word in sorted([*queue.returned, *queue.ready])]
            assert sizes == [size for _, size in sorted(model.waiting.items())]
            assert queue.waiting_size == sum(sizes)
            assert queue.acquired_size == sum(size_of(word) for held in queue.acquired.values() for word in held)
        assert fold(EMPTY_STATE, self.world.events) == self.world.state


@pytest.mark.parametrize("one_by_one", [True, False])
@settings(max_examples=150, deadline=None)
@given(first=_SETTINGS, second=_SETTINGS, steps=_STEPS, limit=st.sampled_from((3, 1000)))
def test_queues_at_their_maxima_do_as_the_model(
    first: Settings, second: Settings, steps: list[tuple[str, object]], limit: int, one_by_one: bool
) -> None:
    """In runs of any length, with returned messages and changed settings: outcomes, contents and bytes."""
    broker = Broker(first, second, EngineConfig(queue_messages_max=4, dispatch_messages_max=limit))
    for step, what in steps:
        if step == "publish":
            assert isinstance(what, list)
            assert broker.publish(what, one_by_one=one_by_one) == broker.expect(what)
        elif step == "update":
            assert isinstance(what, Settings)
            values = {name: getattr(what, name) for name in ("messages_max", "bytes_max", "overflow")}
            broker.world.do(UpdateQueue("key", "a", lambda _state: {}, values))
            broker.models["a"].settings = what
        elif step == "take":
            assert isinstance(what, int)
            _take(broker, what)
        elif broker.held:
            assert isinstance(what, int)
            _give_back(broker, what)
        broker.check()


def _take(broker: Broker, count: int) -> None:
    broker.world.set_credit(broker.consumer, count)
    broker.held += broker.world.dealt().get(broker.consumer, [])
    broker.world.set_credit(broker.consumer, 0)
    waiting = broker.models["a"].waiting
    queue = broker.world.queue("a")
    while len(waiting) > queue.available:
        del waiting[min(waiting)]


def _give_back(broker: Broker, count: int) -> None:
    words, broker.held = broker.held[:count], broker.held[count:]
    broker.world.do(Settle(broker.consumer, pack_words(words), RELEASED))
    waiting = broker.models["a"].waiting
    for word in words:
        waiting[word >> 16] = size_of(word)


def test_a_first_use_of_a_later_setting_is_an_event_of_its_own() -> None:
    """A queue without one has the events that the first release reads."""
    world = World()
    world.do(DeclareQueue("key", "q", Settings(messages_max=5)))
    world.do(UpdateQueue("key", "q", lambda _state: {}, {"messages_max": 6}))
    assert [type(event) for event in world.events if isinstance(event, QueueDeclared | QueueUpdated)] == [
        QueueDeclared,
        QueueUpdated,
    ]
    world.do(UpdateQueue("key", "q", lambda _state: {}, {"bytes_max": 9}))
    world.do(UpdateQueue("key", "q", lambda _state: {}, {"bytes_max": "none", "messages_max": None}))
    configured = [event for event in world.events if isinstance(event, QueueConfigured)]
    assert [event.settings for event in configured] == [
        Settings(messages_max=6, bytes_max=9),
        Settings(messages_max=6),
    ]
    world.do(DeclareQueue("key", "r", Settings(bytes_max=3)))
    declared, configured_event = world.events[-3:-1]
    assert isinstance(declared, QueueDeclared)
    assert declared.settings == Settings()
    assert isinstance(configured_event, QueueConfigured)
    assert world.queue("r").settings == Settings(bytes_max=3)


def test_a_message_above_the_queue_s_limit_is_rejected() -> None:
    """In a run, by itself and in a fan-out; the others are taken in their order."""
    world = World()
    world.do(DeclareMuxer("key", "both", MuxerKind.SIMPLE))
    for name, limit in (("a", 5), ("b", 0)):
        world.do(DeclareQueue("key", name, Settings(message_bytes_max=limit)))
        world.do(AttachMember("key", "both", name))
    sizes = [1, 6, 5, 9, 9, 2]
    done = world.publish(world.producer("/muxers/both"), *sizes)
    kinds = {
        one.first_id + index: one.kind for one in done if isinstance(one, PublishDone) for index in range(one.count)
    }
    assert [kinds[index] is OutcomeKind.ACCEPTED for index in range(6)] == [size <= 5 for size in sizes]
    refused = [one for one in done if isinstance(one, PublishDone) and one.kind is OutcomeKind.REJECTED]
    assert {one.condition for one in refused} == {"amqp:link:message-size-exceeded"}
    assert "'a' takes messages of at most 5 bytes (message_bytes_max), this has 6" in refused[0].description
    for name in ("a", "b"):
        assert [size_of(word) for word in world.queue(name).ready] == [1, 5, 2]


@pytest.mark.parametrize(
    ("messages_max", "why"),
    [
        (2, "queue 'q' is full: it holds 2 messages, at most 2 (messages_max)"),
        (3, "queue 'q' has no room for 50 bytes: it holds 2 messages of 2 bytes, at most 50 (bytes_max)"),
    ],
)
def test_a_refusal_names_the_maximum_that_is_reached(messages_max: int, why: str) -> None:
    """Of the two."""
    world = World()
    world.do(DeclareQueue("key", "q", Settings(messages_max=messages_max, bytes_max=50)))
    refused = [one for one in world.publish(world.producer("q"), 1, 1, 50) if isinstance(one, PublishDone)][-1]
    assert (refused.kind, refused.description) == (OutcomeKind.REJECTED, why)


def test_one_event_discards_a_limited_number() -> None:
    """A lowered maximum removes nothing by itself; the next message makes room in parts."""
    world = World(EngineConfig(dispatch_messages_max=10))
    world.do(DeclareQueue("key", "q", Settings()))
    producer = world.producer("q")
    world.do(Publish("link", producer, 0, [b"x"] * 95, [0] * 95, 95))
    world.do(UpdateQueue("key", "q", lambda _state: {}, {"messages_max": 5, "overflow": DROP_HEAD}))
    assert world.queue("q").available == 95
    (done,) = world.do(Publish("link", producer, 0, [b"y"], [0], 1))
    assert isinstance(done, PublishDone)
    assert done.kind is OutcomeKind.ACCEPTED
    sizes = [len(event.words) // 8 for event in world.events if isinstance(event, Discarded)]
    assert (max(sizes), sum(sizes)) == (10, 91)
    assert world.queue("q").available == 5
    assert world.queue("q").counters == replace(world.queue("q").counters, discarded=91)
