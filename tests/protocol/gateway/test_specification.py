"""Clauses of the specification that a gateway keeps, by frames: termini, outcomes, dynamic nodes."""

from typing import Any

import pytest

from ambermq.protocol.amqp10.performatives.base import Composite
from ambermq.protocol.amqp10.performatives.classes import Accepted, Attach, Modified, Released, Source, Target
from ambermq.protocol.amqp10.types.values import Symbol
from tests.engine.rig import Rig
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
