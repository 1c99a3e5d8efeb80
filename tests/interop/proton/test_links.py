"""Links, sessions and the scope of errors, with proton and with frames written by hand."""

import pytest
from proton import Delivery, Endpoint, Message, symbol
from proton.reactor import DurableSubscription, Filter, LinkOption
from proton.utils import LinkDetached

from ambermq.protocol.amqp10.framing.frames import AMQP_HEADER
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
    Received,
    Released,
    Source,
    Target,
    Transfer,
)
from ambermq.tools.broker.child_broker import ChildBroker
from tests.interop.conftest import Connect
from tests.interop.proton_peer import Manager, ProtonPeer
from tests.protocol.peers import Wire
from tests.protocol.tcp import TcpWire

RECEIVER = True
BODY = b"\x00\x53\x77\x54\x01"


@pytest.mark.parametrize(
    ("address", "condition"),
    [
        ("/no/such/path", "amqp:not-found"),
        ("$unknown", "amqp:not-found"),
        ("x" * 256, "amqp:invalid-field"),
        ("line\nbreak", "amqp:invalid-field"),
    ],
)
@pytest.mark.parametrize("sends", [True, False])
def test_a_bad_address_refuses_the_link(peer: ProtonPeer, address: str, condition: str, sends: bool) -> None:
    """The link alone is refused, with its condition; the connection goes on."""
    with pytest.raises(LinkDetached) as caught:
        peer.sender(address) if sends else peer.receiver(address)
    assert caught.value.condition == condition
    assert peer.sender("fine").send("x")[0].remote_state == Delivery.ACCEPTED


@pytest.mark.parametrize(
    ("attach", "condition"),
    [
        ({"role": RECEIVER, "source": Source(address="$none")}, "amqp:not-found"),
        ({"role": RECEIVER, "source": None}, "amqp:not-found"),
        ({"role": RECEIVER, "source": Source()}, "amqp:invalid-field"),
        ({"role": RECEIVER, "source": Source(address="none", distribution_mode="copy")}, "amqp:not-found"),
        ({"role": RECEIVER, "source": Source(address="q", filter={symbol("ambermq:at"): 7})}, "amqp:invalid-field"),
        ({"role": not RECEIVER, "target": Target(address="/none")}, "amqp:not-found"),
        ({"role": not RECEIVER, "target": None}, "amqp:invalid-field"),
    ],
)
def test_a_refused_link_is_attached_with_a_null_terminus_and_detached(
    broker: ChildBroker, attach: dict[str, object], condition: str
) -> None:
    """attach with our null source or target, then detach(closed=true, error)."""
    fields: dict[str, object] = {"source": Source(), "target": Target(), "initial_delivery_count": 0, **attach}
    with TcpWire.begun(broker.url) as wire:
        wire.say(Attach(name="refused", handle=3, **fields))  # type: ignore[arg-type]
        answer = wire.expect(Attach)
        assert answer.name == "refused"
        assert answer.role is not attach["role"]
        assert (answer.source if attach["role"] is RECEIVER else answer.target) is None
        goodbye = wire.expect(Detach)
        assert goodbye.handle == answer.handle
        assert goodbye.closed
        assert goodbye.error is not None
        assert goodbye.error.condition == condition
        wire.say(Detach(handle=3, closed=True))
        wire.attach("fine", role=RECEIVER, handle=3, name="fine")


def test_an_attach_is_answered_in_full(broker: ChildBroker, queue: str) -> None:
    """Both termini, the peer's address, an explicit max-message-size; what is not applied is not reported."""
    with TcpWire.begun(broker.url) as wire:
        source = Source(
            address=queue,
            durable=2,
            expiry_policy="never",
            timeout=60,
            filter={symbol("x:filter"): "y"},
            default_outcome=Accepted(),
        )
        wire.say(Attach(name="l", handle=0, role=RECEIVER, source=source, target=Target(address="here")))
        answer = wire.expect(Attach)
        assert answer.max_message_size == 16 * 1024 * 1024
        assert answer.source is not None
        assert answer.source.address == queue
        assert isinstance(answer.target, Target)
        assert answer.target.address == "here"
        assert (answer.source.durable, answer.source.timeout, answer.source.filter) == (2, 60, None)
        assert answer.source.default_outcome == Accepted()


