"""The turns of a connection: the frames of one read that are no transfers have a limit of work."""

from ambermq.protocol.amqp10.connection.connection import Connection
from ambermq.protocol.amqp10.events import LinkAttached, TransferRun
from ambermq.protocol.amqp10.link.receiver import Receiver
from ambermq.protocol.amqp10.performatives.classes import Attach, Close, Flow, Source, Target, Transfer
from ambermq.protocol.amqp10.session.session import LINK_FRAME_COST
from tests.protocol.peers import FIRST_ID, Wire

_COST_MAX = 10 * LINK_FRAME_COST


def resting() -> tuple[Wire, Connection]:
    """A server that takes at most nine attaches a turn."""
    wire = Wire()
    wire.server.turn_cost_max = _COST_MAX
    return wire, wire.server


def attaches(count: int) -> bytes:
    """The frames of so many attaches."""
    frames = [
        Attach(
            name=f"l{i}", handle=i, role=False, source=Source(), target=Target(address="q"), initial_delivery_count=0
        )
        for i in range(count)
    ]
    return b"".join(map(Wire.frame, frames))


def attached(server: Connection) -> list[str]:
    """The names of the links that were attached since the last call."""
    return [event.link.name for event in server.take_events() if isinstance(event, LinkAttached)]


def test_a_read_of_many_attaches_takes_several_turns() -> None:
    """Each empty read continues where the last turn ended; nothing is lost, and all comes in order."""
    _, server = resting()
    server.receive(attaches(25), 0)
    turns = [attached(server)]
    while server.is_resting:
        server.receive(b"", 0)
        turns.append(attached(server))
    assert [len(turn) for turn in turns] == [9, 9, 7]
    assert [name for turn in turns for name in turn] == [f"l{i}" for i in range(25)]
    server.receive(b"", 0)
    assert attached(server) == []


def test_input_that_comes_between_turns_waits_for_its_own() -> None:
    """Also if it ends within a frame."""
    _, server = resting()
    data = attaches(25)
    server.receive(data[:1500], 0)
    assert server.is_resting
    found = attached(server)
    for position in range(1500, len(data), 100):
        server.receive(data[position : position + 100], 0)
    assert attached(server) == []
    while server.is_resting:
        server.receive(b"", 0)
        found += attached(server)
    assert found == [f"l{i}" for i in range(25)]


def test_flows_have_a_turn_too() -> None:
    """Each wants an answer: a read of 256 KiB holds 6,000 of them."""
    _, server = resting()
    flow = Flow(incoming_window=9, next_incoming_id=0, next_outgoing_id=FIRST_ID, outgoing_window=9, echo=True)
    server.receive(Wire.frame(flow) * 200, 0)
    assert server.is_resting
    turns = 1
    while server.is_resting:
        server.receive(b"", 0)
        turns += 1
    assert turns == 3


def test_transfers_end_no_turn() -> None:
    """One tick for many messages: their work is limited by the size of a read."""
    wire, server = resting()
    wire.say(wire.attach(role=False))
    wire.server.take_events()
    frames = [
        Wire.frame(Transfer(handle=0, delivery_id=(FIRST_ID + i) & 0xFFFFFFFF, delivery_tag=bytes(i % 30)), b"x" * i)
        for i in range(99)
    ]
    server.receive(b"".join(frames), 0)
    assert not server.is_resting
    assert sum(len(event.payloads) for event in server.take_events() if isinstance(event, TransferRun)) == 99


def test_a_run_with_a_limit_counts_for_the_turn() -> None:
    """Its messages are decoded one by one, so a read of thousands takes several turns; all come in order."""
    wire, server = resting()
    wire.say(wire.attach(role=False))
    (link,) = server.links_by_name.values()
    assert isinstance(link, Receiver)
    link.run_max = _COST_MAX // 2
    frames = [
        Wire.frame(Transfer(handle=0, delivery_id=(FIRST_ID + i) & 0xFFFFFFFF, delivery_tag=b"%3d" % i), b"%3d" % i)
        for i in range(99)
    ]
    server.receive(b"".join(frames), 0)
    bodies, turns = [], 0
    while True:
        events = [event for event in server.take_events() if isinstance(event, TransferRun)]
        assert all(len(event.payloads) <= _COST_MAX // 2 for event in events)
        taken = [bytes(body) for event in events for body in event.payloads]
        assert len(taken) < _COST_MAX + _COST_MAX // 2
        bodies, turns = bodies + taken, turns + 1
        if not server.is_resting:
            break
        server.receive(b"", 0)
    assert bodies == [b"%3d" % i for i in range(99)]
    assert turns > 1


def test_a_connection_without_a_limit_never_rests() -> None:
    """Clients make no empty reads."""
    wire = Wire()
    wire.server.receive(attaches(200), 0)
    assert not wire.server.is_resting
    assert len(attached(wire.server)) == 200


def test_a_close_behind_held_input_is_answered() -> None:
    """It has its turn after the frames before it."""
    wire, server = resting()
    server.receive(attaches(25) + Wire.frame(Close()), 0)
    while server.is_resting:
        assert not server.is_ended
        server.receive(b"", 0)
    assert server.is_ended
    assert isinstance([performative for _, performative, _ in wire.read()][-1], Close)


def test_sessions_have_a_turn_too() -> None:
    """A begin and an end each cost as much as an attach."""
    wire, server = resting()
    frames = [Wire.frame(Wire.begin(), channel=channel) for channel in range(1, 31)]
    server.receive(b"".join(frames), 0)
    turns = 1
    while server.is_resting:
        server.receive(b"", 0)
        turns += 1
    assert turns == 3
    assert len(wire.read()) == 30


def test_a_long_attach_takes_a_turn_of_its_own() -> None:
    """A frame of 4 KiB costs as much as many short ones: it may have a selector, which is parsed."""
    _, server = resting()
    long = "x" * 4096
    frames = [
        Attach(
            name=f"l{i}", handle=i, role=False, source=Source(address=long), target=Target(), initial_delivery_count=0
        )
        for i in range(3)
    ]
    server.receive(b"".join(map(Wire.frame, frames)), 0)
    turns = [attached(server)]
    while server.is_resting:
        server.receive(b"", 0)
        turns.append(attached(server))
    assert turns[:3] == [["l0"], ["l1"], ["l2"]]
