"""Peers pipeline: nothing may need a round trip, and the answers come in order."""

import pytest

from ambermq.protocol.amqp10.connection.connection import Connection
from ambermq.protocol.amqp10.connection.connection_role import ConnectionRole
from ambermq.protocol.amqp10.events import LinkAttached, Opened, SessionBegun, TransferRun
from ambermq.protocol.amqp10.framing.frames import AMQP_HEADER
from ambermq.protocol.amqp10.limits import ConnectionLimits
from ambermq.protocol.amqp10.performatives.classes import (
    Accepted,
    Attach,
    Begin,
    Close,
    Detach,
    Disposition,
    End,
    Flow,
    Open,
    Source,
    Target,
    Transfer,
)
from tests.protocol.amqp10.session.test_session import RECEIVER, SENDER, flow
from tests.protocol.peers import FIRST_ID, Pair, Wire


def everything() -> bytes:
    """Header, open, begin, two attaches and a flow, in one segment."""
    frames = (
        Open(container_id="wire"),
        Wire.begin(),
        Wire.attach(role=RECEIVER, name="down"),
        flow(handle=0, link_credit=10),
        Wire.attach(role=SENDER, name="up", handle=1),
    )
    return AMQP_HEADER + b"".join(map(Wire.frame, frames))


@pytest.mark.parametrize("piece", [1, 7, 10_000])
def test_one_segment(piece: int) -> None:
    """Open, begin, attach and flow in one segment, however it is cut: each is answered, open first."""
    wire = Wire(opened=False)
    data = everything()
    for start in range(0, len(data), piece):
        wire.give(data[start : start + piece])
    answers = [type(performative) for _, performative, _ in wire.read()]
    assert answers == [Open, Begin, Attach, Attach, Flow]
    down, up = wire.session().links()
    assert (down.credit, up.credit) == (10, 100)


def test_nothing_is_read_before_the_open_is_accepted() -> None:
    """What comes behind the open is told behind the answer, not before."""
    server = Connection(ConnectionRole.SERVER, ConnectionLimits(), now_ms=0, container_id="s")
    server.receive(everything(), 0)
    assert [type(event) for event in server.take_events()] == [Opened]
    server.receive(Wire.frame(Close()), 0)
    assert server.take_events() == []
    server.accept()
    kinds = [type(event) for event in server.take_events()]
    assert kinds[:2] == [SessionBegun, LinkAttached]
    assert server.is_ended


def test_everything_and_goodbye() -> None:
    """Even the close may be in the first segment."""
    wire = Wire(opened=False)
    wire.give(everything() + b"".join(map(Wire.frame, (Detach(handle=0, closed=True), End(), Close()))))
    answers = [type(performative) for _, performative, _ in wire.read()]
    assert answers[:2] == [Open, Begin]
    assert answers[-3:] == [Detach, End, Close]
    assert wire.server.is_ended


def test_our_client_pipelines() -> None:
    """Our client says open, begin, attach and flow before it heard anything, in one segment."""
    pair = Pair()
    pair.client.open("localhost")
    session = pair.client.begin()
    session.attach_sender("up", Source(), Target(address="q"))
    receiver = session.attach_receiver("down", Source(address="q"), Target())
    receiver.grant(10)
    assert len(pair.client.take_output()) == 1


def test_transfers_and_dispositions_in_one_segment() -> None:
    """Transfers and the disposition that settles them by the sender may come together."""
    wire = Wire()
    wire.say(wire.attach(role=SENDER))
    wire.events.clear()
    wire.say(
        *(Transfer(handle=0, delivery_id=(FIRST_ID + i) & 0xFFFFFFFF, delivery_tag=b"t") for i in range(5)),
        Disposition(role=SENDER, first=FIRST_ID, last=1, settled=True, state=Accepted()),
    )
    assert sum(len(event.payloads) for event in wire.events if isinstance(event, TransferRun)) == 5
    assert wire.session().received.count == 0