def test_every_closing_detach_is_answered(peer: ProtonPeer, queue: str) -> None:
    """detach(closed=true) by detach(closed=true), for senders and receivers; the name is free again."""
    for _ in range(3):
        sender = peer.sender(queue, name="again")
        assert sender.send("x")[0].remote_state == Delivery.ACCEPTED
        sender.link.close()
        peer.wait(lambda link=sender.link: link.state & Endpoint.REMOTE_CLOSED, "the answer")
        peer.receiver(queue, name="again").close()


@pytest.mark.parametrize("closed", [True, False])
def test_a_detach_is_answered_in_kind(broker: ChildBroker, queue: str, closed: bool) -> None:
    """The answer says closed as the peer did."""
    with TcpWire.begun(broker.url) as wire:
        attached = wire.attach(queue, role=RECEIVER, handle=9)
        wire.say(Detach(handle=9, closed=closed))
        answer = wire.expect(Detach)
        assert (answer.handle, answer.closed, answer.error) == (attached.handle, closed, None)


def test_a_second_attach_of_a_name_steals_the_link(broker: ChildBroker, queue: str) -> None:
    """The first link ends with amqp:link:stolen; its deliveries come to the second, counted."""
    with TcpWire.begun(broker.url) as wire:
        wire.attach(queue, role=not RECEIVER, handle=0, name="up")
        wire.send(0, BODY)
        first = wire.attach(queue, role=RECEIVER, handle=1, name="down")
        wire.flow(handle=1, delivery_count=0, link_credit=1)
        wire.expect(Transfer)
        wire.say(Attach(name="down", handle=2, role=RECEIVER, source=Source(address=queue), target=Target()))
        stolen = wire.expect(Detach)
        assert stolen.handle == first.handle
        assert stolen.error is not None
        assert stolen.error.condition == "amqp:link:stolen"
        wire.expect(Attach)
        wire.flow(handle=2, delivery_count=0, link_credit=1)
        _, payload = wire.expect_frame(Transfer)
        message = Message()
        message.decode(payload)
        assert message.delivery_count == 1


@pytest.mark.parametrize(
    ("frames", "condition"),
    [
        ([Flow(handle=7, incoming_window=1, next_outgoing_id=0, outgoing_window=1)], "amqp:session:unattached-handle"),
        ([Transfer(handle=7, delivery_id=0, delivery_tag=b"t")], "amqp:session:unattached-handle"),
        ([Detach(handle=7, closed=True)], "amqp:session:unattached-handle"),
        ([Wire.attach(role=RECEIVER, name="a"), Wire.attach(role=RECEIVER, name="b")], "amqp:session:handle-in-use"),
    ],
)
def test_handle_errors_end_the_session(broker: ChildBroker, frames: list[Attach], condition: str) -> None:
    """The session ends with the condition, and the connection can begin another."""
    with TcpWire.begun(broker.url) as wire:
        wire.say(*frames)
        end = wire.expect(End)
        assert end.error is not None
        assert end.error.condition == condition
        wire.say(End())
        wire.say(Wire.begin(), channel=1)
        wire.expect(Begin)


def test_a_transfer_without_credit_ends_the_link(broker: ChildBroker) -> None:
    """amqp:link:transfer-limit-exceeded, for the link alone."""
    with TcpWire.begun(broker.url) as wire:
        wire.say(
            Wire.attach(role=not RECEIVER, initial_delivery_count=0),
            Transfer(handle=0, delivery_id=0, delivery_tag=b"t"),
        )
        detach = wire.expect(Detach)
        assert detach.error is not None
        assert detach.error.condition == "amqp:link:transfer-limit-exceeded"


