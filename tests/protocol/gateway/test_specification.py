"""Clauses of the specification that a gateway keeps, by frames: termini, outcomes, dynamic nodes."""

from typing import Any

import pytest

from ambermq.engine.commands import DeclareQueue
from ambermq.engine.model.queue import Settings
from ambermq.protocol.amqp10.message.message import Message
from ambermq.protocol.amqp10.performatives.base import Composite
from ambermq.protocol.amqp10.performatives.classes import (
    Accepted,
    Attach,
    Detach,
    Disposition,
    Modified,
    Properties,
    Rejected,
    Released,
    Source,
    Target,
    Transfer,
)
from ambermq.protocol.amqp10.types.values import Symbol
from ambermq.protocol.gateway.links.routing_fields import RoutingFields
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
