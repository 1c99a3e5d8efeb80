"""A link: attach, detach, stealing, credit both ways, drain."""

import pytest

from ambermq.protocol.amqp10.errors import LocalError
from ambermq.protocol.amqp10.events import CreditChanged, LinkAttached, LinkDetached, TransferRun
from ambermq.protocol.amqp10.limits import ConnectionLimits
from ambermq.protocol.amqp10.link.link import BLOCKED
from ambermq.protocol.amqp10.link.receiver import Receiver
from ambermq.protocol.amqp10.link.sender import Sender
from ambermq.protocol.amqp10.performatives.classes import (
    Attach,
    Detach,
    Error,
    Flow,
    Source,
    Target,
)
from ambermq.protocol.amqp10.types.values import Symbol
from tests.protocol.amqp10.session.test_session import RECEIVER, SENDER, flow, sent, transfer
from tests.protocol.peers import FIRST_ID, Pair, Wire, conditions


def runs(wire: Wire) -> list[tuple[int, list[bytes], bool]]:
    """The transfers told so far; all events are forgotten."""
    found = [(e.first_id, [bytes(p) for p in e.payloads], e.settled) for e in wire.events if isinstance(e, TransferRun)]
    wire.events.clear()
    return found


def sending(limits: ConnectionLimits | None = None, *, credit: int = 100, **fields: object) -> Wire:
    """A peer with one link on which it sends."""
    wire = Wire(limits, credit=credit)
    wire.say(wire.attach(role=SENDER, **fields))
    wire.events.clear()
    return wire


def test_attach_is_explicit() -> None:
    """Our attach has the peer's termini, a max-message-size, and an initial delivery-count where we send."""
    for role, count in ((RECEIVER, 0), (SENDER, None)):
        (answer, *_) = Wire(credit=0).say(Wire.attach(role=role, snd_settle_mode=1, rcv_settle_mode=1))
        assert isinstance(answer, Attach)
        assert (answer.role, answer.name, answer.initial_delivery_count) == (not role, "link", count)
        assert (answer.source, answer.target) == (Source(address="q"), Target(address="q"))
        assert (answer.snd_settle_mode, answer.rcv_settle_mode) == (1, 1)
        assert answer.max_message_size == 16 * 1024 * 1024


def test_full_width() -> None:
    """Performatives are written at full width: every field is there, nulls too."""
    wire = Wire()
    wire.give(wire.frame(wire.attach(role=RECEIVER)))
    written = b"".join(map(bytes, wire.server.take_output()))
    assert written[11] == 0xC0
    assert written[13] == len(Attach.FIELDS)


@pytest.mark.parametrize("role", [SENDER, RECEIVER])
def test_refuse(role: bool) -> None:
    """A link is refused by attaching with a null terminus, then detach(closed=true, error)."""
    wire = Wire()
    wire.server.receive(wire.frame(wire.attach(role=role)), 0)
    (event,) = wire.server.take_events()
    assert isinstance(event, LinkAttached)
    event.link.refuse(Error(condition="amqp:not-found", description="no such node"))
    attached, detached = (performative for _, performative, _ in wire.read())
    assert isinstance(attached, Attach)
    assert (attached.source if role == RECEIVER else attached.target) is None
    assert isinstance(detached, Detach)
    assert detached.closed
    assert detached.error is not None
    assert wire.say(transfer(FIRST_ID)) == []
    assert wire.say(Detach(handle=0, closed=True)) == []
    assert wire.session().links() == []
    assert wire.events == []


@pytest.mark.parametrize("closed", [True, False])
def test_detach_is_answered_alike(closed: bool) -> None:
    """A closing detach is answered by detach(closed=true), another by detach(closed=false)."""
    wire, _ = sent(2)
    (link,) = wire.session().links()
    assert wire.say(Detach(handle=0, closed=closed)) == [Detach(handle=0, closed=closed)]
    assert wire.events == [LinkDetached(link, closed, None)]
    assert wire.session().sent.count == 0


def test_detach_before_the_answer() -> None:
    """A peer that detaches before its attach was answered gets both, and the late answer does nothing."""
    wire = Wire()
    wire.server.receive(wire.frame(wire.attach(role=RECEIVER)) + wire.frame(Detach(handle=0, closed=True)), 0)
    attached, detached = wire.server.take_events()
    assert isinstance(attached, LinkAttached)
    assert isinstance(detached, LinkDetached)
    attached.link.accept(Source(), Target())
    attached.link.refuse(Error(condition="amqp:not-found"))
    assert [type(performative) for _, performative, _ in wire.read()] == [Attach, Detach]


