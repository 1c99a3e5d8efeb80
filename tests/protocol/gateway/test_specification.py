"""Clauses of the specification that a gateway keeps, by frames: termini, outcomes, dynamic nodes."""

from copy import deepcopy
from typing import Any

import pytest

from ambermq.engine.commands import DeclareQueue
from ambermq.engine.settings.queue_settings import Settings
from ambermq.protocol.amqp10.message.message import Message, decode_message
from ambermq.protocol.amqp10.performatives.base import Composite
from ambermq.protocol.amqp10.performatives.classes import (
    Accepted,
    Attach,
    Close,
    Coordinator,
    DeleteOnNoLinks,
    Detach,
    Disposition,
    End,
    Header,
    Modified,
    Open,
    Properties,
    Rejected,
    Released,
    Source,
    Target,
    Transfer,
)
from ambermq.protocol.amqp10.types.values import Array, Symbol, UInt, ULong
from ambermq.protocol.auth.identity import Identity
from ambermq.protocol.gateway.links.routing_fields import RoutingFields
from ambermq.protocol.gateway.opening.container_ids import SOLE_CONNECTION
from tests.engine.rig import Rig
from tests.protocol.peers import Wire
from tests.protocol.watching import Watching

ALL = tuple(f"amqp:{name}:list" for name in ("accepted", "rejected", "released", "modified"))


def attached(peer: Watching, *, sends: bool, name: str = "l", handle: int = 0, **fields: Any) -> list[Composite | None]:
    """Attach a link of a peer at the queue `q`, or as the fields say; returns all that comes."""
    terms = {"source": Source(address="q"), "target": Target(address="q"), **fields}
    return peer.say(
        Attach(name=name, handle=handle, role=not sends, initial_delivery_count=0 if sends else None, **terms)
    )


def source_of(said: list[Composite | None]) -> Source:
    """Return the source in the broker's attach."""
    (attach,) = [each for each in said if isinstance(each, Attach)]
    assert isinstance(attach.source, Source)
    return attach.source


@pytest.mark.parametrize("address", ["q", "/topics/t", "/log"])
def test_a_source_names_its_outcomes(address: str) -> None:
    """A source without outcomes promises `accepted` alone (3.5.3), so the broker names what it supports."""
    answer = source_of(attached(Watching(), sends=False, source=Source(address=address)))
    assert answer.outcomes == ALL
    assert answer.default_outcome == Released()


def test_a_source_names_those_that_were_asked_for() -> None:
    """Of the outcomes that a receiver lists, those that the broker knows; its default outcome stays."""
    source = Source(address="q", outcomes=(Symbol(ALL[3]), Symbol("x"), Symbol(ALL[0])), default_outcome=Modified())
    answer = source_of(attached(Watching(), sends=False, source=source))
    assert answer.outcomes == (ALL[0], ALL[3])
    assert answer.default_outcome == Modified()


def test_the_source_of_a_durable_subscription_names_its_outcomes() -> None:
    """The answer to a receiver without a source describes the subscription, with what it supports."""
    peer = Watching(Rig())
    source = Source(address="/topics/t", durable=1, expiry_policy="never")
    attached(peer, sends=False, source=source)
    other = Watching(peer.rig, gateway=peer.gateway)
    answer = source_of(attached(other, sends=False, source=None))
    assert answer.address == "/topics/t"
    assert answer.outcomes == ALL
    assert answer.default_outcome == Released()


@pytest.mark.parametrize("address", ["q", "$management", "$cbs"])
@pytest.mark.parametrize("source", [None, Source(), Source(address="me")])
def test_the_source_of_a_sender_names_outcomes(address: str, source: Source | None) -> None:
    """A sender that lists no outcomes learns which ones it gets; its default outcome is its own affair."""
    answer = source_of(attached(Watching(), sends=True, source=source, target=Target(address=address)))
    assert answer.outcomes == ALL
    assert answer.default_outcome is None


def test_the_outcomes_of_a_sender_are_echoed() -> None:
    """A sender that lists outcomes gets its own list back."""
    source = Source(outcomes=(Symbol(ALL[0]),), default_outcome=Accepted())
    answer = source_of(attached(Watching(), sends=True, source=source))
    assert answer.outcomes == (ALL[0],)
    assert answer.default_outcome == Accepted()


def message(to: str) -> bytes:
    """Return a message with an address in its `to`."""
    return Message(properties=Properties(to=to)).encode()


def sending(**fields: Any) -> Watching:
    """Return a peer that sends on handle 0, by default to the anonymous terminus; a queue `full` has no room."""
    peer = Watching(Rig(fields_of=RoutingFields))
    peer.rig.do(DeclareQueue("key", "full", Settings(messages_max=1)))
    attached(peer, sends=True, **{"target": Target(), "source": Source(), **fields})
    return peer


