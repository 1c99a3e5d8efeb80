"""A session: windows, ids, handles, dispositions, and the scope of its errors."""

import pytest

from ambermq.protocol.amqp10.events import CreditChanged, Disposed, SessionEnded, TransferRun
from ambermq.protocol.amqp10.limits import ConnectionLimits
from ambermq.protocol.amqp10.memory_budget import UNSETTLED_BYTES, MemoryAccount, MemoryBudget
from ambermq.protocol.amqp10.performatives.classes import (
    Accepted,
    Attach,
    Begin,
    Detach,
    Disposition,
    End,
    Error,
    Flow,
    Modified,
    Received,
    Rejected,
    Released,
    Transfer,
)
from tests.protocol.peers import FIRST_ID, Pair, Wire, conditions, disposed

SENDER, RECEIVER = False, True


def transfer(delivery_id: int | None, *, handle: int = 0, **fields: object) -> Transfer:
    tag = None if delivery_id is None else delivery_id.to_bytes(4, "big")
    return Transfer(handle=handle, delivery_id=delivery_id, **{"delivery_tag": tag, **fields})  # type: ignore[arg-type]


def flow(**fields: object) -> Flow:
    return Flow(**{"incoming_window": 1000, "next_outgoing_id": FIRST_ID, "outgoing_window": 0, **fields})  # type: ignore[arg-type]


_WINDOWS_OF_4 = pytest.mark.parametrize(
    "limits", [ConnectionLimits(window_frames=4), ConnectionLimits(unsettled_max=4)], ids=["frames", "unsettled"]
)


@_WINDOWS_OF_4
def test_window_violation(limits: ConnectionLimits) -> None:
    """A transfer beyond the incoming window ends the session with window-violation; the connection stays."""
    wire = Wire(limits, credit=100)
    wire.say(wire.attach(role=SENDER))
    wire.give(b"".join(wire.frame(transfer((FIRST_ID + i) & 0xFFFFFFFF), b"x") for i in range(5)))
    answers = [performative for _, performative, _ in wire.read()]
    assert ("end", "amqp:session:window-violation") in conditions(answers)
    assert isinstance(wire.events[-1], SessionEnded)
    assert not wire.server.is_ended
    wire.say(End())
    assert isinstance(wire.say(wire.begin())[0], Begin)


@_WINDOWS_OF_4
def test_window_is_renewed(limits: ConnectionLimits) -> None:
    """A peer that keeps to the window may send for ever: it is renewed when half of it is used."""
    pair = Pair(limits=limits, credit=1000)
    sender, _ = pair.sender(pair.opened())
    sent = 0
    while sent < 100:
        count = min(sender.sendable, 100 - sent)
        assert count > 0
        sender.send_run(range(count), [b"x"] * count, True)
        sent += count
        pair.run()
    assert sum(len(run.payloads) for run in pair.told(TransferRun)) == 100


@_WINDOWS_OF_4
def test_window_is_renewed_each_half(limits: ConnectionLimits) -> None:
    """One flow for two transfers that are settled at once, whatever bounds the window."""
    wire = Wire(limits)
    wire.say(wire.attach(role=SENDER))
    windows = []
    for number in range(8):
        told = wire.say(transfer((FIRST_ID + number) & 0xFFFFFFFF, settled=True))
        windows.append([each.incoming_window for each in told if type(each) is Flow])
    assert windows == [[], [4]] * 4


def test_pause_and_resume() -> None:
    """Pausing sends a window of 0 and takes what is in flight; resuming opens it again."""
    wire = Wire(ConnectionLimits(window_frames=10))
    wire.say(wire.attach(role=SENDER))
    wire.session().pause()
    ((_, told, _),) = wire.read()
    assert isinstance(told, Flow)
    assert told.incoming_window == 0
    wire.say(*(transfer((FIRST_ID + i) & 0xFFFFFFFF) for i in range(10)))
    assert sum(len(event.payloads) for event in wire.events if isinstance(event, TransferRun)) == 10
    wire.session().resume()
    flows = [performative for _, performative, _ in wire.read() if isinstance(performative, Flow)]
    assert flows[-1].incoming_window == 10
    assert flows[-1].next_incoming_id == (FIRST_ID + 10) & 0xFFFFFFFF


