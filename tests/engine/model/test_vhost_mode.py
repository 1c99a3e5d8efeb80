"""Virtual hosts in advanced mode: nothing is predeclared, and nothing is created without a declaration."""

import pytest

from ambermq.engine.commands import (
    AttachConsumer,
    AttachMember,
    AttachProducer,
    Command,
    DeclareMuxer,
    DeclareQueue,
    Publish,
    ResetHost,
)
from ambermq.engine.decide.decide import started
from ambermq.engine.effects import ConsumerReady, ProducerReady, PublishDone, RefusedCommand
from ambermq.engine.entries.outcome import OutcomeKind
from ambermq.engine.errors import Refused
from ambermq.engine.events import Started
from ambermq.engine.fold.apply import fold
from ambermq.engine.model.attachment import Argument
from ambermq.engine.model.lifetime import Dynamic, Lifetime
from ambermq.engine.model.muxer import MuxerKind
from ambermq.engine.model.state import EMPTY_STATE
from ambermq.engine.model.vhost_mode import VhostMode, mode_named
from ambermq.engine.records.reader import events_of
from ambermq.engine.records.writer import write_event
from ambermq.engine.settings.queue_settings import Settings
from ambermq.engine.snapshots.state_codec import image_of, state_of
from ambermq.log.buffer import Buffer
from ambermq.log.config import LogConfig
from ambermq.log.write.draft import Draft
from tests.engine.records.test_writer import batch_of
from tests.engine.world import World

NORMAL = Settings("normal")


@pytest.fixture
def bare() -> World:
    """A virtual host in advanced mode, with the queue `orders`."""
    world = World(mode=VhostMode.ADVANCED)
    world.do(DeclareQueue("key", "orders", NORMAL))
    return world


def wired(world: World) -> None:
    """Publish messages to `orders` by the muxer `in`."""
    argument: Argument = "orders"
    world.do(DeclareMuxer("key", "in", MuxerKind.DESTINATION))
    world.do(AttachMember("key", "in", "orders", argument))


def test_nothing_is_predeclared(bare: World) -> None:
    """No muxer is there, and a queue that is declared is attached to none; so at every start, and after a reset."""
    assert not bare.state.muxers
    assert len(bare.events) == 2
    for event in started(bare.state, bare.context):
        bare.happened(event)
    assert (bare.state.epoch, bare.state.mode, len(bare.state.muxers)) == (2, VhostMode.ADVANCED, 0)
    bare.do(ResetHost("key"))
    assert (bare.state.mode, len(bare.state.muxers), len(bare.state.queues)) == (VhostMode.ADVANCED, 0, 0)
    assert fold(EMPTY_STATE, bare.events) == bare.state


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (AttachProducer("key", "orders", "c", "l"), "nothing leads to 'orders'"),
        (AttachProducer("key", "/queues/other", "c", "l"), "nothing leads to 'other'"),
        (AttachProducer("key", "/topics/news", "c", "l"), "no topic 'news'"),
        (AttachProducer("key", "", "c", "l", dynamic=Dynamic(Lifetime.ON_CLOSE, is_topic=False)), "no dynamic nodes"),
        (AttachProducer("key", "", "c", "l", dynamic=Dynamic(Lifetime.ON_CLOSE, is_topic=True)), "no dynamic nodes"),
        (AttachConsumer("key", "other", "c", "l"), "no queue 'other'"),
        (AttachConsumer("key", "/topics/news", "c", "l"), "no topic 'news'"),
        (AttachConsumer("key", "", "c", "l", dynamic=Dynamic(Lifetime.ON_CLOSE, is_topic=False)), "no dynamic nodes"),
    ],
)
def test_nothing_is_made_for_a_link(bare: World, command: Command, told: str) -> None:
    """Plain addresses, topics and dynamic nodes are not found; the refusal says why, and nothing has happened."""
    before = len(bare.events)
    (refused,) = bare.do(command)
    assert isinstance(refused, RefusedCommand)
    assert refused.condition == "amqp:not-found"
    assert told in refused.description
    assert "this virtual host is in advanced mode" in refused.description
    assert len(bare.events) == before


@pytest.mark.parametrize("name", ["QUEUE", "TOPIC"])
def test_the_names_of_predeclared_muxers_stay_free(bare: World, name: str) -> None:
    """So an address means the same wherever it leads anywhere: the muxer cannot be declared by hand."""
    (refused,) = bare.do(DeclareMuxer("key", name, MuxerKind.DESTINATION))
    assert isinstance(refused, RefusedCommand)
    assert refused.condition == "amqp:not-allowed"
    assert not bare.state.muxers


def test_what_is_wired_by_hand_works(bare: World) -> None:
    """A message goes from a muxer's address to the queue, and is received from there by the queue's own name."""
    wired(bare)
    (ready,) = bare.do(AttachProducer("key", "/muxers/in/orders", "c", "l"))
    assert isinstance(ready, ProducerReady)
    bare.publish(ready.producer, 5)
    (got,) = bare.do(AttachConsumer("key", "orders", "c", "l"))
    assert isinstance(got, ConsumerReady)
    assert bare.queue("orders").available == 1


class _To:
    """A message that says where it is for."""

    def __init__(self, body: Buffer, _added: object = (), /) -> None:
        self._to = bytes(body).decode()

    def get(self, name: str) -> object:
        """Return its `to`."""
        return self._to if name == "properties.to" else None


def test_a_message_to_a_plain_address_is_rejected() -> None:
    """On the anonymous terminus too; one to a muxer goes on."""
    world = World(fields_of=_To, mode=VhostMode.ADVANCED)
    world.do(DeclareQueue("key", "orders", NORMAL))
    wired(world)
    (ready,) = world.do(AttachProducer("key", "", "c", "l"))
    assert isinstance(ready, ProducerReady)
    bodies = [b"orders", b"/muxers/in/orders"]
    plain, routed = world.do(Publish("link", ready.producer, 0, list(bodies), [0, 0], sum(map(len, bodies))))
    assert isinstance(plain, PublishDone)
    assert isinstance(routed, PublishDone)
    assert (plain.kind, plain.condition) == (OutcomeKind.REJECTED, "amqp:not-found")
    assert routed.kind is OutcomeKind.ACCEPTED
    assert world.queue("orders").available == 1


@pytest.mark.parametrize("mode", list(VhostMode))
def test_the_mode_is_in_a_snapshot(mode: VhostMode) -> None:
    """The image of a state has it; that of an automatic one is as it was before there were modes."""
    state = World(mode=mode).state
    blocks = list(image_of(state))
    assert state_of(blocks) == state
    assert (b"mode" in blocks[0].payload) == (mode is VhostMode.ADVANCED)


def test_the_first_start_says_the_mode() -> None:
    """Later ones repeat what the state says, so a log that has lost its first record still knows."""
    world = World(mode=VhostMode.ADVANCED)
    (first,) = started(world.state, world.context)
    assert first == Started(1, world.now_us, 2, VhostMode.ADVANCED)
    draft = Draft(LogConfig(), next_offset=1)
    assert write_event(draft, first) == 1
    assert list(events_of(batch_of(draft))) == [first]


def test_modes_have_names() -> None:
    """What is none is refused, and told which there are."""
    assert [mode_named(mode.text) for mode in VhostMode] == list(VhostMode)
    with pytest.raises(Refused, match="automatic or advanced, found 'other'"):
        mode_named("other")
