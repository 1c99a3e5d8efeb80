"""Deliveries by cut-through that end while something else is under way: nothing is lost, and nothing stays acquired."""

import pytest

from ambermq.log.write.log import Log
from ambermq.protocol.amqp10.message.message import decode_message
from ambermq.protocol.amqp10.performatives.classes import (
    Accepted,
    Attach,
    Detach,
    Discharge,
    Disposition,
    Flow,
    Header,
    Rejected,
    Source,
    Target,
    TransactionalState,
    Transfer,
)
from ambermq.protocol.amqp10.spec import SenderSettleMode
from ambermq.protocol.server_limits import ServerLimits
from tests.protocol.gateway.large.test_cut_through import Peer, Through, message, rig_of
from tests.protocol.gateway.large.test_large_messages import outcomes
from tests.protocol.gateway.transactions.test_connection_transactions import Transacting
from tests.protocol.peers import FIRST_ID, Wire
from tests.protocol.watching import bodies


def read(peer: Peer, *frames: bytes) -> None:
    """Process the bytes of one read, without a tick."""
    peer.peer.connection.receive(b"".join(frames), 0)
    peer.peer.handle_events()


def taken_back(count: int) -> Flow:
    """Return the flow by which a receiver of so many deliveries takes its credit back."""
    window = {"next_incoming_id": count, "incoming_window": 100, "next_outgoing_id": FIRST_ID, "outgoing_window": 100}
    return Flow(**window, handle=5, delivery_count=count, link_credit=0)


@pytest.mark.parametrize("cut_through", [True, False])
def test_a_message_without_one_of_its_pieces_is_refused(monkeypatch: pytest.MonkeyPatch, *, cut_through: bool) -> None:
    """The disk is full in one tick alone, and all frames have come before."""
    peer = Peer(rig_of(cut_through=cut_through), limits=ServerLimits(uploads_unsynced_bytes=1000))
    peer.sender()
    peer.receiver()
    read(peer, *peer.frames(message(1, 4500)))
    for tick in range(12):
        with monkeypatch.context() as patch:
            if tick == 1:
                patch.setattr(Log, "room_bytes", lambda _: 500)
            peer.gateway.carry_out([*peer.rig.step(), *peer.rig.completed()])
    said = peer.settle()
    assert outcomes(said) == [Rejected]
    assert not bodies(said)
    assert peer.rig.queue().depth == 0
    assert not peer.rig.loop.state.uploads


def test_credit_that_is_taken_back_as_the_message_is_published_returns_it() -> None:
    """It was acquired before the broker knew of the flow: it is available again, and comes with new credit."""
    peer = Peer(rig_of())
    peer.sender()
    peer.receiver(window=1)
    peer.sender(1)
    peer.give(b"".join(peer.frames(message(2, 10), handle=1)))
    frames = peer.frames(message(1, 9500))
    read(peer, *frames[:-5])
    begun = peer.rig.do()
    (consumer_link,) = peer.gateway.consumers.values()
    consumer_link.link.session.windows.remote = 0
    peer.gateway.carry_out(begun)
    peer.settle()
    read(peer, *frames[-5:])
    ended = peer.rig.do()
    flow = taken_back(1)
    read(peer, Wire.frame(flow))
    peer.gateway.carry_out(ended)
    assert outcomes(peer.settle()) == [Accepted]
    assert peer.rig.queue().available == 1
    assert len(bodies(peer.flow(5, handle=5, count=1, incoming_window=100, next_incoming_id=1))) == 1


def test_a_settled_receiver_that_takes_its_credit_back_loses_nothing() -> None:
    """No frame was sent: the message is one of the queue when it is complete."""
    peer = Peer(rig_of())
    peer.sender()
    terminus = {"source": Source(address="q"), "target": Target(), "snd_settle_mode": SenderSettleMode.SETTLED}
    peer.say(Attach(name="d", handle=5, role=True, **terminus))
    peer.flow(10, handle=5)
    frames = peer.frames(message(1, 9500))
    read(peer, *frames[:-5])
    begun = peer.rig.do()
    read(peer, Wire.frame(taken_back(0)))
    peer.gateway.carry_out(begun)
    peer.settle()
    assert outcomes(peer.give(b"".join(frames[-5:]))) == [Accepted]
    queue = peer.rig.queue()
    assert (queue.available, queue.accepted) == (1, 0)
    assert len(bodies(peer.flow(10, handle=5))) == 1


def test_a_client_of_service_bus_gets_whole_messages() -> None:
    """Its deliveries name the place of their message."""
    peer = Through()
    (want,) = peer.rig.loop.demand.wants.values()
    want.may_cut_through = False
    frames = peer.frames(message(1, 9500))
    assert not bodies(peer.give(b"".join(frames[:-5])))
    assert not peer.rig.loop.demand.cut_throughs
    assert len(bodies(peer.give(b"".join(frames[-5:])))) == 1