def test_a_pause_closes_the_window_when_the_last_delivery_is_whole() -> None:
    """Its frames may still come. While the session is not paused, the end of a delivery is worth no flow."""
    wire = Wire(credit=100)
    wire.say(wire.attach(role=SENDER), wire.attach(role=SENDER, name="b", handle=1))
    assert wire.say(transfer(FIRST_ID, more=True), transfer(None)) == []
    wire.say(transfer(FIRST_ID + 1, more=True), transfer(FIRST_ID + 2, handle=1, more=True))
    wire.session().pause()
    ((_, opened, _),) = wire.read()
    assert isinstance(opened, Flow)
    assert opened.incoming_window
    assert wire.say(transfer(None)) == []
    (closed,) = wire.say(transfer(None, handle=1))
    assert isinstance(closed, Flow)
    assert closed.incoming_window == 0


def test_a_delivery_that_began_first_is_known_as_the_oldest() -> None:
    """When memory runs out, its connection is the first to go among equals."""
    budget = MemoryBudget(1 << 20)
    wires = [Wire(credit=100) for _ in range(2)]
    for wire in wires:
        wire.server.memory = MemoryAccount(budget)
        wire.say(wire.attach(role=SENDER))
    for wire in reversed(wires):
        wire.say(transfer(FIRST_ID, more=True))
    one, two = (wire.server.memory.rank(1 << 20) for wire in wires)
    assert one[1] is two[1] is True
    assert two > one
    wires[1].say(transfer(None))
    assert wires[0].server.memory.rank(1 << 20) > wires[1].server.memory.rank(1 << 20)
    assert budget.deliveries_begun == 2


def test_unsettled_bounds_the_window() -> None:
    """The window never promises more deliveries than may be unsettled; settling opens it again."""
    pair = Pair(limits=ConnectionLimits(window_frames=8, unsettled_max=8), credit=1000)
    session = pair.opened()
    sender, receiver = pair.sender(session)
    sender.send_run(range(8), [b"x"] * 8)
    pair.run()
    assert sender.sendable == 0
    receiver.session.settle(FIRST_ID, 8, Accepted())
    pair.run()
    assert sender.sendable == 8


def test_what_a_link_held_is_room_when_it_goes() -> None:
    """The window that it filled is renewed for the other links of its session, whichever side ends it."""
    wire = Wire(ConnectionLimits(unsettled_max=8, window_frames=8), credit=50)
    wire.say(wire.attach(role=SENDER, name="a", handle=0), wire.attach(role=SENDER, name="b", handle=1))
    for index in range(8):
        wire.say(transfer((FIRST_ID + index) & 0xFFFFFFFF), payload=b"x")
    assert wire.session().windows.left == 0
    wire.session().links()[0].detach()
    flows = [performative for _, performative, _ in wire.read() if type(performative) is Flow]
    assert [each.incoming_window for each in flows] == [8]


def test_settlements_merge() -> None:
    """Consecutive settlements of one tick with the same state leave as one range, also across the wrap of ids."""
    wire = Wire()
    wire.say(wire.attach(role=SENDER))
    wire.say(*(transfer((FIRST_ID + i) & 0xFFFFFFFF) for i in range(8)))
    session = wire.session()
    for index, state in enumerate([Accepted(), Accepted(), Accepted(), Accepted(), Released(), Released(), Accepted()]):
        session.settle((FIRST_ID + index) & 0xFFFFFFFF, 1, state)
    said = disposed([performative for _, performative, _ in wire.read()])
    assert [(d.first, d.last, type(d.state), d.settled, d.role) for d in said] == [
        (FIRST_ID, 0, Accepted, True, RECEIVER),
        (1, 2, Released, True, RECEIVER),
        (3, 3, Accepted, True, RECEIVER),
    ]


