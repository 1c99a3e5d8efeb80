"""Attaches that desire `ambermq:existing`: nothing is created that outlives the link, and nothing is deleted.

The table in docs/addresses.md has a row for each case here.
"""

from typing import Any

import pytest

from ambermq.protocol.amqp10.link.link import EXISTING
from ambermq.protocol.amqp10.performatives.classes import Attach, Detach, Source, Target
from ambermq.protocol.amqp10.types.values import Described, Symbol
from ambermq.protocol.gateway.links.attach_terms import DELAYED_DELIVERY
from tests.protocol.watching import Watching

_SELECTOR = {Symbol("s"): Described(Symbol("apache.org:selector-filter:string"), "a = 1")}


def durable(address: str = "/topics/t", **fields: Any) -> Source:
    """Return the source of a durable subscription."""
    return Source(address=address, durable=2, expiry_policy=Symbol("never"), **fields)


def attach(peer: Watching, *, must_exist: bool = True, name: str = "sub", handle: int = 0, **terms: Any) -> str:
    """Attach and return the condition of the refusal; else "offered", or "" if the capability is not offered."""
    role = "source" in terms
    other = {"target": Target()} if role else {"source": Source()}
    wanted = (EXISTING,) if must_exist else ()
    first = {} if role else {"initial_delivery_count": 0}
    said = peer.say(Attach(name=name, handle=handle, role=role, desired_capabilities=wanted, **other, **terms, **first))
    for one in said:
        if isinstance(one, Detach) and one.error is not None:
            peer.say(Detach(handle=handle, closed=True))
            return str(one.error.condition)
    (answer,) = [one for one in said if isinstance(one, Attach)]
    return "offered" if EXISTING in answer.offered_capabilities else ""


def detach(peer: Watching, handle: int = 0) -> None:
    """Detach without closing: a durable subscription stays."""
    peer.say(Detach(handle=handle, closed=False))


def test_a_durable_subscription_must_be_there() -> None:
    """One that is not is `amqp:not-found`, and is not made."""
    peer = Watching()
    assert attach(peer, source=durable()) == "amqp:not-found"
    assert not peer.rig.loop.state.subscriptions
    assert not peer.rig.loop.state.queues
    assert attach(peer, must_exist=False, source=durable()) == ""
    detach(peer)
    assert attach(peer, source=durable()) == "offered"


@pytest.mark.parametrize(
    "other",
    [durable("/topics/other"), durable(filter=_SELECTOR)],
    ids=["another topic", "another selector"],
)
def test_a_durable_subscription_with_other_terms_is_not_replaced(other: Source) -> None:
    """Without the capability the attach replaces it and deletes its messages; with it everything stays."""
    peer = Watching()
    assert attach(peer, must_exist=False, source=durable()) == ""
    detach(peer)
    before = peer.rig.loop.state.subscriptions
    assert attach(peer, source=other) == "amqp:not-found"
    assert peer.rig.loop.state.subscriptions == before
    assert attach(peer, must_exist=False, name="sub", source=other) == ""
    assert peer.rig.loop.state.subscriptions != before


def test_a_subscription_that_ends_with_its_link_may_be_new() -> None:
    """It is the link's own."""
    peer = Watching()
    assert attach(peer, source=Source(address="/topics/t")) == "offered"
    peer.say(Detach(handle=0, closed=True))
    assert not peer.rig.loop.state.subscriptions


@pytest.mark.parametrize("terms", [{"source": Source(dynamic=True)}, {"target": Target(dynamic=True)}])
def test_a_dynamic_node_is_always_new(terms: dict[str, Any]) -> None:
    """So the capability excludes it, and no node is made."""
    peer = Watching()
    assert attach(peer, **terms) == "amqp:invalid-field"
    assert not peer.rig.loop.state.queues
    assert attach(peer, must_exist=False, handle=1, name="other", **terms) == ""


def test_a_queue_must_be_there_for_either_direction() -> None:
    """And an anonymous terminus does not offer what it cannot keep."""
    peer = Watching()
    for number, terms in enumerate(({"source": Source(address="q")}, {"target": Target(address="q")})):
        assert attach(peer, name=f"l{number}", handle=number, **terms) == "amqp:not-found"
    assert not peer.rig.loop.state.queues
    assert attach(peer, name="any", handle=5, target=Target(address=None)) == ""


def test_a_sender_that_desires_delayed_delivery_is_offered_it() -> None:
    """Qpid JMS looks at the link; no other sender is told of it."""
    peer = Watching()
    for handle, wanted in enumerate(((DELAYED_DELIVERY,), ())):
        terms = {"source": Source(), "target": Target(address="q"), "initial_delivery_count": 0}
        said = peer.say(Attach(name=f"s{handle}", handle=handle, role=False, desired_capabilities=wanted, **terms))
        (answer,) = [one for one in said if isinstance(one, Attach)]
        assert answer.offered_capabilities == wanted