def transfer(number: int, to: str, *, settled: bool = False) -> bytes:
    """Return the frame of a message to an address, with a tag of its own."""
    performative = Transfer(handle=0, delivery_id=number, delivery_tag=b"tag%d" % number, settled=settled)
    return Wire.frame(performative, message(to))


def answers(peer: Watching, *frames: bytes) -> list[Disposition | Detach]:
    """Send frames; return the outcomes and detaches that come."""
    return [each for each, _ in peer.give(b"".join(frames)) if isinstance(each, Disposition | Detach)]


@pytest.mark.parametrize("outcomes", [(), ALL])
def test_an_unknown_address_is_rejected_where_the_source_allows_it(outcomes: tuple[str, ...]) -> None:
    """The message is rejected with the error that an attach would get, and the link goes on (anonterm, 2.2.2)."""
    peer = sending(source=Source(outcomes=tuple(map(Symbol, outcomes))))
    first, second = answers(peer, transfer(0, "/muxers/none"), transfer(1, "q"))
    assert isinstance(first, Disposition)
    assert isinstance(first.state, Rejected)
    assert first.state.error is not None
    assert first.state.error.condition == "amqp:not-found"
    assert isinstance(second, Disposition)
    assert second.state == Accepted()


def detached_with(said: list[Disposition | Detach]) -> tuple[str, bytes | None]:
    """Return condition and delivery-tag of the detach, which comes last."""
    detach = said[-1]
    assert isinstance(detach, Detach)
    assert detach.closed
    assert detach.error is not None
    return str(detach.error.condition), (detach.error.info or {}).get("delivery-tag")


@pytest.mark.parametrize(("settled", "outcomes"), [(True, ()), (True, ALL), (False, ALL[:1])])
def test_an_unknown_address_detaches_where_nothing_can_be_rejected(settled: bool, outcomes: tuple[str, ...]) -> None:
    """A settled message, or a source without rejected: a detach, whose error names the delivery (anonterm, 2.2.2)."""
    peer = sending(source=Source(outcomes=tuple(map(Symbol, outcomes))))
    frames = [transfer(0, "q", settled=settled), transfer(1, "q", settled=settled)]
    said = answers(peer, *frames, transfer(2, "/muxers/none", settled=settled))
    assert detached_with(said) == ("amqp:not-found", b"tag2")
    assert sum(isinstance(each, Disposition) for each in said) == (0 if settled else len(said) - 1)
    assert peer.rig.loop.state.queue_named("q").depth == 2
    assert not peer.rig.loop.state.producers


def test_a_settled_message_to_a_full_queue_is_dropped() -> None:
    """The address exists, so the link stays."""
    peer = sending()
    assert answers(peer, *(transfer(number, "full", settled=True) for number in range(3))) == []
    assert peer.rig.loop.state.queue_named("full").depth == 1
    (said,) = answers(peer, transfer(3, "q"))
    assert isinstance(said, Disposition)


@pytest.mark.parametrize("address", [None, "full"])
@pytest.mark.parametrize("listed", [True, False])
def test_a_full_queue_is_refused_as_the_source_allows(address: str | None, *, listed: bool) -> None:
    """Rejected, unless the sender listed outcomes without it: then the link is detached with the error."""
    outcomes = (Symbol(ALL[0]), Symbol(ALL[2])) if listed else ()
    peer = sending(source=Source(outcomes=outcomes), target=Target(address=address))
    assert isinstance(answers(peer, transfer(0, "full"))[0], Disposition)
    said = answers(peer, transfer(1, "full"))
    if listed:
        assert detached_with(said) == ("amqp:resource-limit-exceeded", b"tag1")
    else:
        (refused,) = said
        assert isinstance(refused, Disposition)
        assert isinstance(refused.state, Rejected)


DYNAMIC = {True: {"target": Target(dynamic=True), "source": Source()}, False: {"source": Source(dynamic=True)}}


def temporary(said: list[Composite | None], *, sends: bool) -> str:
    """Return the address of the dynamic node in the broker's attach."""
    (attach,) = [each for each in said if isinstance(each, Attach)]
    terminus = attach.target if sends else attach.source
    assert isinstance(terminus, Source | Target)
    assert terminus.dynamic
    assert terminus.address is not None
    return terminus.address


def nodes(peer: Watching) -> list[str]:
    """Return the addresses of the dynamic queues that exist."""
    return [f"/queues/{name}" for name in peer.rig.loop.state.queue_names if name.startswith("$temporary")]