def test_settling_what_is_not_held() -> None:
    """What is settled already, or never came, is not settled again."""
    wire = Wire()
    wire.say(wire.attach(role=SENDER))
    wire.say(transfer(FIRST_ID), transfer(FIRST_ID + 1), transfer(FIRST_ID + 2, settled=True))
    wire.session().settle(FIRST_ID, 1, Accepted())
    wire.session().settle(FIRST_ID, 1000, Accepted())
    assert [(d.first, d.last) for d in disposed([p for _, p, _ in wire.read()])] == [(FIRST_ID, FIRST_ID + 1)]


def test_settlement_with_an_error_of_any_size() -> None:
    """A rejection carries its error, however long."""
    pair = Pair()
    sender, receiver = pair.sender(pair.opened())
    sender.send_run([1], [b"x"])
    pair.run()
    state = Rejected(error=Error(condition="amqp:internal-error", description="x" * 1000))
    receiver.session.settle(FIRST_ID, 1, state)
    pair.run()
    assert [event.state for event in pair.told(Disposed, to_server=False)] == [state]


def sent(count: int) -> tuple[Wire, int]:
    """A wire to which the server has sent `count` deliveries with tokens 100, 101, ..."""
    wire = Wire()
    wire.say(wire.attach(role=RECEIVER))
    wire.say(flow(handle=0, delivery_count=0, link_credit=count, next_incoming_id=FIRST_ID))
    (link,) = wire.session().links()
    if count:
        link.send_run(range(100, 100 + count), [b"x"] * count)  # type: ignore[attr-defined]
    wire.read()
    wire.events.clear()
    return wire, FIRST_ID


def told(wire: Wire) -> list[tuple[int, list[int], bool]]:
    events = [(e.first_id, list(e.tokens), e.settled) for e in wire.events if isinstance(e, Disposed)]
    wire.events.clear()
    return events


def test_dispositions_out_of_order() -> None:
    """Deliveries may be settled in any order and twice; each is told once."""
    wire, first = sent(10)
    for start, end in [(4, 5), (8, 9), (0, 0), (0, 9), (0, 9)]:
        wire.say(
            Disposition(
                role=RECEIVER, first=(first + start) & 0xFFFFFFFF, last=(first + end) & 0xFFFFFFFF, settled=True
            )
        )
    assert [tokens for _, tokens, _ in told(wire)] == [[104, 105], [108, 109], [100], [101, 102, 103], [106, 107]]


@pytest.mark.parametrize("handle", [None, 0])
def test_outcomes_and_flows_of_one_read_are_taken_in_turn(handle: int | None) -> None:
    """As clients send them that grant credit for each message they settle; the credit and the ids are exact."""
    wire, first = sent(6)
    count = 6 if handle is not None else None
    frames = []
    for index in range(6):
        number = (first + index) & 0xFFFFFFFF
        frames.append(wire.frame(Disposition(role=RECEIVER, first=number, last=number, settled=True, state=Accepted())))
        credit = None if handle is None else index
        seen = (first + 6) & 0xFFFFFFFF
        frames.append(wire.frame(flow(handle=handle, delivery_count=count, link_credit=credit, next_incoming_id=seen)))
    wire.give(b"".join(frames))
    (link,) = wire.session().links()
    assert [tokens for _, tokens, _ in told(wire)] == [[100 + index] for index in range(6)]
    assert link.credit == (0 if handle is None else 5)  # type: ignore[attr-defined]


@pytest.mark.parametrize("properties", [None, {"x": "y"}])
def test_a_flow_between_outcomes_may_be_cut_anywhere(properties: dict[str, str] | None) -> None:
    """By the end of a read; a flow that is not plain is read by the general decoder."""
    seen = {"next_incoming_id": 1, "delivery_count": 4, "link_credit": 7}
    last = Wire.frame(flow(handle=0, properties=properties, **seen))
    for size in range(len(last)):
        wire, first = sent(4)
        ids = [(first + index) & 0xFFFFFFFF for index in range(3)]
        settled = {"role": RECEIVER, "settled": True, "state": Accepted()}
        frames = b"".join(wire.frame(Disposition(first=number, last=number, **settled)) for number in ids)
        data = frames + last
        wire.give(data[: len(frames) + size])
        wire.give(data[len(frames) + size :])
        (link,) = wire.session().links()
        assert [token for _, tokens, _ in told(wire) for token in tokens] == [100, 101, 102]
        assert link.credit == 7  # type: ignore[attr-defined]