def test_an_unknown_message_format_ends_the_link(broker: ChildBroker, queue: str) -> None:
    """A format that we could not pass on is refused rather than delivered as another: amqp:not-implemented."""
    with TcpWire.begun(broker.url) as wire:
        wire.attach(queue, role=not RECEIVER)
        wire.send(0, BODY, message_format=0x80013700)
        detach = wire.expect(Detach)
        assert detach.error is not None
        assert detach.error.condition == "amqp:not-implemented"


def test_everything_may_come_in_one_piece(broker: ChildBroker, queue: str) -> None:
    """Header, open, begin, attach and flow in one segment, and the close behind them: all answered."""
    with TcpWire.begun(broker.url) as first:
        first.attach(queue, role=not RECEIVER)
        first.send(0, BODY)
        first.expect(Disposition)
    with TcpWire(broker.url) as wire:
        flow = Flow(
            next_incoming_id=0,
            incoming_window=10,
            next_outgoing_id=0,
            outgoing_window=10,
            handle=0,
            delivery_count=0,
            link_credit=10,
        )
        attach = Attach(name="l", handle=0, role=RECEIVER, source=Source(address=queue), target=Target())
        frames = (Open(container_id="one piece"), Wire.begin(), attach, flow)
        wire.give(AMQP_HEADER + b"".join(map(Wire.frame, frames)))
        kinds = [type(wire.next()[0]) for _ in range(4)]  # type: ignore[index]
        assert kinds == [Open, Begin, Attach, Transfer]
        wire.say(Close())
        assert [type(each) for each in wire.rest()] == [Close]


def test_two_sessions_on_one_connection(peer: ProtonPeer, queue: str) -> None:
    """Sessions have handles and windows of their own; the end of one leaves the other."""
    first = peer.sender(queue, name="one")
    session = peer.connection.session()
    session.open()
    link = session.sender("two")
    link.target.address = queue
    link.open()
    peer.wait(lambda: link.credit > 0, "credit in the second session")
    delivery = link.delivery("t")
    link.stream(Message("from two").encode())
    link.advance()
    peer.wait(lambda: delivery.settled, "its outcome")
    session.close()
    peer.wait(lambda: session.state & Endpoint.REMOTE_CLOSED, "its end")
    first.send("from one")
    receiver = peer.receiver(queue, credit=2)
    assert [got.message.body for got in receiver.wait(2)] == ["from two", "from one"]


def test_many_links(peer: ProtonPeer, queue: str) -> None:
    """A hundred senders and a hundred receivers in one session, each with a queue of its own."""
    senders = [peer.sender(f"{queue}-{number}") for number in range(100)]
    sent = [sender.put(Message(number)) for number, sender in enumerate(senders)]
    peer.wait(lambda: all(each.settled for each in sent), "outcomes")
    receivers = [peer.receiver(f"{queue}-{number}", credit=5) for number in range(100)]
    assert [receiver.next().message.body for receiver in receivers] == list(range(100))


def test_one_queue_by_its_path(peer: ProtonPeer) -> None:
    """/queues/NAME is the queue NAME, percent-encoded."""
    peer.sender("a/b c").send("x")
    assert peer.receiver("/queues/a%2Fb%20c", credit=1).next().message.body == "x"


def test_what_no_queue_takes_is_released(peer: ProtonPeer, connect: Connect, queue: str) -> None:
    """A queue deleted while its sender is attached: messages are settled released; its receivers are detached."""
    sender = peer.sender(queue)
    sender.send("kept until then")
    other = connect()
    receiver = other.receiver(queue, credit=1)
    receiver.wait(1)
    Manager(connect()).ask("DELETE", queue)
    assert sender.send("no receiver")[0].remote_state == Delivery.RELEASED
    other.wait(lambda: receiver.link.state & Endpoint.REMOTE_CLOSED, "the detach")
    assert receiver.link.remote_condition.name == "amqp:resource-deleted"