@pytest.mark.parametrize("end", ["detach", "loss", "late loss"])
@pytest.mark.parametrize("is_known", [True, False], ids=["known", "unknown"])
@pytest.mark.parametrize("is_sent", [True, False], ids=["sent", "unsent"])
def test_a_receiver_that_ends_before_the_sync_of_the_publish(end: str, *, is_known: bool, is_sent: bool) -> None:
    """The delivery has failed only if a frame of it is sent; else the message comes as in a first delivery.

    Its link may not even know of it, because the first piece was not durable. With a late loss the publish is durable
    before the consumer of the lost link is detached.
    """
    peer = Peer(rig_of())
    peer.sender()
    receiver = Peer(peer.rig, gateway=peer.gateway, container="receiver")
    receiver.receiver()
    body = message(1, 9500)
    frames = peer.frames(body)
    read(peer, *frames[:-5])
    begun = peer.rig.do()
    (consumer_link,) = peer.gateway.consumers.values()
    if not is_sent:
        consumer_link.link.session.windows.remote = 0
    if is_known or is_sent:
        peer.gateway.carry_out(begun)
        peer.settle()
        receiver.settle()
        begun = []
    read(peer, *frames[-5:])
    effects = peer.rig.step()
    while not peer.rig.queue().acquired_count:
        effects += peer.rig.completed() + peer.rig.step()
    if end == "detach":
        read(receiver, Wire.frame(Detach(handle=5, closed=True)))
    elif end == "loss":
        receiver.peer.lost()
    else:
        consumer_link.lose()
    peer.gateway.carry_out([*begun, *effects, *peer.rig.completed()])
    peer.settle()
    if end == "late loss":
        receiver.peer.lost()
        peer.settle()
    (again,) = bodies(peer.receiver(6))
    assert (decode_message(again).header == Header(durable=True, delivery_count=1)) is is_sent
    assert is_sent or again == body
    assert peer.rig.queue().counters.failed == int(is_sent)


@pytest.mark.parametrize("is_settled", [True, False], ids=["settled", "unsettled"])
def test_nothing_stays_of_a_delivery_that_is_settled_in_a_transaction(*, is_settled: bool) -> None:
    """A rollback leaves an unsettled one as it was; with the commit it ends, and so does what is known of it."""
    peer = Peer(rig_of())
    peer.sender()
    receiver = Transacting(peer.rig, gateway=peer.gateway, container="receiver")
    receiver.get(10)
    frames = peer.frames(message(1, 9500))
    peer.give(b"".join(frames[:-5]))
    peer.give(b"".join(frames[-5:]))
    (delivery,) = [one for one, _ in receiver.settle() if isinstance(one, Transfer) and one.delivery_id is not None]
    assert delivery.delivery_id is not None
    (consumer_link,) = peer.gateway.consumers.values()
    early = consumer_link.early
    assert early is not None
    if not is_settled:
        transaction = receiver.declare()
        receiver.retire(transaction, delivery.delivery_id, settled=False)
        receiver.control(Discharge(txn_id=transaction, fail=True))
        assert early.unsettled_count == 1
    transaction = receiver.declare()
    receiver.retire(transaction, delivery.delivery_id, settled=is_settled)
    assert receiver.control(Discharge(txn_id=transaction)) == Accepted()
    assert early.unsettled_count == 0
    assert (peer.rig.queue().depth, peer.rig.queue().accepted) == (0, 1)


@pytest.mark.parametrize("fails", [True, False], ids=["rollback", "commit"])
def test_an_unsettled_outcome_in_the_middle_and_in_a_transaction_settles_the_delivery(*, fails: bool) -> None:
    """The broker aborts the rest, so the receiver cannot settle it: after a rollback the message is on the queue."""
    peer = Peer()
    peer.sender()
    peer.give(b"".join(peer.frames(message(1, 9500))))
    receiver = Transacting(peer.rig, gateway=peer.gateway, container="receiver")
    first = Flow(
        next_incoming_id=0,
        incoming_window=3,
        next_outgoing_id=0,
        outgoing_window=1000,
        handle=2,
        delivery_count=0,
        link_credit=1,
    )
    (delivery, *_) = [one for one in receiver.say(first) if isinstance(one, Transfer)]
    assert delivery.delivery_id is not None
    transaction = receiver.declare()
    receiver.retire(transaction, delivery.delivery_id, settled=False)
    assert receiver.control(Discharge(txn_id=transaction, fail=fails)) == Accepted()
    queue = peer.rig.queue()
    assert (queue.available, queue.acquired_count, queue.accepted) == ((1, 0, 0) if fails else (0, 0, 1))


@pytest.mark.parametrize("fails", [True, False], ids=["rollback", "commit"])
@pytest.mark.parametrize("is_transacted", [True, False])
def test_an_outcome_of_deliveries_before_the_one_in_the_middle_settles_that_one_alone(
    *, is_transacted: bool, fails: bool
) -> None:
    """The others are answered, and after a rollback they stay with their receiver."""
    peer = Peer()
    peer.sender()
    receiver = Transacting(peer.rig, gateway=peer.gateway, container="receiver")
    for number, size in enumerate((10, 10, 9500)):
        peer.give(b"".join(peer.frames(message(number, size))))
    flow = Flow(
        next_incoming_id=0,
        incoming_window=4,
        next_outgoing_id=0,
        outgoing_window=1000,
        handle=2,
        delivery_count=0,
        link_credit=10,
    )
    ids = [one.delivery_id for one in receiver.say(flow) if isinstance(one, Transfer) and one.delivery_id is not None]
    (consumer_link,) = peer.gateway.consumers.values()
    sent, queue = consumer_link.link.session.sent, peer.rig.queue
    assert (len(set(ids)), sent.count) == (3, 3)
    transaction = receiver.declare() if is_transacted else b""
    state = TransactionalState(txn_id=transaction, outcome=Accepted()) if is_transacted else Accepted()
    said = receiver.say(Disposition(role=True, first=min(ids), last=max(ids), settled=False, state=state))
    if is_transacted:
        said += [receiver.control(Discharge(txn_id=transaction, fail=fails))]
        said += [one for one, _ in receiver.settle()]
    if is_transacted and fails:
        assert (sent.count, queue().available, queue().acquired_count) == (2, 1, 2)
    else:
        assert (sent.count, queue().depth, queue().accepted) == (0, 0, 3)