def test_unsettled_deliveries_of_both_directions_count_as_memory() -> None:
    """Sent and received ones alike."""
    wire, _ = sent(3)
    before = wire.session().surveyed_bytes()
    wire.say(wire.attach(role=SENDER, name="up", handle=1))
    wire.say(*(transfer((FIRST_ID + index) & 0xFFFFFFFF, handle=1) for index in range(2)))
    assert before == 3 * UNSETTLED_BYTES
    assert wire.session().surveyed_bytes() == 5 * UNSETTLED_BYTES


@pytest.mark.parametrize("delivery_count", [None, 3])
def test_a_flow_for_no_link_ends_the_session_between_outcomes_too(delivery_count: int | None) -> None:
    """The outcomes before it are told."""
    wire, first = sent(3)
    settled = {"role": RECEIVER, "settled": True, "state": Accepted()}
    frames = [
        Disposition(first=(first + index) & 0xFFFFFFFF, last=(first + index) & 0xFFFFFFFF, **settled)
        for index in (0, 1)
    ]
    seen = {"next_incoming_id": (first + 3) & 0xFFFFFFFF, "delivery_count": delivery_count, "link_credit": 1}
    said = wire.say(*frames, flow(handle=7, **seen))
    assert conditions(said) == [("end", "amqp:session:unattached-handle")]
    assert [tokens for _, tokens, _ in told(wire)] == [[100], [101]]


def test_a_settlement_by_the_sender_makes_room_only_for_its_own_transfers() -> None:
    """A flow leaves when our window was closed; a settlement of what we sent has no use for it."""
    wire = Wire(ConnectionLimits(unsettled_max=4), credit=100)
    wire.say(wire.attach(role=SENDER, rcv_settle_mode=1), wire.attach(role=RECEIVER, name="down", handle=1))
    wire.say(flow(handle=1, delivery_count=0, link_credit=4, next_incoming_id=FIRST_ID))
    link = wire.session().links()[1]
    link.send_run([1, 2], [b"x"] * 2)  # type: ignore[attr-defined]
    wire.say(*(transfer((FIRST_ID + index) & 0xFFFFFFFF) for index in range(4)))
    assert wire.session().windows.left == 0
    assert wire.say(Disposition(role=RECEIVER, first=FIRST_ID, settled=True, state=Accepted())) == []
    (answer,) = wire.say(Disposition(role=SENDER, first=FIRST_ID, last=(FIRST_ID + 2) & 0xFFFFFFFF, settled=True))
    assert isinstance(answer, Flow)
    assert answer.incoming_window == 3


def test_disposition_without_last_and_state() -> None:
    """A missing last is first; an unsettled one leaves the delivery held, and without an outcome says nothing."""
    wire, first = sent(2)
    wire.say(
        Disposition(role=RECEIVER, first=first),
        Disposition(role=RECEIVER, first=first, state=Received(section_number=0, section_offset=0)),
    )
    assert told(wire) == []
    wire.say(Disposition(role=RECEIVER, first=first, state=Accepted()))
    assert told(wire) == [(first, [100], False)]
    wire.say(Disposition(role=RECEIVER, first=first, settled=True, state=Modified(delivery_failed=True)))
    assert told(wire) == [(first, [100], True)]