def test_management_answers_proton(peer: ProtonPeer, queue: str) -> None:
    """CREATE, READ, QUERY, PURGE, DELETE by proton's own request and response."""
    manager = Manager(peer)
    assert manager.ask("CREATE", queue, {"messages_max": 3}).properties["statusCode"] == 201
    assert manager.ask("CREATE", queue, {"messages_max": 3}).properties["statusCode"] == 200
    peer.sender(queue).send("a", "b")
    attributes = manager.queue(queue)
    assert (attributes["available"], attributes["messages_max"]) == (2, 3)
    last = manager.ask("QUERY").body["total"] - 1
    assert [row[0] for row in manager.ask("QUERY", offset=last).body["results"]] == [queue]
    assert manager.ask("PURGE", queue).body == {"messages": 2}
    assert manager.ask("DELETE", queue).properties["statusCode"] == 204
    assert manager.ask("READ", queue).properties["statusCode"] == 404
    assert manager.ask("DANCE", queue).properties["statusCode"] == 501


def test_a_full_queue_rejects(peer: ProtonPeer, queue: str) -> None:
    """Beyond messages_max: rejected with amqp:resource-limit-exceeded, and the link goes on."""
    Manager(peer).ask("CREATE", queue, {"messages_max": 1})
    sender = peer.sender(queue)
    first, second = sender.send("fits", "does not")
    assert (first.remote_state, second.remote_state) == (Delivery.ACCEPTED, Delivery.REJECTED)
    assert second.remote.condition.name == "amqp:resource-limit-exceeded"
    peer.receiver(queue, credit=1).wait(1)[0].settle(Delivery.ACCEPTED)
    assert sender.send("now")[0].remote_state == Delivery.ACCEPTED


@pytest.mark.parametrize("option", [DurableSubscription(), Filter({symbol("selector"): "colour = 'green'"})])
def test_what_is_not_applied_does_not_refuse(peer: ProtonPeer, queue: str, option: LinkOption) -> None:
    """A filter: adjusted and told in the attach, never refused. A durable source keeps what is unsettled."""
    peer.sender(queue).send("x")
    receiver = peer.receiver(queue, credit=1, options=option)
    assert receiver.link.remote_source.durability == (2 if isinstance(option, DurableSubscription) else 0)
    assert not receiver.link.remote_source.filter.get_object()
    assert receiver.next().message.body == "x"


@pytest.mark.parametrize("state", [None, Received(section_number=0, section_offset=0)])
def test_a_default_outcome_stands_in(broker: ChildBroker, connect: Connect, queue: str, state: Received | None) -> None:
    """Settled without an outcome: the source's default-outcome; accepted here, so it is gone."""
    with TcpWire.begun(broker.url) as wire:
        wire.attach(queue, role=not RECEIVER, handle=0, name="up")
        wire.send(0, BODY)
        wire.expect(Disposition)
        source = Source(address=queue, default_outcome=Accepted(), outcomes=[symbol("amqp:accepted:list")])
        wire.say(Attach(name="down", handle=1, role=RECEIVER, source=source, target=Target()))
        wire.expect(Attach)
        wire.flow(handle=1, delivery_count=0, link_credit=1)
        got = wire.expect(Transfer)
        wire.say(Disposition(role=RECEIVER, first=got.delivery_id, settled=True, state=state))
        wire.flow(handle=1, delivery_count=1, link_credit=1, next_incoming_id=1, drain=True)
        assert wire.expect(Flow).delivery_count == 2
        left = Manager(connect()).queue(queue)
        assert (left["acquired"], left["accepted"]) == (0, 1)


def test_dispositions_of_unknown_ids_are_ignored(broker: ChildBroker, queue: str) -> None:
    """A range over all ids is cheap and has no effect on unknown ids; it settles the deliveries within it."""
    with TcpWire.begun(broker.url) as wire:
        wire.attach(queue, role=not RECEIVER, handle=0, name="up")
        wire.send(0, BODY)
        wire.attach(queue, role=RECEIVER, handle=1, name="down")
        wire.flow(handle=1, delivery_count=0, link_credit=2)
        wire.expect(Transfer)
        wire.say(Disposition(role=RECEIVER, first=0, last=0x7FFFFFFE, settled=True, state=Released()))
        _, payload = wire.expect_frame(Transfer)
        assert payload == BODY