@pytest.mark.parametrize("sends", [True, False])
def test_a_dynamic_node_lives_on_without_a_close(*, sends: bool) -> None:
    """A detach without close leaves the node; the same link name gets it again, and its close ends it (3.5.10)."""
    peer = Watching()
    address = temporary(attached(peer, sends=sends, **DYNAMIC[sends]), sends=sends)
    for _ in range(2):
        peer.say(Detach(handle=0))
        assert nodes(peer) == [address]
        assert temporary(attached(peer, sends=sends, **DYNAMIC[sends]), sends=sends) == address
    peer.say(Detach(handle=0, closed=True))
    assert nodes(peer) == []


@pytest.mark.parametrize("sends", [True, False])
@pytest.mark.parametrize("attached_again", [True, False])
@pytest.mark.parametrize(("expiry", "survives"), [("session-end", False), ("connection-close", True), ("never", True)])
def test_a_dynamic_node_ends_with_its_session(
    expiry: str, *, survives: bool, attached_again: bool, sends: bool
) -> None:
    """A terminus expires with its session by default, and with its connection at the latest."""
    peer = Watching()
    terms = deepcopy(DYNAMIC[sends])
    terms["target" if sends else "source"].expiry_policy = expiry  # type: ignore[union-attr]
    said = attached(peer, sends=sends, **terms)
    address = temporary(said, sends=sends)
    (answer,) = [each.target if sends else each.source for each in said if isinstance(each, Attach)]
    assert answer.expiry_policy == expiry.replace("never", "connection-close")
    peer.say(Detach(handle=0))
    if attached_again:
        attached(peer, sends=sends, **terms)
    peer.say(End())
    assert nodes(peer) == ([address] if survives else [])
    peer.say(Close())
    assert nodes(peer) == []


@pytest.mark.parametrize("sends", [True, False])
def test_a_dynamic_node_ends_if_its_link_attaches_elsewhere(*, sends: bool) -> None:
    """A link name has one terminus; one that expires with the link ends at the detach, too."""
    peer = Watching()
    address = temporary(attached(peer, sends=sends, **DYNAMIC[sends]), sends=sends)
    peer.say(Detach(handle=0))
    attached(peer, sends=sends, name="other", handle=1)
    assert nodes(peer) == [address]
    attached(peer, sends=sends)
    assert nodes(peer) == []
    expiring = deepcopy(DYNAMIC[sends])
    expiring["target" if sends else "source"].expiry_policy = "link-detach"  # type: ignore[union-attr]
    attached(peer, sends=sends, name="third", handle=2, **expiring)
    assert len(nodes(peer)) == 1
    peer.say(Detach(handle=2))
    assert nodes(peer) == []


def test_a_dynamic_node_that_has_ended_is_made_anew() -> None:
    """The policy delete-on-no-links ends a node with any detach, so the link gets another one."""
    peer = Watching()
    target = Target(dynamic=True, dynamic_node_properties={Symbol("lifetime-policy"): DeleteOnNoLinks()})
    address = temporary(attached(peer, sends=True, target=target), sends=True)
    peer.say(Detach(handle=0))
    assert nodes(peer) == []
    other = temporary(attached(peer, sends=True, target=target), sends=True)
    assert other != address
    assert nodes(peer) == [other]


def test_a_receiver_whose_target_is_a_coordinator_is_refused() -> None:
    """A terminus without meaning is refused: an attach with a null source, then a detach (2.7.3)."""
    attach, detach = attached(Watching(), sends=False, target=Coordinator())
    assert isinstance(attach, Attach)
    assert attach.source is None
    assert isinstance(detach, Detach)
    assert detach.error is not None
    assert detach.error.condition == "amqp:invalid-field"


@pytest.mark.parametrize("modes", ["move", ULong(1), [Symbol("move")], Array("string", ("move",))])
@pytest.mark.parametrize("sends", [True, False])
def test_distribution_modes_of_a_wrong_type_are_refused(modes: Any, *, sends: bool) -> None:
    """`supported-dist-modes` is one symbol or several (3.5.9)."""
    node = {"dynamic": True, "dynamic_node_properties": {Symbol("supported-dist-modes"): modes}}
    terms = {"target": Target(**node)} if sends else {"source": Source(**node)}
    peer = Watching()
    detach = attached(peer, sends=sends, **terms)[-1]
    assert isinstance(detach, Detach)
    assert detach.error is not None
    assert detach.error.condition == "amqp:invalid-field"
    assert nodes(peer) == []


@pytest.mark.parametrize("modes", [Symbol("move"), Array("symbol", ("move", "copy")), None])
def test_distribution_modes_are_one_symbol_or_several(modes: Any) -> None:
    """The values of the right types are taken."""
    target = Target(dynamic=True, dynamic_node_properties={Symbol("supported-dist-modes"): modes})
    temporary(attached(Watching(), sends=True, target=target), sends=True)