def test_receiver_settle_mode_second_as_sender() -> None:
    """Mode second: the receiver's outcome is answered by disposition(role=sender, settled=true)."""
    pair = Pair()
    session = pair.opened()
    receiver, sender = pair.receiver(session, receiver_settle_mode=1)
    assert sender.receiver_settle_mode == 1
    sender.send_run([7, 8], [b"a", b"b"])
    pair.run()
    session.settle(FIRST_ID, 2, Accepted())
    pair.run()
    (event,) = pair.told(Disposed)
    assert (event.first_id, event.tokens, event.settled) == (FIRST_ID, [7, 8], False)
    assert sender.session.sent.count == 2
    assert session.received.count == 2
    sender.settle_sent(FIRST_ID, 2, Accepted())
    pair.run()
    (event,) = pair.told(Disposed, to_server=False)
    assert (event.link, event.first_id, event.tokens, event.settled) == (
        receiver,
        FIRST_ID,
        [FIRST_ID, FIRST_ID + 1],
        True,
    )
    assert sender.session.sent.count == session.received.count == 0


def test_receiver_settle_mode_second_as_receiver() -> None:
    """Mode second on a link that we receive on: our outcome is unsettled until the sender settles."""
    wire = Wire()
    wire.say(wire.attach(role=SENDER, rcv_settle_mode=1))
    wire.say(transfer(FIRST_ID), transfer(FIRST_ID + 1, rcv_settle_mode=0))
    wire.session().settle(FIRST_ID, 2, Accepted())
    assert [(d.first, d.settled) for d in disposed([p for _, p, _ in wire.read()])] == [
        (FIRST_ID, False),
        (FIRST_ID + 1, True),
    ]
    wire.say(Disposition(role=SENDER, first=FIRST_ID, settled=True, state=Accepted()))
    assert wire.session().received.count == 0


def test_deliveries_of_both_modes_settle_with_one_call() -> None:
    """Each run for itself: those of mode second stay until the sender settles, the others go, and no further one."""
    wire = Wire()
    wire.say(wire.attach(role=SENDER, rcv_settle_mode=1), wire.attach(role=SENDER, name="first", handle=1))
    ids = [(FIRST_ID + index) & 0xFFFFFFFF for index in range(6)]
    handles = [0, 1, 1, 1, 0, 1]
    wire.say(*(transfer(number, handle=handle) for number, handle in zip(ids, handles, strict=True)))
    session = wire.session()
    session.settle(ids[0], 0, Accepted())
    assert (session.received.count, wire.read()) == (6, [])
    session.settle(ids[0], 5, Accepted())
    assert [(d.first, d.last, d.settled) for d in disposed([p for _, p, _ in wire.read()])] == [
        (ids[0], ids[0], False),
        (ids[1], ids[3], True),
        (ids[4], ids[4], False),
    ]
    assert session.received.count == 3
    session.settle(ids[5], 1, Released())
    assert [(d.first, d.last, d.settled) for d in disposed([p for _, p, _ in wire.read()])] == [(ids[5], ids[5], True)]


def test_settling_no_sent_delivery_settles_none() -> None:
    """A range of no ids is not the whole circle of them."""
    wire, first = sent(2)
    wire.session().settle_sent(first, 0, Accepted())
    assert (wire.session().sent.count, wire.read()) == (2, [])
    wire.session().settle_sent(first, 1, Accepted())
    assert wire.session().sent.count == 1


def test_interleaved_links_are_grouped() -> None:
    """A range over deliveries of two links is told per link, in runs of consecutive ids."""
    pair = Pair()
    session = pair.opened()
    _, one = pair.receiver(session, "one")
    _, two = pair.receiver(session, "two")
    one.send_run([1, 2], [b"a", b"b"])
    two.send_run([3], [b"c"])
    one.send_run([4], [b"d"])
    pair.run()
    session.settle(FIRST_ID, 4, Accepted())
    pair.run()
    assert [(e.link, e.first_id, e.tokens) for e in pair.told(Disposed)] == [
        (one, FIRST_ID, [1, 2]),
        (two, FIRST_ID + 2, [3]),
        (one, 0, [4]),
    ]


