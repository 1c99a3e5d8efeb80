"""The handles of a session: unknown ones, those in use, and their bounds."""

import pytest

from ambermq.protocol.amqp10.errors import LocalError
from ambermq.protocol.amqp10.limits import ConnectionLimits
from ambermq.protocol.amqp10.performatives.classes import (
    Attach,
    Detach,
    End,
    Flow,
    Transfer,
)
from tests.protocol.amqp10.session.test_session import RECEIVER, SENDER, flow, transfer
from tests.protocol.peers import FIRST_ID, Pair, Wire, conditions


def test_our_handles_reach_the_handle_max_of_the_peer() -> None:
    """That number included."""
    pair = Pair(limits=ConnectionLimits(handle_max=1))
    session = pair.opened()
    for name in ("one", "two"):
        pair.sender(session, name)
    with pytest.raises(LocalError, match="handle 2 exceeds"):
        pair.sender(session, "three")


@pytest.mark.parametrize(
    "performative", [transfer(FIRST_ID, handle=5), flow(handle=5), Detach(handle=5)], ids=["transfer", "flow", "detach"]
)
def test_unknown_handle(performative: Transfer | Flow | Detach) -> None:
    """A handle without a link ends the session with unattached-handle."""
    wire = Wire()
    assert conditions(wire.say(performative)) == [("end", "amqp:session:unattached-handle")]


def test_handle_in_use() -> None:
    """An attach on a handle in use ends the session with handle-in-use."""
    wire = Wire()
    wire.say(wire.attach(role=SENDER))
    assert conditions(wire.say(wire.attach(role=RECEIVER, name="other"))) == [("end", "amqp:session:handle-in-use")]


def test_handles_up_to_handle_max() -> None:
    """Handles up to handle-max may be used; one above closes the connection with framing-error."""
    wire = Wire(ConnectionLimits(handle_max=3))
    assert isinstance(wire.say(wire.attach(role=RECEIVER, handle=3))[0], Attach)
    assert conditions(wire.say(wire.attach(role=SENDER, handle=4))) == [("close", "amqp:connection:framing-error")]


def test_handle_is_reusable() -> None:
    """After detach and detach a handle, and a name, can be attached again."""
    wire = Wire()
    for _ in range(3):
        assert isinstance(wire.say(wire.attach(role=RECEIVER))[0], Attach)
        assert wire.say(Detach(handle=0, closed=True)) == [Detach(handle=0, closed=True)]
    assert wire.session().links() == []


def test_peer_above_its_own_handle_max() -> None:
    """A peer that attaches more links than it has handles for loses the session, and nothing is raised."""
    wire = Wire()
    wire.say(End())
    wire.say(wire.begin(handle_max=0))
    wire.say(wire.attach(role=RECEIVER))
    said = wire.say(wire.attach(role=RECEIVER, name="second", handle=1))
    assert conditions(said) == [("end", "amqp:resource-limit-exceeded")]


def test_links_are_bounded() -> None:
    """The links of a connection are bounded together, those never detached included; an end frees them."""
    wire = Wire(ConnectionLimits(links_max=3))
    for handle in range(3):
        wire.say(wire.attach(role=RECEIVER, handle=handle, name=str(handle)))
    wire.session().links()[0].detach()
    wire.read()
    said = wire.say(wire.attach(role=RECEIVER, handle=3, name="3"))
    assert conditions(said) == [("end", "amqp:resource-limit-exceeded")]
    wire.say(End(), wire.begin())
    assert isinstance(wire.say(wire.attach(role=RECEIVER))[0], Attach)
    assert wire.server.link_count == 1


def test_links_count_until_they_end_and_no_longer() -> None:
    """By a detach or by the end of their session; the limit of the next sessions is not moved."""
    wire = Wire()
    wire.say(*(wire.attach(role=RECEIVER, name=str(handle), handle=handle) for handle in range(3)))
    assert wire.server.link_count == 3
    wire.say(Detach(handle=1, closed=True))
    assert wire.server.link_count == 2
    wire.say(End())
    assert wire.server.link_count == 0
