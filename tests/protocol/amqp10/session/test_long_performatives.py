"""Performatives above the limit: what a link keeps of its peer is bounded."""

import pytest

from ambermq.protocol.amqp10.events import SessionEnded
from ambermq.protocol.amqp10.limits import ConnectionLimits
from ambermq.protocol.amqp10.performatives.base import Composite
from ambermq.protocol.amqp10.performatives.classes import (
    Attach,
    Begin,
    Close,
    Detach,
    Disposition,
    End,
    Error,
    Flow,
    Rejected,
)
from tests.protocol.peers import FIRST_ID, Wire, conditions

LIMITS = ConnectionLimits(performative_bytes_max=1000)
LONG = {"x": "y" * 1000}
ERROR = Error(condition="a:b", description="c" * 1000)
EXCEEDED = "amqp:resource-limit-exceeded"
OF_SESSIONS = [
    Wire.attach(role=True, unsettled={b"%d" % number: None for number in range(1000)}),
    Flow(incoming_window=1, next_outgoing_id=FIRST_ID, outgoing_window=0, properties=LONG),
    Disposition(role=True, first=FIRST_ID, settled=True, state=Rejected(error=ERROR)),
    Detach(handle=0, error=ERROR),
]


@pytest.mark.parametrize("long", OF_SESSIONS, ids=lambda one: one.NAME)
def test_one_of_a_session_ends_it_and_no_other(long: Composite) -> None:
    """Those that follow are ignored until the end; then the channel is free again."""
    wire = Wire(LIMITS)
    wire.say(wire.begin(), channel=1)
    (said,) = wire.say(long, *OF_SESSIONS)
    assert isinstance(said, End)
    assert said.error is not None
    assert (said.error.condition, long.NAME in str(said.error.description)) == (EXCEEDED, True)
    assert [type(one) for one in wire.say(wire.attach(role=True), channel=1)] == [Attach]
    assert wire.say(End()) == []
    assert [type(one) for one in wire.say(wire.begin(), wire.attach(role=True, name="again"))] == [Begin, Attach]


@pytest.mark.parametrize(
    "long", [Begin(next_outgoing_id=0, incoming_window=1, outgoing_window=1, properties=LONG), End(error=ERROR)]
)
def test_one_of_no_link_closes_the_connection(long: Composite) -> None:
    """No session could end for it, or it would end twice."""
    assert conditions(Wire(LIMITS).say(long)) == [("close", EXCEEDED)]


def test_one_on_a_channel_without_a_session_closes_the_connection() -> None:
    """As any frame there."""
    assert conditions(Wire(LIMITS).say(OF_SESSIONS[0], channel=3)) == [("close", EXCEEDED)]


def test_one_with_a_long_descriptor_closes_the_connection() -> None:
    """It must be decoded to know what it is."""
    wire, body = Wire(LIMITS), OF_SESSIONS[0].encode()
    body = b"\0\x80" + body[2:3].rjust(8, b"\0") + body[3:]
    wire.give((8 + len(body)).to_bytes(4, "big") + b"\2\0\0\0" + body)
    assert wire.error() == ("close", EXCEEDED)


@pytest.mark.parametrize("long", OF_SESSIONS, ids=lambda one: one.NAME)
def test_after_the_close_of_the_server_nothing_is_said(long: Composite) -> None:
    """A connection that ends has no session that could end for it."""
    wire = Wire(LIMITS)
    wire.server.close()
    assert [type(one) for _, one, _ in wire.read()] == [Close]
    assert wire.say(long) == []
    assert not any(isinstance(event, SessionEnded) for event in wire.events)
