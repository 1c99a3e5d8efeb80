"""The end of a session: what it answers, what it ignores, and what it frees."""

from ambermq.protocol.amqp10.events import LinkAttached, SessionEnded
from ambermq.protocol.amqp10.performatives.classes import (
    Accepted,
    Detach,
    Disposition,
    End,
    Error,
)
from ambermq.protocol.amqp10.state_tables import SessionState
from tests.protocol.amqp10.session.test_session import RECEIVER, SENDER, flow, sent, told, transfer
from tests.protocol.peers import FIRST_ID, Pair, Wire, conditions


def test_end_is_answered_and_silences_the_channel() -> None:
    """After the peer's end nothing more is sent on that channel, whatever its owner still calls."""
    wire, first = sent(2)
    session = wire.session()
    (link,) = session.links()
    assert [type(answer) for answer in wire.say(End())] == [End]
    session.settle(first, 2, Accepted())
    session.settle_sent(first, 2, Accepted())
    session.pause()
    session.resume()
    session.end()
    link.detach()
    link.drained()  # type: ignore[attr-defined]
    assert wire.read() == []
    assert session.state is SessionState.UNMAPPED
    assert link.sendable == 0  # type: ignore[attr-defined]
    (event,) = wire.events
    assert event == SessionEnded(session, None)


def test_our_end_ignores_until_theirs() -> None:
    """After our end everything on the channel is ignored until the peer's end, which frees it."""
    wire = Wire()
    wire.say(wire.attach(role=SENDER))
    wire.session().end(Error(condition="amqp:internal-error"))
    assert conditions([p for _, p, _ in wire.read()]) == [("end", "amqp:internal-error")]
    wire.events.clear()
    assert wire.say(transfer(FIRST_ID), flow(), wire.attach(role=RECEIVER, handle=9), Detach(handle=77)) == []
    assert wire.events == []
    assert wire.say(End()) == []
    assert wire.events == []
    assert wire.server.sessions() == []


def test_settlements_that_wait_go_with_their_session() -> None:
    """After the peer's end nothing is written but our answer, and the next session on the channel begins clean."""
    wire = Wire()
    wire.say(wire.attach(role=SENDER))
    wire.say(transfer(FIRST_ID))
    wire.session().settle(FIRST_ID, 1, Accepted())
    assert [type(answer) for answer in wire.say(End())] == [End]


def test_the_memory_of_links_and_deliveries_goes_with_their_session() -> None:
    """A link, a delivery without its end, and what the link names: all are counted, and none stays counted."""
    wire = Wire()
    memory = wire.server.memory
    before = memory.held_bytes
    wire.say(wire.attach(role=SENDER, properties={"x": "y" * 1000}), wire.attach(role=RECEIVER, name="b", handle=1))
    named = memory.held_bytes
    assert named > before + 1000
    wire.say(transfer(FIRST_ID, more=True), payload=bytes(500))
    assert memory.held_bytes >= named + 500
    wire.say(End())
    assert memory.held_bytes == before


def test_a_frame_of_an_ended_session_finds_no_link() -> None:
    """Not even one that comes in the read of the end, like the frame before it."""
    wire, _ = sent(4)
    settled = {"role": RECEIVER, "settled": True, "state": Accepted()}
    frames = [Disposition(first=FIRST_ID + index, last=FIRST_ID + index, **settled) for index in range(3)]
    told_before = wire.say(*frames[:2], End(), frames[2])
    assert conditions(told_before) == [("close", "amqp:connection:framing-error")]
    assert [tokens for _, tokens, _ in told(wire)] == [[100], [101]]


def test_pipelined_attach_to_an_ended_session_is_not_told() -> None:
    """Links of an ended session are told by SessionEnded alone, and their names are free."""
    pair = Pair()
    session = pair.opened()
    pair.sender(session)
    session.end()
    pair.run()
    assert [type(event) for event in pair.server_events[-1:]] == [SessionEnded]
    again = pair.client.begin()
    pair.server_events.clear()
    pair.sender(again)
    assert len(pair.told(LinkAttached)) == 1
