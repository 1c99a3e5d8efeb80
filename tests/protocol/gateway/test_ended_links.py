"""Links whose queue or muxer goes are ended, each by its own id; no other link is looked at."""

import sys
from functools import partial
from types import FrameType
from typing import Any

import pytest

from ambermq.engine.commands import DeclareMuxer, DeleteMuxer
from ambermq.engine.config import EngineConfig
from ambermq.engine.effects import Deliver, ProducersEnded
from ambermq.engine.model.muxer import MuxerKind
from ambermq.protocol.amqp10.performatives.classes import Attach, Detach, Source, Target
from ambermq.protocol.amqp10.types.values import Symbol
from ambermq.protocol.gateway import lost_links
from ambermq.protocol.gateway.connection_gateway import ConnectionGateway
from tests.engine.rig import Rig
from tests.protocol.gateway.nodes.test_management_node import Managing, answers, request
from tests.protocol.gateway.test_link_stealing import attach, heard, pair
from tests.protocol.peers import Wire
from tests.protocol.watching import Watching

_QUEUE = Target(address="q")


def test_producers_of_what_is_gone_are_ended_and_no_others() -> None:
    """On every connection; those that the gateway knows are those that are there."""
    one, two = pair("me", "you")
    one.rig.do(DeclareMuxer("key", "m", MuxerKind.SIMPLE))
    muxer = Target(address="/muxers/m/x")
    attach(one, "a", sends=True, target=muxer)
    attach(one, "b", sends=True, handle=1)
    attach(two, "c", sends=True, target=muxer)
    attach(two, "d", sends=True, target=muxer, handle=1)
    assert set(one.gateway.producers) == set(one.rig.loop.state.producers)
    two.say(Detach(handle=1, closed=True))
    effects = one.rig.do(DeleteMuxer("key", "m"))
    one.gateway.carry_out([effect for effect in effects if type(effect) is ProducersEnded])
    assert heard(one) == heard(two) == ["amqp:resource-deleted"]
    assert list(one.gateway.producers) == list(one.rig.loop.state.producers)
    assert len(one.gateway.producers) == 1
    one.peer.lost()
    one.settle()
    assert not one.gateway.producers
    assert not one.rig.loop.state.producers


