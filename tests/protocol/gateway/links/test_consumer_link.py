"""Deliveries that were dealt to a receiver which takes its credit back return to the queue."""

import pytest

from ambermq.engine.effects import Deliver
from ambermq.protocol.amqp10.performatives.classes import Attach, Flow, Source
from tests.protocol.peers import FIRST_ID, Wire
from tests.protocol.watching import Watching, bodies

COUNT = 5
MESSAGE = b"\x00\x53\x77\xa1\x01"


def dealt(*, credit: int = COUNT) -> tuple[Watching, list[Deliver]]:
    """A receiver with credit, and the deliveries to it that the engine has dealt and the gateway has not seen."""
    peer = Watching()
    peer.say(Attach(name="r", handle=0, role=True, source=Source(address="q")))
    peer.flow(credit)
    messages = [MESSAGE + bytes((number,)) for number in b"12345"]
    effects = peer.rig.do(peer.rig.publish(peer.rig.producer(), *messages))
    deliveries = [effect for effect in effects if type(effect) is Deliver]
    assert peer.rig.queue().acquired_count == min(credit, COUNT)
    return peer, deliveries


@pytest.mark.parametrize("credit", [0, 2])
def test_deliveries_beyond_the_credit_go_back(credit: int) -> None:
    """Those within it are sent, the others are available to others, in their old order."""
    peer, deliveries = dealt()
    sent = peer.flow(credit)
    peer.gateway.carry_out(deliveries)
    sent += peer.settle()
    assert [body[-1:] for body in bodies(sent)] == [b"1", b"2"][:credit]
    queue = peer.rig.queue()
    assert (queue.acquired_count, queue.available) == (credit, COUNT - credit)
    rest = peer.flow(COUNT, count=credit)
    assert [body[-1:] for body in bodies(rest)] == [b"1", b"2", b"3", b"4", b"5"][credit:]


def test_a_backlog_behind_a_closed_window_stays_until_the_credit_goes() -> None:
    """The window opens again, so the backlog keeps its place; without credit it goes back."""
    peer, deliveries = dealt()
    peer.flow(COUNT, incoming_window=0)
    peer.gateway.carry_out(deliveries)
    assert bodies(peer.settle()) == []
    assert peer.rig.queue().acquired_count == COUNT
    peer.flow(3, incoming_window=0)
    assert peer.rig.queue().acquired_count == 3
    windows = {"next_incoming_id": 0, "next_outgoing_id": FIRST_ID, "outgoing_window": 1000}
    said = peer.give(Wire.frame(Flow(**windows, incoming_window=100)))
    assert [body[-1:] for body in bodies(said)] == [b"1", b"2", b"3"]


def test_a_drain_returns_what_it_cannot_send() -> None:
    """A receiver that drains and gets its answer holds nothing that it was not sent."""
    peer, deliveries = dealt()
    peer.flow(0, drain=True)
    peer.gateway.carry_out(deliveries)
    peer.settle()
    assert peer.rig.queue().available == COUNT
