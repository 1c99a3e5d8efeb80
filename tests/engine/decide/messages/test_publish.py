"""What becomes of messages: by where they go, and by what their producer asked for."""

from typing import Any
from urllib.parse import quote

import pytest

from ambermq.engine.commands import AttachMember, AttachProducer, DeclareMuxer, DeclareQueue, DetachConsumer, Publish
from ambermq.engine.config import EngineConfig
from ambermq.engine.decide.messages.room.admission import count_max
from ambermq.engine.decide.messages.stored import event_messages_max
from ambermq.engine.effects import AT_CLOSE, NOW, ProducerReady, PublishDone
from ambermq.engine.entries.outcome import OutcomeKind
from ambermq.engine.events import Drawn, Published, QueueDeclared
from ambermq.engine.fold.apply import fold
from ambermq.engine.model.attachment import Condition
from ambermq.engine.model.muxer import MuxerKind, Options
from ambermq.engine.model.publish_options import Unroutable
from ambermq.engine.model.state import EMPTY_STATE
from ambermq.engine.selectors.fields import ABSENT, Fields
from ambermq.engine.settings.queue_settings import Settings
from ambermq.log.buffer import Buffer
from tests.engine.world import World


class _Fields:
    """A message of the form `name=value,name=value`."""

    def __init__(self, body: Buffer) -> None:
        pairs = [pair.split("=") for pair in bytes(body).decode().split(",") if "=" in pair]
        self.values: dict[str, Any] = dict(pairs)

    def get(self, name: str) -> Any:
        return self.values.get(name, ABSENT)


def fields_of(body: Buffer, _added: object = (), /) -> Fields:
    """Read what the messages of these tests say."""
    return _Fields(body)


def sending(
    world: World, address: str, unroutable: Unroutable = Unroutable.RELEASE, *texts: str
) -> tuple[list[PublishDone], list[Published]]:
    """Send messages from a new producer in one run; return their outcomes, and what was published."""
    (ready,) = world.do(AttachProducer("key", address, "container", "link", unroutable))
    assert type(ready) is ProducerReady
    before = len(world.events)
    bodies: list[Buffer] = [text.encode() for text in texts]
    effects = world.do(Publish("link", ready.producer, 0, bodies, [0] * len(bodies), sum(map(len, bodies))))
    done = [effect for effect in effects if type(effect) is PublishDone]
    return done, [event for event in world.events[before:] if type(event) is Published]


def wired() -> World:
    """A PROPERTY muxer with two queues by colour."""
    world = World(fields_of=fields_of)
    world.do(DeclareMuxer("key", "colours", MuxerKind.PROPERTY))
    for colour in ("red", "blue"):
        world.do(DeclareQueue("key", colour, Settings()))
        world.do(AttachMember("key", "colours", colour, (Condition("colour", True, colour),)))
    return world


def names(world: World, event: Published) -> list[str]:
    """The names of the queues that a run went to."""
    return [world.state.queues[queue].name for queue in event.queues]