def opened(first: Watching, *, policy: int | None, container: str = "me", username: str | None = None) -> Watching:
    """Connect again, as the only connection of a container."""
    properties = None if policy is None else {Symbol("sole-connection-enforcement-policy"): UInt(policy)}
    wire = Watching(first.rig, gateway=first.gateway, container=None)
    wire.peer.identity = Identity(username)
    wire.opening = wire.say(
        Open(container_id=container, desired_capabilities=(SOLE_CONNECTION,), properties=properties), Wire.begin()
    )
    return wire


def closed_with(said: list[Composite | None]) -> Any:
    """Return the error of the close, None without a close."""
    return next((each.error for each in said if isinstance(each, Close)), None)


def test_our_open_says_how_a_container_is_detected() -> None:
    """Weak detection: only a connection that asks is compared (soleconn). Without a word it would be strong."""
    opening = Watching().opening[0]
    assert isinstance(opening, Open)
    assert (opening.properties or {})["sole-connection-detection-policy"] == 1
    assert SOLE_CONNECTION in (opening.offered_capabilities or ())


@pytest.mark.parametrize("policy", [None, 0])
def test_a_second_sole_connection_is_refused(policy: int | None) -> None:
    """The policy refuse-connection is the default: amqp:invalid-field, container-id; the first one stays."""
    first = Watching(container="me")
    error = closed_with(opened(first, policy=policy).opening)
    assert (error.condition, error.info) == ("amqp:invalid-field", {"invalid-field": "container-id"})
    assert first.settle() == []


def test_existing_connections_are_closed_for_a_sole_one() -> None:
    """The policy close-existing: amqp:resource-locked, and sole-connection-enforcement in its info."""
    first = Watching(container="me")
    other = Watching(first.rig, gateway=first.gateway, container="me")
    attached(first, sends=True)
    stranger = Watching(first.rig, gateway=first.gateway, container="you")
    new = opened(first, policy=1)
    assert closed_with(new.opening) is None
    for each in (first, other):
        error = closed_with([said for said, _ in each.settle()])
        assert (error.condition, error.info) == ("amqp:resource-locked", {"sole-connection-enforcement": True})
    assert stranger.settle() == []
    assert not first.rig.loop.state.producers
    assert new.peer.container == "me"


def test_existing_connections_of_another_user_are_not_closed() -> None:
    """A container id is an id of its user alone: both connections are there."""
    first = Watching(container="me")
    other = opened(first, policy=1, username="mallory")
    assert closed_with(other.opening) is None
    assert other.peer.container == first.peer.container == "me"
    assert first.settle() == []


@pytest.mark.parametrize(("closed", "count"), [(True, 1), (False, 2)])
def test_a_failure_counts_once_if_the_consumer_closes(*, closed: bool, count: int) -> None:
    """A consumer that modifies a delivery and closes gets it again in between: only the outcome counts.

    A link that ends otherwise may have failed with the delivery that it got again, so that counts as before.
    """
    peer = Watching()
    producer = peer.rig.producer()
    peer.rig.do(peer.rig.publish(producer, b"\x00\x53\x77\xa1\x01x"))
    attached(peer, sends=False)
    (first,) = [each for each, _ in peer.flow(5) if isinstance(each, Transfer)]
    failed = Disposition(role=True, first=first.delivery_id, settled=True, state=Modified(delivery_failed=True))
    (again,) = [each for each in peer.say(failed) if isinstance(each, Transfer)]
    assert again.delivery_id == 1
    peer.say(Detach(handle=0, closed=closed))
    if not closed:
        # A detached link keeps its deliveries until its session ends.
        peer.say(End(), Wire.begin(incoming_window=1 << 20))
    attached(peer, sends=False, name="other")
    ((_, payload),) = [each for each in peer.flow(5) if isinstance(each[0], Transfer)]
    assert decode_message(payload).header == Header(delivery_count=count)


def test_a_delivery_with_an_outcome_since_counts_again() -> None:
    """Two failures of one consumer are two, and a closing consumer leaves what it never failed with as it was."""
    peer = Watching()
    producer = peer.rig.producer()
    peer.rig.do(peer.rig.publish(producer, b"\x00\x53\x77\xa1\x01x", b"\x00\x53\x77\xa1\x01y"))
    attached(peer, sends=False)
    peer.flow(5)
    for delivery in (0, 2):
        peer.say(Disposition(role=True, first=delivery, settled=True, state=Modified(delivery_failed=True)))
    peer.say(Detach(handle=0, closed=True))
    attached(peer, sends=False, name="other")
    said = [payload for each, payload in peer.flow(5) if isinstance(each, Transfer)]
    headers = {payload[-1:]: decode_message(payload).header for payload in said}
    assert headers == {b"x": Header(delivery_count=2), b"y": Header(delivery_count=1)}