def test_other_ways_to_write_descriptors() -> None:
    """Descriptors written as a long ulong or as a symbol mean the same as the short ones."""
    for long in (True, False):
        wire = Wire()
        performatives = [
            wire.attach(role=SENDER),
            transfer(FIRST_ID),
            transfer(FIRST_ID + 1),
            flow(echo=True),
            Disposition(role=SENDER, first=FIRST_ID, settled=True),
            Detach(handle=0, closed=True),
            End(),
        ]
        for performative in performatives:
            body = performative.encode()
            name = performative.NAME.encode()
            descriptor = b"\x80" + body[2:3].rjust(8, b"\0") if long else b"\xa3" + bytes((len(name),)) + name
            body = b"\0" + descriptor + body[3:]
            wire.give((8 + len(body)).to_bytes(4, "big") + b"\2\0\0\0" + body)
        assert [type(performative) for _, performative, _ in wire.read()] == [Attach, Flow, Flow, Detach, End]
        assert sum(len(event.payloads) for event in wire.events if isinstance(event, TransferRun)) == 2


def test_reopening_is_told_once_a_read() -> None:
    """However often a window closes and opens within a read, its senders are told once."""
    wire = Wire()
    wire.say(wire.attach(role=RECEIVER))
    wire.say(flow(handle=0, delivery_count=0, link_credit=10, next_incoming_id=FIRST_ID))
    wire.events.clear()
    for _ in range(2):
        wire.say(*[flow(next_incoming_id=FIRST_ID, incoming_window=n % 2) for n in range(100)])
        assert len(wire.events) == 1
        wire.events.clear()


def test_a_window_that_grows_is_told_by_a_flow_of_the_session() -> None:
    """A flow of a link tells that link alone, unless the window was closed: the others had room before."""
    wire = Wire()
    wire.say(*(wire.attach(role=RECEIVER, name=str(handle), handle=handle) for handle in (0, 1)))
    asked = {"delivery_count": 0, "link_credit": 10, "next_incoming_id": FIRST_ID}
    wire.say(*(flow(handle=handle, incoming_window=3, **asked) for handle in (0, 1)))
    one, two = wire.session().links()
    wire.events.clear()
    wire.say(flow(handle=0, incoming_window=4, **asked))
    assert wire.events == [CreditChanged(one)]
    wire.events.clear()
    wire.say(flow(next_incoming_id=FIRST_ID, incoming_window=5))
    assert wire.events == [CreditChanged(one), CreditChanged(two)]


def test_only_senders_with_credit_hear_of_a_window_that_opens() -> None:
    """A receiver has credit of its own, and a sender without credit could not use the window."""
    wire = Wire()
    wire.say(wire.attach(role=SENDER), wire.attach(role=RECEIVER, name="down", handle=1))
    wire.say(flow(next_incoming_id=FIRST_ID, incoming_window=0))
    wire.events.clear()
    wire.say(flow(next_incoming_id=FIRST_ID, incoming_window=3))
    assert wire.events == []


def test_delivery_ids_are_consecutive() -> None:
    """A delivery-id out of sequence ends the session."""
    wire = Wire()
    wire.say(wire.attach(role=SENDER))
    assert conditions(wire.say(transfer(5), transfer(7))) == [("end", "amqp:invalid-field")]


def test_session_flow_is_echoed() -> None:
    """A session flow with echo is answered by one; without echo it is not."""
    wire = Wire()
    (answer,) = wire.say(flow(echo=True))
    assert isinstance(answer, Flow)
    assert answer.handle is None
    assert answer.next_incoming_id == FIRST_ID
    assert wire.say(flow()) == []


def test_reopened_window_is_told() -> None:
    """Senders with credit are told when a closed window opens."""
    wire = Wire()
    wire.say(wire.attach(role=RECEIVER))
    wire.say(flow(handle=0, delivery_count=0, link_credit=10, next_incoming_id=FIRST_ID, incoming_window=0))
    (link,) = wire.session().links()
    assert link.sendable == 0  # type: ignore[attr-defined]
    wire.events.clear()
    wire.say(flow(next_incoming_id=FIRST_ID, incoming_window=3))
    assert wire.events == [CreditChanged(link)]
    assert link.sendable == 3  # type: ignore[attr-defined]