def test_detach_before_the_peer_attached() -> None:
    """We may detach a link whose answer is still under way; the answer is not told, and the name is free."""
    pair = Pair()
    session = pair.opened()
    link = session.attach_sender("x", Source(), Target(address="q"))
    link.detach()
    pair.run()
    assert pair.told(LinkAttached, to_server=False) == []
    assert session.links() == []
    assert pair.sender(session, "x")[0].is_live


def test_stealing() -> None:
    """A second attach of the same name and direction steals the link, also from another session."""
    for channel in (0, 1):
        wire = Wire()
        wire.say(wire.begin(), channel=1)
        wire.say(wire.attach(role=RECEIVER))
        (old,) = wire.session().links()
        wire.say(wire.attach(role=SENDER, handle=1))
        wire.events.clear()
        answers = wire.say(wire.attach(role=RECEIVER, handle=2), channel=channel)
        assert conditions(answers) == [("detach", "amqp:link:stolen")]
        detached, attached = wire.events
        assert isinstance(detached, LinkDetached)
        assert detached.link is old
        assert isinstance(attached, LinkAttached)
        assert attached.link.key == old.key == ("wire", "link", True)
        assert attached.link.is_live


def test_stealing_thrice_at_once() -> None:
    """Three attaches of one name in one segment: the last one holds the link."""
    wire = Wire()
    wire.say(*(wire.attach(role=RECEIVER, handle=handle) for handle in range(3)))
    assert [link.is_live for link in wire.session().links()] == [False, False, True]
    wire.say(Detach(handle=0), Detach(handle=1))
    assert [link.is_live for link in wire.session().links()] == [True]


def test_credit_is_never_exceeded_and_wraps() -> None:
    """Credit is counted from the receiver's delivery-count in serial numbers, also beyond 2**32."""
    wire = Wire()
    wire.say(wire.attach(role=RECEIVER))
    (link,) = wire.session().links()
    assert isinstance(link, Sender)
    link.delivery_count = FIRST_ID
    wire.say(flow(handle=0, delivery_count=FIRST_ID, link_credit=5, next_incoming_id=FIRST_ID))
    assert link.sendable == 5
    link.send_run([1, 2, 3, 4], [b"x"] * 4)
    assert (link.sendable, link.delivery_count) == (1, 1)
    with pytest.raises(LocalError):
        link.send_run([1, 2], [b"x"] * 2)
    wire.say(flow(handle=0, delivery_count=FIRST_ID, link_credit=5, next_incoming_id=FIRST_ID))
    assert link.sendable == 1
    wire.say(flow(handle=0, delivery_count=1, link_credit=5, next_incoming_id=1))
    assert link.sendable == 5
    wire.say(flow(handle=0, delivery_count=1, link_credit=0, next_incoming_id=1))
    assert link.sendable == 0


def test_credit_before_the_attach_was_seen() -> None:
    """A flow without delivery-count counts from the initial one."""
    wire, _ = sent(0)
    (link,) = wire.session().links()
    assert isinstance(link, Sender)
    wire.say(flow(handle=0, link_credit=3, next_incoming_id=FIRST_ID))
    assert link.sendable == 3


def test_no_credit_no_transfer() -> None:
    """A receiver with prefetch 0 gets nothing before its flow."""
    wire = Wire()
    wire.say(wire.attach(role=RECEIVER))
    (link,) = wire.session().links()
    assert link.sendable == 0  # type: ignore[attr-defined]


def test_drain() -> None:
    """A drain is answered by what there is, then a flow: delivery-count advanced, credit 0, drain."""
    wire, _ = sent(0)
    (link,) = wire.session().links()
    assert isinstance(link, Sender)
    wire.say(flow(handle=0, delivery_count=0, link_credit=10, drain=True, echo=True, next_incoming_id=FIRST_ID))
    assert wire.events == [CreditChanged(link)]
    assert link.drain
    link.send_run([1, 2], [b"x"] * 2)
    link.drained()
    link.drained()
    *_, answer = (performative for _, performative, _ in wire.read())
    assert isinstance(answer, Flow)
    assert (answer.handle, answer.delivery_count, answer.link_credit, answer.drain) == (0, 10, 0, True)
    assert link.sendable == 0
    assert wire.read() == []