def test_neighbours_that_fare_alike_are_one_run() -> None:
    """In their order, with the delivery-ids that they came by; what reaches no queue is told as such."""
    world = wired()
    texts = ("colour=red", "colour=red", "colour=green", "colour=blue", "colour=red")
    done, published = sending(world, "/muxers/colours/x", Unroutable.RELEASE, *texts)
    assert [(one.first_id, one.count, one.kind) for one in done] == [
        (0, 2, OutcomeKind.ACCEPTED),
        (2, 1, OutcomeKind.RELEASED),
        (3, 1, OutcomeKind.ACCEPTED),
        (4, 1, OutcomeKind.ACCEPTED),
    ]
    assert [(names(world, one), len(one.words) // 8) for one in published] == [
        (["red"], 2),
        (["blue"], 1),
        (["red"], 1),
    ]
    assert fold(EMPTY_STATE, world.events) == world.state


@pytest.mark.parametrize(
    ("unroutable", "kind", "condition", "after"),
    [
        (Unroutable.RELEASE, OutcomeKind.RELEASED, "", NOW),
        (Unroutable.REJECT, OutcomeKind.REJECTED, "amqp:not-found", NOW),
        (Unroutable.DISCARD, OutcomeKind.ACCEPTED, "", AT_CLOSE),
    ],
)
@pytest.mark.parametrize("address", ["/muxers/colours/x", "/topics/unknown"])
def test_a_producer_says_what_becomes_of_what_is_unroutable(
    address: str, unroutable: Unroutable, kind: OutcomeKind, condition: str, after: int
) -> None:
    """Alike where one route is asked for the run, and where each message is looked at."""
    ((done,), published) = sending(wired(), address, unroutable, "colour=green", "colour=black")
    assert (done.count, done.kind, done.condition, done.after) == (2, kind, condition, after)
    assert not published


def test_a_full_queue_counts_what_this_run_has_brought_already() -> None:
    """Runs in one command see each other."""
    world = World(EngineConfig(queue_messages_max=2), fields_of)
    world.do(DeclareMuxer("key", "any", MuxerKind.PROPERTY))
    world.do(DeclareQueue("key", "q", Settings()))
    world.do(DeclareQueue("key", "r", Settings()))
    world.do(AttachMember("key", "any", "q", (Condition("x"),)))
    world.do(AttachMember("key", "any", "r", (Condition("y"),)))
    done, _ = sending(world, "/muxers/any/", Unroutable.RELEASE, "x=1", "x=1,y=1", "x=1", "y=1")
    assert [one.kind for one in done] == [
        *(OutcomeKind.ACCEPTED, OutcomeKind.ACCEPTED),
        *(OutcomeKind.REJECTED, OutcomeKind.ACCEPTED),
    ]
    assert (world.queue("q").available, world.queue("r").available) == (2, 2)


def test_a_muxer_without_a_destination_takes_it_from_each_message() -> None:
    """`to` goes before `subject`; neither is the empty destination."""
    world = World(fields_of=fields_of)
    world.do(DeclareMuxer("key", "by-name", MuxerKind.DESTINATION))
    for name in ("a", "b"):
        world.do(DeclareQueue("key", name, Settings()))
        world.do(AttachMember("key", "by-name", name, name))
    texts = ("properties.to=a", "properties.subject=b", "properties.to=b,properties.subject=a", "nothing=1")
    done, published = sending(world, "/muxers/by-name", Unroutable.RELEASE, *texts)
    assert [one.kind for one in done] == [OutcomeKind.ACCEPTED, OutcomeKind.ACCEPTED, OutcomeKind.RELEASED]
    assert [names(world, one) for one in published] == [["a"], ["b"]]


def test_the_address_of_the_muxer_itself_is_no_destination() -> None:
    """As clients of JMS write that of their link into `to`: what follows it is meant, else the subject."""
    world = World(fields_of=fields_of)
    world.do(DeclareMuxer("key", "by name", MuxerKind.DESTINATION))
    for name in ("a", "/muxers/other/a"):
        world.do(DeclareQueue("key", f"/queues/{quote(name, safe='')}", Settings()))
        world.do(AttachMember("key", "by name", f"/queues/{quote(name, safe='')}", name))
    own = "/muxers/by%20name"
    texts = (f"properties.to={own},properties.subject=a", f"properties.to={own}/a", "properties.to=/muxers/other/a")
    done, published = sending(world, own, Unroutable.RELEASE, *texts, f"properties.to={own}")
    assert [one.kind for one in done] == [OutcomeKind.ACCEPTED, OutcomeKind.ACCEPTED, OutcomeKind.RELEASED]
    assert [names(world, one) for one in published] == [["a"], ["/muxers/other/a"]]


def test_the_anonymous_terminus_takes_the_address_from_each_message() -> None:
    """A queue that does not exist is created once; what names no node is rejected by itself."""
    world = wired()
    texts = (
        *("properties.to=new", "properties.to=new", "properties.to=/queues/new", "properties.to=/topics/none"),
        *("properties.to=/muxers/colours/x,colour=red", "nothing=1", "properties.to=/muxers/unknown/x"),
    )
    done, published = sending(world, "", Unroutable.RELEASE, *texts)
    assert [(one.count, one.kind, one.condition) for one in done] == [
        (3, OutcomeKind.ACCEPTED, ""),
        (1, OutcomeKind.RELEASED, ""),
        (1, OutcomeKind.ACCEPTED, ""),
        (1, OutcomeKind.REJECTED, "amqp:invalid-field"),
        (1, OutcomeKind.REJECTED, "amqp:not-found"),
    ]
    assert [names(world, one) for one in published] == [["new"], ["red"]]
    assert [event.name for event in world.events if type(event) is QueueDeclared] == ["red", "blue", "new"]
    assert fold(EMPTY_STATE, world.events) == world.state


def test_where_addresses_are_not_created_the_anonymous_terminus_creates_none() -> None:
    """The message is rejected, and tells why."""
    world = World(EngineConfig(auto_create=False), fields_of)
    ((done,), _) = sending(world, "", Unroutable.RELEASE, "properties.to=new")
    assert (done.kind, done.condition) == (OutcomeKind.REJECTED, "amqp:not-found")


def test_what_a_lossy_muxer_dropped_counts_as_accepted() -> None:
    """The draws are used up as a fact, and go on where they stood: in one run or in many, the same messages pass."""
    whole, single = lossy(), lossy()
    done, published = sending(whole, "/muxers/lossy/x", Unroutable.REJECT, *["m"] * 50)
    assert {one.kind for one in done} == {OutcomeKind.ACCEPTED}
    for _ in range(50):
        ((one,), _) = sending(single, "/muxers/lossy/x", Unroutable.REJECT, "m")
        assert (one.kind, one.after) == (OutcomeKind.ACCEPTED, AT_CLOSE)
    counts = [world.queue("q").available for world in (whole, single)]
    assert counts[0] == counts[1] == sum(len(one.words) // 8 for one in published)
    assert 10 < counts[0] < 40
    assert [event.count for event in whole.events if type(event) is Drawn] == [50]
    muxer = whole.state.muxer_names["lossy"]
    assert whole.state.draws[muxer] == fold(EMPTY_STATE, single.events).draws[muxer] == 50


def lossy() -> World:
    """A LOSSY muxer that passes on every second message to a queue, about."""
    world = World(fields_of=fields_of)
    world.do(DeclareMuxer("key", "lossy", MuxerKind.LOSSY, Options(probability=0.5, seed=11)))
    world.do(DeclareQueue("key", "q", Settings()))
    world.do(AttachMember("key", "lossy", "q"))
    return world


def test_a_message_is_stored_once_for_all_its_queues() -> None:
    """And reaches each of them once, whatever the number of attachments that match."""
    world = World(fields_of=fields_of)
    world.do(DeclareMuxer("key", "all", MuxerKind.SIMPLE))
    world.do(DeclareMuxer("key", "more", MuxerKind.WILD_DESTINATION))
    for name in ("a", "b"):
        world.do(DeclareQueue("key", name, Settings()))
        world.do(AttachMember("key", "all", name))
        world.do(AttachMember("key", "more", name, "#"))
    world.do(AttachMember("key", "all", "muxer:more"))
    _, (published,) = sending(world, "/muxers/all/x", Unroutable.RELEASE, "m")
    assert names(world, published) == ["a", "b"]
    assert [world.queue(name).available for name in ("a", "b")] == [1, 1]


@pytest.mark.parametrize("address", ["/muxers/m/x", "/muxers/m", ""])
def test_for_consumers_that_are_there_now(address: str) -> None:
    """IMMEDIATE: queues without a consumer are left out; where none is left the message is unroutable."""
    world = World(fields_of=fields_of)
    world.do(DeclareMuxer("key", "m", MuxerKind.SIMPLE))
    for name in ("q", "r"):
        world.do(DeclareQueue("key", name, Settings()))
        world.do(AttachMember("key", "m", name))
    (ready,) = world.do(AttachProducer("key", address, "container", "link", is_immediate=True))
    assert type(ready) is ProducerReady
    text = b"properties.to=/muxers/m/x"

    def outcome() -> OutcomeKind:
        (done,) = world.do(Publish("link", ready.producer, 0, [text], [0], len(text)))
        assert type(done) is PublishDone
        return done.kind

    assert outcome() is OutcomeKind.RELEASED
    consumer = world.consumer("r")
    assert outcome() is OutcomeKind.ACCEPTED
    assert (world.queue("q").depth, world.queue("r").depth) == (0, 1)
    world.do(DetachConsumer(consumer))
    assert outcome() is OutcomeKind.RELEASED


def test_nothing_is_made_for_consumers_that_are_there_now() -> None:
    """A queue that a message names and that is not there has none; what else is attached for its name may have."""
    world = World(EngineConfig(queues_max=1), fields_of=fields_of)
    world.do(DeclareQueue("key", "q", Settings()))
    (ready,) = world.do(AttachProducer("key", "", "container", "link", Unroutable.REJECT, is_immediate=True))
    assert type(ready) is ProducerReady
    text = b"properties.to=new"

    def outcome() -> tuple[OutcomeKind, str]:
        (done,) = world.do(Publish("link", ready.producer, 0, [text], [0], len(text)))
        assert type(done) is PublishDone
        return done.kind, done.description

    assert outcome() == (OutcomeKind.REJECTED, "no queue is attached for it")
    world.consumer("q")
    world.do(AttachMember("key", "QUEUE", "q", "new"))
    assert outcome()[0] is OutcomeKind.ACCEPTED
    assert world.queue("q").depth == 1
    assert [event.name for event in world.events if type(event) is QueueDeclared] == ["q"]


@pytest.mark.parametrize("name", ["new", "$temporary.7"])
def test_what_is_never_made_is_not_found_either(name: str) -> None:
    """An immediate producer gets the same refusal of an unknown address as other producers."""
    world = World(EngineConfig(auto_create=name.startswith("$")), fields_of)
    (ready,) = world.do(AttachProducer("key", "", "container", "link", is_immediate=True))
    assert type(ready) is ProducerReady
    text = f"properties.to=/queues/{name}".encode()
    (done,) = world.do(Publish("link", ready.producer, 0, [text], [0], len(text)))
    assert type(done) is PublishDone
    assert (done.kind, done.condition) == (OutcomeKind.REJECTED, "amqp:not-found")


@pytest.mark.parametrize(
    ("text", "unroutable", "kind"),
    [
        ("properties.to=/topics/t,annotations.x-opt-jms-dest=1", Unroutable.RELEASE, OutcomeKind.ACCEPTED),
        ("properties.to=/topics/t,annotations.x-opt-jms-dest=0", Unroutable.RELEASE, OutcomeKind.RELEASED),
        ("properties.to=/topics/t", Unroutable.RELEASE, OutcomeKind.RELEASED),
        ("properties.to=/topics/t,annotations.x-opt-jms-dest=1", Unroutable.REJECT, OutcomeKind.REJECTED),
    ],
)
def test_a_message_to_a_topic_needs_no_subscription(text: str, unroutable: Unroutable, kind: OutcomeKind) -> None:
    """On the anonymous terminus, as Qpid JMS annotates its messages; a producer that requests rejection gets it."""
    ((done,), _) = sending(World(fields_of=numbers_of), "", unroutable, text)
    assert done.kind is kind


def numbers_of(body: Buffer, _added: object = (), /) -> Fields:
    """Read messages whose annotations are numbers."""
    fields = _Fields(body)
    fields.values = {name: int(value) if value.isdigit() else value for name, value in fields.values.items()}
    return fields


@pytest.mark.parametrize(("queues", "events"), [(2, 10), (7, 2), (11, 1), (20, 1), (50, 1)])
def test_a_decision_has_as_many_events_as_a_tick_takes_changes(queues: int, events: int) -> None:
    """Each is a change in every queue; at least one is decided, however many queues it reaches."""
    context = World(EngineConfig(tick_changes_max=20)).context
    reached = tuple(range(1, queues + 1))
    assert count_max(reached, context) == events * event_messages_max(reached, context)


def test_what_a_full_queue_refuses_says_so() -> None:
    """The sender is held back for it, unlike for other refusals; what had room is accepted."""
    world = World()
    world.do(DeclareQueue("key", "q", Settings(messages_max=2)))
    (ready,) = world.do(AttachProducer("key", "q", "container", "link"))
    assert type(ready) is ProducerReady
    effects = world.do(Publish("link", ready.producer, 0, [b"1", b"2", b"3"], [0] * 3, 3, durable=True))
    done = [effect for effect in effects if type(effect) is PublishDone]
    assert [(one.first_id, one.count, one.is_queue_full) for one in done] == [(0, 2, False), (2, 1, True)]
    assert done[1].condition == "amqp:resource-limit-exceeded"