def test_a_lost_connection_lets_all_of_its_links_go() -> None:
    """Whatever they are: nothing of them is left, what was held is available again, and each goes by few calls."""
    (peer, _), count = pair("me", "you"), 60
    producer = peer.rig.producer()
    peer.rig.do(peer.rig.publish(producer, *[b"\x00\x53\x77\xa1\x01x"] * count))
    attaches = [
        Attach(name="browser", handle=3 * count, role=True, source=Source(address="q", distribution_mode="copy"))
    ]
    for number in range(count):
        attaches += [
            Attach(name=f"r{number}", handle=number, role=True, source=Source(address="q")),
            Attach(name=f"s{number}", handle=count + number, role=False, target=_QUEUE, initial_delivery_count=0),
            Attach(name=f"t{number}", handle=2 * count + number, role=True, source=Source(address=f"/topics/{number}")),
        ]
    peer.say(*attaches)
    for number in range(count):
        peer.flow(1, handle=number)
    queue = peer.rig.queue()
    assert (queue.acquired_count, queue.available) == (count, 0)
    links = len(peer.gateway.links)
    assert links == 3 * count + 1
    calls = 0

    def called(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(called)
    peer.peer.lost()
    sys.setprofile(None)
    # One call asks whether the link is kept for a peer that resumes it, and others end what it sends and what arrives.
    assert calls <= 15 * links
    assert not peer.gateway.links
    peer.settle()
    assert not peer.gateway.consumers
    assert list(peer.rig.loop.state.producers) == [producer]
    assert not peer.rig.loop.state.subscriptions
    assert peer.rig.queue().available == count


def test_very_many_links_of_a_lost_connection_are_detached_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """All are closed at once; no turn detaches more than its share, and none is forgotten."""
    monkeypatch.setattr(lost_links, "LOST_PER_TURN", 7)
    (peer, other), count = pair("me", "you"), 15
    peer.say(
        *[Attach(name=f"r{number}", handle=number, role=True, source=Source(address="q")) for number in range(count)],
        *[
            Attach(name=f"s{number}", handle=count + number, role=False, target=_QUEUE, initial_delivery_count=0)
            for number in range(count)
        ],
    )
    state = peer.rig.loop.state
    assert (len(state.consumers), len(state.producers)) == (count, count)
    peer.peer.lost()
    assert not peer.gateway.links
    left = []
    while peer.gateway.lost_links.links:
        left.append(len(peer.gateway.consumers) + len(peer.gateway.producers))
        peer.gateway.carry_out(peer.rig.do())
        peer.gateway.lost_links.detach()
    peer.settle()
    assert left == [23, 16, 9, 2]
    assert not peer.gateway.consumers
    assert not peer.gateway.producers
    state = peer.rig.loop.state
    assert not state.consumers
    assert not state.producers
    assert list(other.gateway.peers) == [other.peer]


def test_what_arrives_at_a_lost_link_was_never_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """A delivery on its way when the connection was lost counts as no failed one, though its link is still attached."""
    monkeypatch.setattr(lost_links, "LOST_PER_TURN", 1)
    peer, _ = pair("me", "you")
    for number in range(2):
        peer.say(Attach(name=f"r{number}", handle=number, role=True, source=Source(address=f"q{number}")))
    peer.flow(5, handle=1)
    rig = peer.rig
    effects = rig.step(rig.publish(rig.producer("q1"), b"\x00\x53\x77\xa1\x01x"))
    peer.peer.lost()
    peer.gateway.carry_out([effect for effect in effects + rig.completed() if type(effect) is Deliver])
    assert rig.queue("q1").acquired_count == 1
    while peer.gateway.lost_links.links:
        peer.gateway.lost_links.detach()
    peer.settle()
    queue = rig.queue("q1")
    assert (queue.available, queue.counters.failed, queue.counters.released) == (1, 0, 1)


def test_a_node_may_end_while_lost_producers_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """The producers of other connections are detached, and those of the lost connection are forgotten."""
    monkeypatch.setattr(lost_links, "LOST_PER_TURN", 1)
    peer, other = pair("me", "you")
    for number in range(3):
        peer.say(Attach(name=f"s{number}", handle=number, role=False, target=_QUEUE, initial_delivery_count=0))
    other.say(Attach(name="live", handle=0, role=False, target=_QUEUE, initial_delivery_count=0))
    peer.peer.lost()
    gone = frozenset(peer.gateway.producers)
    assert len(gone) == 3
    peer.gateway.carry_out([ProducersEnded(gone, "amqp:resource-deleted", "the queue is gone")])
    assert heard(other) == ["amqp:resource-deleted"]
    peer.settle()
    assert not peer.gateway.producers


_DURABLE: dict[str, Any] = {"durable": 2, "expiry_policy": "never"}


def lost(monkeypatch: pytest.MonkeyPatch, source: Source) -> tuple[Watching, Watching]:
    """Return a peer with links that are detached one a turn, `source` last, and a connection of the same container."""
    monkeypatch.setattr(lost_links, "LOST_PER_TURN", 1)
    peer, again = pair()
    for number in range(2):
        attach(peer, f"r{number}", handle=number)
    attach(peer, "sub", handle=2, source=source)
    return peer, again


def test_an_attach_overtakes_no_detachment_of_a_lost_link(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that connects again gets its subscription; what was not sent to the old link did not fail."""
    source = Source(address="/topics/t", **_DURABLE)
    peer, again = lost(monkeypatch, source)
    peer.flow(5, handle=2)
    rig = peer.rig
    effects = rig.step(rig.publish(rig.producer("/topics/t"), b"\x00\x53\x77\xa1\x01x"))
    peer.peer.lost()
    peer.gateway.carry_out([effect for effect in effects + rig.completed() if type(effect) is Deliver])
    attach(again, "sub", source=source)
    assert heard(again) == []
    (queue,) = [rig.loop.state.queues[one] for one in rig.loop.state.subscriptions]
    assert (queue.consumers, queue.available) == (1, 1)
    assert (queue.counters.failed, queue.counters.released) == (0, 1)


@pytest.mark.parametrize("topic", ["u", None])
def test_a_shared_subscription_is_free_after_its_connection_was_lost(
    monkeypatch: pytest.MonkeyPatch, topic: str | None
) -> None:
    """Another topic, or its name alone: a link that waits for its detachment locks no subscription."""
    shared = {**_DURABLE, "capabilities": (Symbol("shared"),)}
    peer, again = lost(monkeypatch, Source(address="/topics/t", **shared))
    peer.peer.lost()
    said = attach(again, "sub", source=None if topic is None else Source(address=f"/topics/{topic}", **shared))
    assert [each.error for each in said if isinstance(each, Detach)] == []
    state = peer.rig.loop.state
    (queue,) = state.subscriptions
    assert state.subscriptions[queue].topic == (topic or "t")
    assert state.queues[queue].consumers == 1


def test_producers_of_a_lost_connection_leave_room_for_those_of_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit of producers counts none that a detachment waits for."""
    monkeypatch.setattr(lost_links, "LOST_PER_TURN", 1)
    one = Watching(Rig(config=EngineConfig(producers_max=3)), container="me")
    two = Watching(one.rig, container="me", gateway=one.gateway)
    for number in range(3):
        attach(one, f"s{number}", sends=True, handle=number)
    one.peer.lost()
    names = [f"s{number}" for number in range(3)]
    two.say(*[Attach(name=name, handle=at, role=False, target=_QUEUE) for at, name in enumerate(names)])
    assert heard(two) == []
    assert [one.link for one in two.rig.loop.state.producers.values()] == names


def test_an_attach_may_wait_while_its_connection_is_lost_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its link is attached and detached, and nothing of either connection is left."""
    peer, again = lost(monkeypatch, Source(address="q"))
    peer.peer.lost()
    attaches = [
        Attach(name="r", handle=0, role=True, source=Source(address="q")),
        Attach(name="s", handle=1, role=False, target=_QUEUE),
    ]
    again.peer.connection.receive(b"".join(map(Wire.frame, attaches)), 0)
    again.peer.handle_events()
    assert len(peer.gateway.lost_links.links) == 4
    again.peer.release()
    peer.settle()
    state = peer.rig.loop.state
    assert (len(state.consumers), len(state.producers)) == (0, 0)
    assert (peer.gateway.consumers, peer.gateway.producers, len(peer.gateway.links)) == ({}, {}, 0)


def test_a_request_overtakes_no_detachment_of_a_lost_link(monkeypatch: pytest.MonkeyPatch) -> None:
    """The subscription of a lost connection can be deleted as an unused one."""
    monkeypatch.setattr(lost_links, "LOST_PER_TURN", 1)
    managing = Managing()
    peer = Watching(managing.rig, container="me", gateway=managing.gateway)
    for number in range(3):
        attach(peer, f"sub{number}", handle=number, source=Source(address="/topics/t", **_DURABLE))
    peer.peer.lost()
    asked = request("DELETE", type="org.ambermq.subscription", name="sub2")
    assert managing.ask(asked) == []
    while managing.gateway.lost_links.links:
        managing.gateway.lost_links.detach()
    (answer,) = answers(managing.give(b""))
    assert answer.application_properties is not None
    assert answer.application_properties["statusCode"] == 204
    assert len(managing.rig.loop.state.subscriptions) == 2


def test_a_lost_connection_is_freed_after_its_own_links(monkeypatch: pytest.MonkeyPatch) -> None:
    """The links of a connection that is lost later do not hold it back."""
    monkeypatch.setattr(lost_links, "LOST_PER_TURN", 1)
    one, two = pair("me", "you")
    freed: list[ConnectionGateway] = []
    for peer in (one, two):
        for number in range(2):
            attach(peer, f"r{number}", handle=number)
    for peer in (one, two):
        peer.peer.lost()
        one.gateway.lost_links.then(partial(freed.append, peer.peer))
    turns = []
    while one.gateway.lost_links.links:
        one.gateway.lost_links.detach()
        turns.append(len(freed))
    assert turns == [0, 1, 1, 1, 2]
    assert freed == [one.peer, two.peer]
