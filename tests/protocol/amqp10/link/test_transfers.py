"""Deliveries on a link: of many frames, aborted, too large, unsettled for too long."""

import pytest

from ambermq.protocol.amqp10.errors import LocalError
from ambermq.protocol.amqp10.events import SessionEnded, TransferRun
from ambermq.protocol.amqp10.limits import ConnectionLimits
from ambermq.protocol.amqp10.link.sender import Sender
from ambermq.protocol.amqp10.performatives.classes import (
    Accepted,
    Detach,
    Error,
    Flow,
    Received,
    Transfer,
)
from tests.protocol.amqp10.link.test_link import runs, sending
from tests.protocol.amqp10.session.test_session import RECEIVER, SENDER, flow, sent, transfer
from tests.protocol.peers import FIRST_ID, Pair, Wire, conditions


def test_many_frames() -> None:
    """A delivery in many frames is told once, whole; two links may interleave theirs; settled counts on any frame."""
    wire = sending()
    wire.say(wire.attach(role=SENDER, name="other", handle=1))
    wire.events.clear()
    wire.say(transfer(FIRST_ID, more=True), payload=b"a")
    wire.say(transfer(FIRST_ID + 1, handle=1, more=True, settled=True), payload=b"x")
    wire.say(transfer(None, more=True), payload=b"b")
    wire.say(transfer(FIRST_ID, more=True), payload=b"")
    wire.say(transfer(None, handle=1), payload=b"y")
    wire.say(transfer(None, settled=True), payload=b"c")
    assert runs(wire) == [(FIRST_ID + 1, [b"xy"], True), (FIRST_ID, [b"abc"], True)]
    assert wire.session().received.count == 0
    wire.say(transfer(FIRST_ID + 2), payload=b"z")
    assert runs(wire) == [(FIRST_ID + 2, [b"z"], False)]


