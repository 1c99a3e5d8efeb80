"""The way of a message as it is told, against what publishing does."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.engine.commands import AttachMember, AttachProducer, DeclareMuxer, DeclareQueue, ExplainRoute, Publish
from ambermq.engine.config import EngineConfig
from ambermq.engine.decide.explain_route import Explained
from ambermq.engine.effects import Answered, Effect, ProducerReady, PublishDone, RefusedCommand
from ambermq.engine.entries.outcome import OutcomeKind
from ambermq.engine.events import Published
from ambermq.engine.model.attachment import Argument, Condition
from ambermq.engine.model.muxer import MuxerKind, Options
from ambermq.engine.settings.queue_settings import Settings
from tests.engine.decide.messages.test_publish import fields_of
from tests.engine.world import World

MUXERS = ("a", "b", "c", "d", "QUEUE", "TOPIC")
QUEUES = ("p", "q", "r")
DESTINATIONS = ("x", "x.y", "p", "")
RED = "colour=red"


def _arguments(kind: MuxerKind) -> st.SearchStrategy[Argument]:
    match kind:
        case MuxerKind.SIMPLE | MuxerKind.LOSSY:
            return st.none()
        case MuxerKind.DESTINATION:
            return st.sampled_from(("x", "x.y", "p", "new"))
        case MuxerKind.WILD_DESTINATION:
            return st.sampled_from(("x", "x.*", "#"))
        case MuxerKind.PROPERTY:
            return st.sampled_from(((Condition("colour"),), (Condition("colour", True, "red"),)))
        case MuxerKind.WILD_PROPERTY:
            return st.sampled_from(((Condition("colour", True, "*"),), (Condition("colour", True, "blue"),)))
        case MuxerKind.SELECTOR:
            return st.sampled_from(("colour = 'red'", "colour IS NULL"))


@st.composite
def wirings(draw: st.DrawFn, *, is_lossy: bool) -> World:
    """Muxers and queues, attached as drawn, as far as that is not refused."""
    world = World(fields_of=fields_of)
    kinds = {"QUEUE": MuxerKind.DESTINATION, "TOPIC": MuxerKind.WILD_DESTINATION}
    for name in MUXERS[:4]:
        kind = draw(st.sampled_from([kind for kind in MuxerKind if is_lossy or kind is not MuxerKind.LOSSY]))
        options = Options(probability=0.5, seed=draw(st.integers(0, 9))) if kind is MuxerKind.LOSSY else Options()
        world.do(DeclareMuxer("key", name, kind, options))
        kinds[name] = kind
    for name in QUEUES:
        world.do(DeclareQueue("key", name, Settings()))
    members = (*QUEUES, *(f"muxer:{name}" for name in MUXERS[:4]))
    for _ in range(draw(st.integers(0, 12))):
        muxer, member = draw(st.sampled_from(MUXERS)), draw(st.sampled_from(members))
        world.do(AttachMember("key", muxer, member, draw(_arguments(kinds[muxer]))))
    return world


ADDRESSES = st.sampled_from(
    (
        *("p", "new", "/queues/q", "/topics/x.y", "/topics/x", "/topics/%24no", "/muxers/QUEUE/x", "/muxers/none/x"),
        *("/nowhere", "$no", "/queues/%24no"),
        *(f"/muxers/{name}/{destination}" for name in MUXERS[:4] for destination in DESTINATIONS),
        *(f"/muxers/{name}" for name in MUXERS[:4]),
    )
)
PROPERTIES = st.sampled_from(("", RED, "colour=blue", "properties.subject=x", f"properties.subject=x.y,{RED}"))


@st.composite
def messages(draw: st.DrawFn) -> tuple[str, bytes]:
    """An address, empty for the anonymous terminus, and a message."""
    address, text = draw(ADDRESSES), draw(PROPERTIES)
    if draw(st.booleans()):
        return "", f"properties.to={address},{text}".encode()
    to = draw(st.sampled_from(("", "properties.to=x,", f"properties.to={address},", f"properties.to={address}/x,")))
    return address, f"{to}{text}".encode()


def ask(world: World, address: str, body: bytes) -> Effect:
    """Ask for a way; the effect that answers."""
    (answer,) = world.do(ExplainRoute("key", address, body, lambda _, explained: explained))
    return answer


def told(world: World, address: str, body: bytes) -> set[str] | None:
    """The queues that a message would reach as it is told, None where that is refused."""
    answer = ask(world, address, body)
    if type(answer) is RefusedCommand:
        return None
    assert type(answer) is Answered
    explained: Explained = answer.value
    names = {world.state.queues[queue].name for queue in explained.queues}
    return names | ({explained.creates} if explained.creates is not None else set())


def done(world: World, address: str, body: bytes) -> set[str] | None:
    """The queues that a message reaches, None where it is refused."""
    (ready,) = world.do(AttachProducer("key", address, "container", "link"))
    if type(ready) is RefusedCommand:
        return None
    assert type(ready) is ProducerReady
    before = len(world.events)
    (effect,) = world.do(Publish("link", ready.producer, 0, [body], [0], len(body)))
    assert type(effect) is PublishDone
    if effect.kind is OutcomeKind.REJECTED:
        return None
    published = [event for event in world.events[before:] if type(event) is Published]
    return {world.state.queues[queue].name for event in published for queue in event.queues}


@settings(max_examples=150, deadline=None)
@given(wirings(is_lossy=False), st.lists(messages(), min_size=1, max_size=6))
def test_what_is_told_is_what_publishing_does(world: World, sent: list[tuple[str, bytes]]) -> None:
    """The same queues, also those that are made, and the same refusals; telling it changes nothing."""
    for address, body in sent:
        before = (world.state, len(world.events))
        expected = told(world, address, body)
        assert (world.state, len(world.events)) == before
        assert done(world, address, body) == expected


@settings(max_examples=100, deadline=None)
@given(wirings(is_lossy=True), st.lists(messages(), min_size=1, max_size=6))
def test_nothing_is_drawn(world: World, sent: list[tuple[str, bytes]]) -> None:
    """With LOSSY muxers a message reaches no more than is told, and all of it where none is on the way."""
    for address, body in sent:
        draws = dict(world.state.draws)
        expected, answer = told(world, address, body), ask(world, address, body)
        assert dict(world.state.draws) == draws
        reached = done(world, address, body)
        if expected is None or reached is None:
            assert (expected, reached) == (None, None)
            continue
        assert type(answer) is Answered
        assert reached <= expected
        assert reached == expected or answer.value.lossy


def test_the_way_names_muxers_and_attachments_in_order() -> None:
    """Each muxer once, with what matched; a LOSSY one passes everything on."""
    world = World(fields_of=fields_of)
    world.do(DeclareMuxer("key", "colours", MuxerKind.PROPERTY))
    world.do(DeclareMuxer("key", "net", MuxerKind.LOSSY, Options(probability=0.0)))
    for queue in ("near", "far"):
        world.do(DeclareQueue("key", queue, Settings()))
    world.do(AttachMember("key", "colours", "near", (Condition("colour"),)))
    world.do(AttachMember("key", "colours", "muxer:net", (Condition("colour", True, "red"),)))
    world.do(AttachMember("key", "net", "far"))
    answer: Any = ask(world, "/muxers/colours/x", RED.encode())
    explained: Explained = answer.value
    name = {**{one.id: one.name for one in world.state.muxers.values()}, **_names(world)}
    assert [(name[hop.muxer], [name[one.member] for one in hop.attachments]) for hop in explained.hops] == [
        ("colours", ["near", "net"]),
        ("net", ["far"]),
    ]
    assert [name[one] for one in explained.lossy] == ["net"]
    assert [name[one] for one in explained.queues] == ["near", "far"]
    assert (name[explained.muxer], explained.destination, explained.creates) == ("colours", "x", None)


def _names(world: World) -> dict[int, str]:
    return {queue.id: queue.name for queue in world.state.queues.values()}


@pytest.mark.parametrize(
    ("address", "condition"),
    [("new", "amqp:not-found"), ("/x", "amqp:not-found"), ("", "amqp:invalid-field"), ("\n", "amqp:invalid-field")],
)
def test_what_publishing_would_refuse_is_refused(address: str, condition: str) -> None:
    """Without auto_create an unknown queue too."""
    answer = ask(World(EngineConfig(auto_create=False), fields_of), address, b"")
    assert type(answer) is RefusedCommand
    assert answer.condition == condition