def test_drain_of_nothing() -> None:
    """A drain without credit is answered as well."""
    wire, _ = sent(0)
    (link,) = wire.session().links()
    wire.say(flow(handle=0, delivery_count=0, link_credit=0, drain=True, next_incoming_id=FIRST_ID))
    link.drained()  # type: ignore[attr-defined]
    ((_, answer, _),) = wire.read()
    assert isinstance(answer, Flow)
    assert answer.drain


def test_credit_is_not_returned_unasked() -> None:
    """Without a drain of the peer the credit stays, and no flow is sent."""
    wire, _ = sent(0)
    (link,) = wire.session().links()
    assert isinstance(link, Sender)
    wire.say(flow(handle=0, delivery_count=0, link_credit=10, next_incoming_id=FIRST_ID))
    link.drained()
    link.end_drain(has_more=False)
    assert (link.credit, link.delivery_count, wire.read()) == (10, 0, [])


@pytest.mark.parametrize(
    ("credit", "window", "has_more", "is_answered"),
    [
        (10, 1000, False, True),
        (10, 1000, True, False),
        (10, 0, True, False),
        (10, 0, False, False),
        (2, 1000, True, True),
    ],
)
def test_a_drain_ends_when_nothing_more_can_come(credit: int, window: int, has_more: bool, is_answered: bool) -> None:
    """The credit is used up, or no message is left; a closed window alone ends no drain."""
    wire, _ = sent(0)
    (link,) = wire.session().links()
    assert isinstance(link, Sender)
    asked = {"handle": 0, "delivery_count": 0, "link_credit": credit, "drain": True, "next_incoming_id": FIRST_ID}
    wire.say(flow(**asked))
    link.send_run([1, 2], [b"x"] * 2)
    wire.say(flow(**asked | {"delivery_count": 2, "link_credit": credit - 2, "incoming_window": window + 2}))
    link.session.windows.remote = window
    wire.read()
    link.end_drain(has_more=has_more)
    assert link.drain is not is_answered
    assert len(wire.read()) == is_answered


def test_a_full_session_ends_a_drain() -> None:
    """What waits there could come only after settlements, which the peer may send after the drain."""
    wire = Wire(ConnectionLimits(unsettled_max=2))
    wire.say(wire.attach(role=RECEIVER))
    (link,) = wire.session().links()
    assert isinstance(link, Sender)
    wire.say(flow(handle=0, delivery_count=0, link_credit=10, drain=True, next_incoming_id=FIRST_ID))
    link.send_run([1], [b"x"])
    link.end_drain(has_more=True)
    assert link.drain
    link.send_run([2], [b"x"])
    wire.read()
    link.end_drain(has_more=True)
    assert not link.drain
    assert len(wire.read()) == 1


def test_a_sender_that_skips_ahead_uses_up_its_credit() -> None:
    """Its delivery-count says how much; an older one, of a flow that crossed ours, changes nothing."""
    wire = sending(credit=10)
    (link,) = wire.session().links()
    assert isinstance(link, Receiver)
    wire.say(transfer(FIRST_ID), transfer(FIRST_ID + 1))
    for count, credit, expected in (
        (2, None, (2, 8)),
        (1, 9, (2, 8)),
        (3, 7, (3, 7)),
        (6, 0, (6, 4)),
        (20, 0, (20, 0)),
    ):
        assert wire.say(flow(handle=0, delivery_count=count, link_credit=credit)) == []
        assert (link.delivery_count, link.credit) == expected
    assert wire.events[2:] == []


def test_our_drain_ends_once_and_with_the_last_credit() -> None:
    """A flow of the peer without drain, or with credit left, is not its end."""
    wire = sending(credit=10)
    (link,) = wire.session().links()
    assert isinstance(link, Receiver)
    wire.say(flow(handle=0, delivery_count=10, link_credit=0, drain=True))
    assert (link.credit, wire.events) == (0, [])
    link.grant(10, drain=True)
    wire.say(flow(handle=0, delivery_count=15, link_credit=5, drain=True))
    assert (link.drain, wire.events) == (True, [])
    wire.say(flow(handle=0, delivery_count=20, link_credit=0))
    assert (link.drain, wire.events) == (True, [])
    wire.say(flow(handle=0, delivery_count=20, link_credit=0, drain=True))
    assert (link.drain, wire.events) == (False, [CreditChanged(link)])


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({BLOCKED: Symbol("disk")}, "disk"),
        ({BLOCKED: "x" * 100}, "x" * 64),
        ({BLOCKED: None}, ""),
        ({BLOCKED: 7}, ""),
        ({Symbol("other"): "disk"}, "memory"),
    ],
)
def test_a_peer_tells_why_it_holds_a_link_back(properties: dict[object, object], expected: str) -> None:
    """In the properties of the link's flow; others say nothing of it."""
    wire = sending()
    (link,) = wire.session().links()
    link.blocked = "memory"
    wire.say(flow(handle=0, delivery_count=0, link_credit=0, properties=properties))
    assert link.blocked == expected