@pytest.mark.parametrize("size", [0, 1, 400, 512, 5000, 100_000])
def test_cut_to_the_peers_frames(size: int) -> None:
    """A message larger than the peer's frames is cut, arrives whole, and costs one credit."""
    pair = Pair(client_limits=ConnectionLimits(frame_bytes_max=512), limits=ConnectionLimits(frame_bytes_max=600))
    session = pair.opened()
    receiver, sender = pair.receiver(session)
    message = bytes(range(256)) * (size // 256 + 1)
    sender.send_run([1, 2], [message[:size], b"next"])
    pair.run()
    got = [
        (run.first_id, [bytes(payload) for payload in run.payloads]) for run in pair.told(TransferRun, to_server=False)
    ]
    assert got in ([(FIRST_ID, [message[:size], b"next"])], [(FIRST_ID, [message[:size]]), (FIRST_ID + 1, [b"next"])])
    assert receiver.credit == sender.credit == 98
    up, _ = pair.sender(session)
    up.send_run([1], [message[:size]])
    pair.run()
    assert [bytes(payload) for run in pair.told(TransferRun) for payload in run.payloads] == [message[:size]]


def test_cut_frames_wait_for_the_window() -> None:
    """Frames beyond the peer's window wait in the session; until they left nothing else is sendable."""
    pair = Pair(client_limits=ConnectionLimits(frame_bytes_max=512, window_frames=4))
    session = pair.opened()
    _, sender = pair.receiver(session)
    sender.send_run([1], [bytes(10_000)])
    assert sender.sendable == 0
    pair.run()
    assert [len(run.payloads[0]) for run in pair.told(TransferRun, to_server=False)] == [10_000]
    assert sender.sendable > 0


def test_a_window_of_one_frame_sends_one_frame_that_waits() -> None:
    """What waits counts as memory until it is sent, and goes with its link."""
    wire = Wire()
    wire.server.remote_frame_bytes_max = 512
    wire.say(wire.attach(role=RECEIVER))
    wire.say(flow(handle=0, delivery_count=0, link_credit=10, next_incoming_id=FIRST_ID, incoming_window=0))
    (link,) = wire.session().links()
    assert isinstance(link, Sender)
    session, seen = link.session, FIRST_ID
    before = session.surveyed_bytes()
    wire.say(flow(next_incoming_id=seen, incoming_window=1))
    link.send_run([1], [bytes(1500)], settled=True)
    assert len(wire.read()) == 1
    waiting = session.surveyed_bytes() - before
    assert 1000 < waiting < 1500
    seen = (seen + 1) & 0xFFFFFFFF
    assert len(wire.say(flow(next_incoming_id=seen, incoming_window=1))) == 1
    assert session.windows.remote == 0
    assert 500 < session.surveyed_bytes() - before < waiting
    link.detach()
    wire.read()
    assert session.surveyed_bytes() == before


def test_waiting_frames_go_with_their_link() -> None:
    """Frames that wait are forgotten with their link, and do not stop the others."""
    pair = Pair(client_limits=ConnectionLimits(frame_bytes_max=512, window_frames=4))
    session = pair.opened()
    _, one = pair.receiver(session, "one")
    _, two = pair.receiver(session, "two")
    one.send_run([1], [bytes(10_000)])
    one.detach(error=Error(condition="amqp:resource-deleted"))
    pair.run()
    assert two.sendable > 0
    two.send_run([2], [b"x"])
    pair.run()
    assert [run.payloads for run in pair.told(TransferRun, to_server=False)] == [[b"x"]]


def test_aborted() -> None:
    """An aborted delivery leaves nothing but its id, spends a credit, and the next one is whole."""
    wire = sending()
    wire.say(transfer(FIRST_ID, more=True), transfer(None, more=True), payload=b"abc")
    wire.say(transfer(None, aborted=True), payload=b"ignored")
    wire.say(transfer(FIRST_ID + 1, aborted=True), payload=b"ignored")
    wire.say(transfer(FIRST_ID + 2), payload=b"x")
    assert runs(wire) == [(FIRST_ID + 2, [b"x"], False)]
    assert wire.server.partial_bytes == 0
    assert wire.session().links()[0].credit == 97


@pytest.mark.parametrize(
    "faulty",
    [
        [transfer(None)],
        [transfer(FIRST_ID, delivery_tag=None)],
        [transfer(FIRST_ID, delivery_tag=bytes(33))],
        [transfer(FIRST_ID, more=True), transfer(FIRST_ID + 1)],
        [transfer(FIRST_ID, more=True), transfer(None, delivery_tag=b"other")],
        [transfer(FIRST_ID, more=True, message_format=0), transfer(None, message_format=1)],
        [transfer(FIRST_ID, rcv_settle_mode=1)],
    ],
)
def test_faulty_deliveries(faulty: list[Transfer]) -> None:
    """Deliveries without id or tag, or interleaved, or changing on their way, detach the link."""
    wire = sending()
    assert conditions(wire.say(*faulty)) == [("detach", "amqp:invalid-field")]
    assert runs(wire) == []
    assert wire.server.partial_bytes == 0
    assert wire.session().is_live


@pytest.mark.parametrize(("mode", "settled"), [(1, False), (1, None), (0, True)])
def test_sender_settle_mode_is_held(mode: int, settled: bool | None) -> None:
    """A settled link takes no unsettled delivery and an unsettled one no settled."""
    wire = sending(snd_settle_mode=mode)
    assert conditions(wire.say(transfer(FIRST_ID, settled=settled))) == [("detach", "amqp:invalid-field")]


def test_our_settle_mode_is_held() -> None:
    """We do not send settled on an unsettled link, nor unsettled on a settled one: LocalError."""
    for mode, settled in ((0, True), (1, False)):
        pair = Pair()
        _, sender = pair.receiver(pair.opened(), sender_settle_mode=mode)
        with pytest.raises(LocalError):
            sender.send_run([1], [b"x"], settled)
        sender.send_run([1], [b"x"], not settled)
        pair.run()
        assert [run.settled for run in pair.told(TransferRun, to_server=False)] == [not settled]


def test_delivery_count_of_the_peer() -> None:
    """A receiver counts from the sender's initial delivery-count, and wraps with it."""
    wire = Wire(credit=10)
    _, granted = wire.say(wire.attach(role=SENDER, initial_delivery_count=FIRST_ID))
    assert isinstance(granted, Flow)
    assert (granted.delivery_count, granted.link_credit) == (FIRST_ID, 10)
    wire.say(*(transfer((FIRST_ID + i) & 0xFFFFFFFF) for i in range(4)))
    assert wire.session().links()[0].delivery_count == 1


@pytest.mark.parametrize("in_frames", [1, 3])
def test_message_too_large(in_frames: int) -> None:
    """A message above max-message-size detaches the link with message-size-exceeded, whole or in frames."""
    wire = sending(ConnectionLimits(message_bytes_max=300))
    frames = [transfer(FIRST_ID, more=in_frames > 1), *(transfer(None, more=True) for _ in range(in_frames - 1))]
    answers = wire.say(*frames, payload=bytes(301 // in_frames + 1))
    assert conditions(answers) == [("detach", "amqp:link:message-size-exceeded")]
    assert runs(wire) == []
    assert wire.server.partial_bytes == 0


def test_message_size_after_the_shape_was_learned() -> None:
    """The size is checked for messages that look like the last one, too."""
    wire = sending(ConnectionLimits(message_bytes_max=300))
    wire.say(transfer(FIRST_ID), transfer(FIRST_ID + 1), payload=bytes(300))
    assert conditions(wire.say(transfer(FIRST_ID + 2), payload=bytes(301))) == [
        ("detach", "amqp:link:message-size-exceeded")
    ]


def test_unfinished_deliveries_are_bounded() -> None:
    """What unfinished deliveries hold on all links together is bounded, frames of a byte included."""
    wire = Wire(ConnectionLimits(partial_bytes_max=10_000))
    wire.say(wire.attach(role=SENDER), wire.attach(role=SENDER, name="b", handle=1))
    wire.say(transfer(FIRST_ID, more=True), payload=bytes(9000))
    wire.say(transfer(FIRST_ID + 1, handle=1, more=True), payload=b"x")
    for _ in range(20):
        answers = wire.say(transfer(None, handle=1, more=True), payload=b"x")
        if answers:
            break
    assert conditions(answers) == [("detach", "amqp:resource-limit-exceeded")]
    assert wire.server.partial_bytes == 9064
    wire.say(transfer(None))
    assert wire.server.partial_bytes == 0


def test_many_small_frames() -> None:
    """A message in frames of one byte is joined, whatever their number."""
    wire = sending()
    wire.say(transfer(FIRST_ID, more=True), *(transfer(None, more=True) for _ in range(1700)), payload=b"x")
    wire.say(transfer(None), payload=b"y")
    assert runs(wire) == [(FIRST_ID, [b"x" * 1701 + b"y"], False)]


def test_message_format_is_passed_on() -> None:
    """A message format other than 0 is opaque and told; it never joins a run."""
    wire = sending()
    wire.say(transfer(FIRST_ID), transfer(FIRST_ID + 1, message_format=7), transfer(FIRST_ID + 2), payload=b"x")
    assert [e.message_format for e in wire.events if isinstance(e, TransferRun)] == [0, 7, 0]
    wire.events.clear()
    wire.say(*(transfer((FIRST_ID + index) & 0xFFFFFFFF, message_format=7) for index in range(3, 6)), payload=b"x")
    assert [e.message_format for e in wire.events if isinstance(e, TransferRun)] == [7] * 3
    pair = Pair()
    _, sender = pair.receiver(pair.opened())
    sender.send_run([1], [b"x"], False, 0x80013700)
    pair.run()
    assert [run.message_format for run in pair.told(TransferRun, to_server=False)] == [0x80013700]


def test_a_tag_has_at_most_32_bytes() -> None:
    """That many included."""
    wire = sending()
    assert wire.say(transfer(FIRST_ID, delivery_tag=bytes(32))) == []
    answers = wire.say(transfer(FIRST_ID + 1, delivery_tag=bytes(33)))
    assert conditions(answers) == [("detach", "amqp:invalid-field")]


def test_state_and_batchable_on_a_transfer() -> None:
    """A transfer with a state, or batchable, is a delivery like any other."""
    wire = sending()
    wire.say(
        transfer(FIRST_ID, state=Received(section_number=0, section_offset=0)), transfer(FIRST_ID + 1, batchable=True)
    )
    assert [(first, settled) for first, _, settled in runs(wire)] == [(FIRST_ID, False), (FIRST_ID + 1, False)]


def test_transfer_to_a_sender() -> None:
    """A transfer on a link on which the peer receives detaches it."""
    wire = Wire()
    wire.say(wire.attach(role=RECEIVER))
    assert conditions(wire.say(transfer(FIRST_ID))) == [("detach", "amqp:not-allowed")]


def test_errant_link() -> None:
    """A link that goes on long after our detach ends the session with errant-link."""
    wire = sending(ConnectionLimits(window_frames=10), credit=1000)
    (link,) = wire.session().links()
    link.detach(error=Error(condition="amqp:resource-deleted"))
    wire.read()
    answers = []
    for index in range(11):
        answers += wire.say(transfer((FIRST_ID + index) & 0xFFFFFFFF))
    assert conditions(answers) == [("end", "amqp:session:errant-link")]
    assert isinstance(wire.events[-1], SessionEnded)


def test_in_flight_after_our_detach() -> None:
    """What was in flight when we detached is ignored, and the delivery-ids stay in step."""
    wire = sending()
    wire.say(wire.attach(role=SENDER, name="b", handle=1))
    wire.say(transfer(FIRST_ID, more=True))
    wire.session().links()[0].detach()
    wire.read()
    wire.events.clear()
    wire.say(transfer(None), transfer(FIRST_ID + 1), transfer(FIRST_ID + 2, handle=1), payload=b"x")
    assert runs(wire) == [(FIRST_ID + 2, [b"x"], False)]
    assert wire.say(Detach(handle=0, closed=True)) == []


def test_delivery_tags() -> None:
    """The delivery-tag is the prefix and the token, 16 bytes, both big-endian."""
    wire, _ = sent(0)
    (link,) = wire.session().links()
    assert isinstance(link, Sender)
    link.tag_prefix = b"prefix!!"
    wire.say(flow(handle=0, delivery_count=0, link_credit=2, next_incoming_id=FIRST_ID))
    link.send_run([0x0102030405060708, 2**64 - 1], [b"x", b"y"])
    tags = [performative.delivery_tag for _, performative, _ in wire.read() if isinstance(performative, Transfer)]
    assert tags == [b"prefix!!\1\2\3\4\5\6\7\x08", b"prefix!!" + b"\xff" * 8]


def test_large_payloads_are_not_copied() -> None:
    """Large payloads leave as buffers of their own, the very objects given; small ones are joined."""
    wire, _ = sent(0)
    (link,) = wire.session().links()
    assert isinstance(link, Sender)
    wire.say(flow(handle=0, delivery_count=0, link_credit=10, next_incoming_id=FIRST_ID))
    large = bytes(20_000)
    link.send_run([1, 2], [b"small", b"small"])
    link.send_run([3, 4], [large, b"small"])
    assert link.session.windows.remote == 996
    pieces = wire.server.take_output()
    assert len(pieces) == 3
    assert pieces[1] is large


def test_large_payloads_are_views() -> None:
    """A large payload is a view of the read's memory, which receive says; small ones are bytes."""
    wire = sending()
    frame = wire.frame(transfer(FIRST_ID), b"x" * 20_000)
    assert wire.server.receive(memoryview(bytearray(frame)), 0)
    (event,) = wire.server.take_events()
    assert isinstance(event, TransferRun)
    assert isinstance(event.payloads[0], memoryview)
    assert not wire.server.receive(memoryview(bytearray(wire.frame(transfer(FIRST_ID + 1), b"x"))), 0)
    (event,) = wire.server.take_events()
    assert isinstance(event, TransferRun)
    assert isinstance(event.payloads[0], bytes)


def test_unsettled_sent_is_bounded() -> None:
    """We never have more unsettled than we can hold, whatever credit the peer gives."""
    wire = Wire(ConnectionLimits(unsettled_max=5))
    wire.say(wire.attach(role=RECEIVER))
    wire.say(flow(handle=0, delivery_count=0, link_credit=1000, next_incoming_id=FIRST_ID))
    (link,) = wire.session().links()
    assert isinstance(link, Sender)
    link.send_run(range(5), [b"x"] * 5)
    assert link.sendable == 0
    wire.session().settle_sent(FIRST_ID, 2, Accepted())
    assert link.sendable == 2