def test_the_reason_of_an_unknown_link_is_not_looked_at() -> None:
    """The flow itself has ended the session."""
    wire = sending()
    wire.session().receive_flow_properties(9, {BLOCKED: "disk"})
    assert wire.session().links()[0].blocked == ""


def test_we_tell_why_we_hold_a_link_back_and_that_it_is_over() -> None:
    """A null says that it is over. The flow has the state of the link as any other."""
    wire = sending(credit=10)
    (link,) = wire.session().links()
    assert isinstance(link, Receiver)
    for reason, told in (("disk", "disk"), ("", None)):
        link.tell_blocked(reason)
        ((_, said, _),) = wire.read()
        assert isinstance(said, Flow)
        assert (said.properties, said.handle, said.link_credit) == ({BLOCKED: told}, 0, 10)


def test_our_drain() -> None:
    """As a receiver we may ask for a drain, and are told when the credit is given back."""
    pair = Pair()
    session = pair.opened()
    receiver, sender = pair.receiver(session, credit=10)
    pair.client_events.clear()
    receiver.grant(10, drain=True)
    pair.run()
    assert sender.drain
    sender.send_run([1], [b"x"])
    sender.drained()
    pair.run()
    assert [type(event) for event in pair.client_events] == [TransferRun, CreditChanged]
    assert (receiver.credit, receiver.drain) == (0, False)
    receiver.grant(4)
    pair.run()
    assert sender.sendable == 4


@pytest.mark.parametrize("role", [SENDER, RECEIVER])
def test_link_flow_is_echoed(role: bool) -> None:
    """A link flow with echo is answered with the state of the link."""
    wire = Wire()
    wire.say(wire.attach(role=role))
    (link,) = wire.session().links()
    if isinstance(link, Sender):
        link.available = 7
    (answer,) = wire.say(flow(handle=0, delivery_count=0, link_credit=3, echo=True))
    assert isinstance(answer, Flow)
    assert (answer.handle, answer.delivery_count, answer.echo) == (0, 0, False)
    assert (answer.link_credit, answer.available) == ((3, 7) if role == RECEIVER else (100, 0))


def test_transfer_beyond_credit() -> None:
    """A transfer beyond credit detaches the link with transfer-limit-exceeded; the session stays."""
    wire = sending(credit=2)
    answers = wire.say(*(transfer((FIRST_ID + i) & 0xFFFFFFFF) for i in range(3)))
    assert conditions(answers) == [("detach", "amqp:link:transfer-limit-exceeded")]
    assert [answer.closed for answer in answers if isinstance(answer, Detach)] == [True]
    assert sum(len(payloads) for _, payloads, _ in runs(wire)) == 2
    assert isinstance(wire.say(wire.attach(role=RECEIVER, name="next", handle=1))[0], Attach)


def test_transfer_before_the_answer() -> None:
    """A transfer pipelined behind its attach has no credit: the attach is answered, then the link detached."""
    wire = Wire()
    wire.server.receive(wire.frame(wire.attach(role=SENDER)) + wire.frame(transfer(FIRST_ID)), 0)
    attached, detached = wire.server.take_events()
    assert isinstance(attached, LinkAttached)
    assert isinstance(detached, LinkDetached)
    answers = [performative for _, performative, _ in wire.read()]
    assert [type(answer) for answer in answers] == [Attach, Detach]
    assert conditions(answers) == [("detach", "amqp:link:transfer-limit-exceeded")]


def test_grant_tops_up() -> None:
    """Granting tops the peer's credit up, and says nothing when it has as much already."""
    wire = sending(credit=10)
    (link,) = wire.session().links()
    assert isinstance(link, Receiver)
    link.grant(5)
    link.grant(10)
    assert wire.read() == []
    wire.say(transfer(FIRST_ID), transfer(FIRST_ID + 1))
    assert link.credit == 8
    link.grant(10)
    ((_, answer, _),) = wire.read()
    assert isinstance(answer, Flow)
    assert (answer.delivery_count, answer.link_credit) == (2, 10)
