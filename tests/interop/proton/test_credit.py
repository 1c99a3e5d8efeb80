"""Credit, drain and turns between proton's receivers and the broker; and credit for its senders."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from proton import Delivery

from ambermq.protocol.amqp10.performatives.classes import (
    Accepted,
    Attach,
    Detach,
    Disposition,
    Flow,
    Source,
    Target,
    Transfer,
)
from ambermq.protocol.amqp10.spec import SenderSettleMode
from ambermq.tools.broker.child_broker import ChildBroker
from tests.interop.conftest import Connect, StartBroker
from tests.interop.proton_peer import Manager, ProtonPeer
from tests.protocol.peers import Wire
from tests.protocol.tcp import TcpWire

RECEIVER = True


def test_nothing_comes_without_credit(peer: ProtonPeer, connect: Connect, queue: str) -> None:
    """Prefetch 0: a receiver gets nothing before its flow, and nothing is held for it."""
    peer.sender(queue).send("x", "y")
    receiver = peer.receiver(queue, credit=0)
    state = Manager(connect()).queue(queue)
    assert (state["available"], state["acquired"], state["consumers"]) == (2, 0, 1)
    assert receiver.got == []
    receiver.link.flow(1)
    assert receiver.wait(1)[0].message.body == "x"


def test_no_more_than_the_credit_comes(peer: ProtonPeer, connect: Connect, queue: str) -> None:
    """Exactly as many deliveries as credit, in order; the rest stays on the queue."""
    peer.sender(queue).send(*map(str, range(100)))
    receiver = peer.receiver(queue)
    seen: list[object] = []
    for credit in (1, 7, 30, 2):
        receiver.link.flow(credit)
        seen += [got.message.body for got in receiver.wait(credit)]
    state = Manager(connect()).queue(queue)
    assert (state["available"], state["acquired"]) == (60, 40)
    assert seen == [str(number) for number in range(40)]
    assert receiver.got == []


@pytest.mark.parametrize(("waiting", "credit"), [(0, 10), (3, 10), (10, 10), (20, 10), (2500, 6000)])
def test_drain_ends(peer: ProtonPeer, queue: str, waiting: int, credit: int) -> None:
    """Drain: what is available comes, then the rest of the credit is given back; what comes later waits."""
    sender = peer.sender(queue)
    if waiting:
        sender.send(*["x"] * waiting)
    receiver = peer.receiver(queue)
    receiver.drain(credit)
    assert len(receiver.got) == min(waiting, credit)
    assert receiver.link.credit == 0
    sender.send("later")
    assert len(receiver.got) == min(waiting, credit)
    receiver.link.drain_mode = False
    receiver.link.flow(1)
    receiver.wait(min(waiting, credit) + 1)


@pytest.mark.parametrize(
    ("waiting", "credit", "window"), [(0, 5, 100), (3, 5, 100), (5, 5, 100), (9, 5, 100), (3, 0, 9)]
)
def test_drain_is_answered_by_a_flow(broker: ChildBroker, queue: str, waiting: int, credit: int, window: int) -> None:
    """The answer to a drain is a flow: delivery-count advanced by the rest, link-credit 0, drain=true; always one."""
    with TcpWire.begun(broker.url) as wire:
        wire.attach(queue, role=not RECEIVER, name="up")
        for number in range(waiting):
            wire.send(number, b"\x00\x53\x77\x54\x01")
        while waiting and wire.expect(Disposition).last != waiting - 1:
            pass
        wire.attach(queue, role=RECEIVER, handle=1, name="down")
        wire.flow(handle=1, delivery_count=0, link_credit=credit, drain=True, incoming_window=window)
        transfers = 0
        while (frame := wire.next()) is not None and not (isinstance(frame[0], Flow) and frame[0].drain):
            transfers += isinstance(frame[0], Transfer)
        assert frame is not None
        answer = frame[0]
        assert isinstance(answer, Flow)
        assert transfers == min(waiting, credit)
        assert (answer.delivery_count, answer.link_credit) == (credit, 0)


def test_drain_waits_for_the_window(broker: ChildBroker, queue: str) -> None:
    """Behind a closed window a drain is not over: it is answered when what is available has been sent."""
    with TcpWire.begun(broker.url, begin={"incoming_window": 2}) as wire:
        wire.attach(queue, role=not RECEIVER, name="up")
        for number in range(5):
            wire.send(number, b"\x00\x53\x77\x54\x01", settled=True)
        wire.attach(queue, role=RECEIVER, handle=1, name="down")
        wire.flow(handle=1, delivery_count=0, link_credit=9, drain=True, incoming_window=2)
        for _ in range(2):
            wire.expect(Transfer)
        wire.flow(echo=True, incoming_window=0, next_incoming_id=2)
        assert not wire.expect(Flow).drain
        wire.flow(incoming_window=100, next_incoming_id=2)
        for _ in range(3):
            wire.expect(Transfer)
        answer = wire.expect(Flow)
        assert (answer.drain, answer.delivery_count, answer.link_credit) == (True, 9, 0)


def test_drains_of_links_that_share_a_window(broker: ChildBroker, connect: Connect, queue: str) -> None:
    """A drain is over when what was taken off the queue has been sent, also where another link used the window up."""
    sender = connect()
    for name in "ab":
        sender.sender(queue + name).send("1", "2", "3")
    with TcpWire.begun(broker.url, begin={"incoming_window": 5}) as wire:
        handles = [
            wire.attach(queue + name, role=RECEIVER, handle=number, name=name).handle
            for number, name in enumerate("ab")
        ]
        flow = {"delivery_count": 0, "link_credit": 10, "drain": True, "incoming_window": 5, "next_incoming_id": 0}
        fields = {"next_outgoing_id": 0xFFFFFFFD, "outgoing_window": 9, **flow}
        wire.say(*(Flow(**fields, handle=number) for number in range(2)))
        for _ in range(5):
            wire.expect(Transfer)
        wire.flow(incoming_window=100, next_incoming_id=5)
        assert wire.expect(Transfer).handle == handles[1]
        answer = wire.expect(Flow)
        assert (answer.handle, answer.drain, answer.delivery_count, answer.link_credit) == (handles[1], True, 10, 0)


def test_settling_makes_room(start_broker: StartBroker, queue: str) -> None:
    """A receiver whose unsettled deliveries are at the broker's bound gets more as it settles, without a flow."""
    broker = start_broker(config="[connection]\nunsettled_max = 10\n")
    with TcpWire.begun(broker.url) as wire:
        for number in range(30):
            if number % 10 == 0:
                # With the answer the window is open again, which is as small as the bound.
                wire.attach(queue, role=not RECEIVER, handle=number // 10, name=f"up {number}")
            wire.send(number, b"\x00\x53\x77\x54\x01", handle=number // 10, settled=True)
        wire.attach(queue, role=RECEIVER, handle=3, name="down")
        wire.flow(handle=3, delivery_count=0, link_credit=100)
        for _ in range(3):
            ids = [wire.expect(Transfer).delivery_id for _ in range(10)]
            wire.say(Disposition(role=RECEIVER, first=ids[0], last=ids[-1], settled=True, state=Accepted()))


@contextmanager
def full_session(
    start_broker: StartBroker, queue: str, modes: tuple[str | None, str | None]
) -> Iterator[tuple[str, TcpWire, list[int], int]]:
    """A session where one receiver holds all that may be unsettled and another has credit; with "copy" it browses.

    Yields the broker's URL, the wire, the ids of what the first holds, and the handle of the second.
    """
    broker = start_broker(config="[connection]\nunsettled_max = 10\n")
    with TcpWire.begun(broker.url) as wire:
        for number, name in enumerate("ab"):
            wire.attach(queue + name, role=not RECEIVER, handle=number, name=f"to {name}")
            for at in range(10):
                wire.send(10 * number + at, b"\x00\x53\x77\x54\x01", handle=number, settled=True)
        handles = []
        for number, (name, mode) in enumerate(zip("ab", modes, strict=True)):
            source = Source(address=queue + name, distribution_mode=mode)
            # Else what is browsed comes settled, and nothing of it is held.
            settling = SenderSettleMode.UNSETTLED
            fields = {"handle": 2 + number, "role": RECEIVER, "source": source, "target": Target()}
            wire.say(Attach(name=f"from {name}", snd_settle_mode=settling, **fields))
            handles.append(wire.expect(Attach).handle)
        wire.flow(handle=2, delivery_count=0, link_credit=10)
        transfers = [wire.expect(Transfer) for _ in range(10)]
        assert not any(transfer.settled for transfer in transfers)
        ids = [transfer.delivery_id for transfer in transfers]
        wire.flow(handle=3, delivery_count=0, link_credit=10)
        wire.flow(echo=True)
        wire.expect(Flow)
        yield broker.url, wire, ids, handles[1]


@pytest.mark.parametrize("modes", [(None, None), ("copy", None), (None, "copy")])
def test_the_other_links_get_the_room(
    start_broker: StartBroker, queue: str, modes: tuple[str | None, str | None]
) -> None:
    """A receiver that has used its credit up settles: another of its session waits, and gets what it can."""
    with full_session(start_broker, queue, modes) as (_, wire, ids, handle):
        for delivery_id in ids:
            wire.say(Disposition(role=RECEIVER, first=delivery_id, settled=True, state=Accepted()))
            assert wire.expect(Transfer).handle == handle


@pytest.mark.parametrize("ends", ["it detaches", "it is stolen", "its queue is deleted"])
def test_the_other_links_get_the_room_of_one_that_ends(
    start_broker: StartBroker, connect: Connect, queue: str, ends: str
) -> None:
    """The link ends by its client, by a theft or by the deletion of its queue."""
    with full_session(start_broker, queue, (None, None)) as (url, wire, _, handle), ExitStack() as others:
        if ends == "it detaches":
            wire.say(Detach(handle=2, closed=True))
        elif ends == "it is stolen":
            other = others.enter_context(TcpWire.begun(url))
            other.attach(queue + "a", role=RECEIVER, handle=0, name="from a")
        else:
            Manager(connect(url)).ask("DELETE", queue + "a", None, type="org.ambermq.queue")
        assert [wire.expect(Transfer).handle for _ in range(10)] == [handle] * 10


def test_credit_behind_a_closed_window_acquires_nothing(broker: ChildBroker, connect: Connect, queue: str) -> None:
    """The session's window bounds what a consumer takes off the queue."""
    connect().sender(queue).send(*["x"] * 20)
    with TcpWire.begun(broker.url, begin={"incoming_window": 4}) as wire:
        wire.attach(queue, role=RECEIVER)
        wire.flow(handle=0, delivery_count=0, link_credit=20, incoming_window=4)
        for _ in range(4):
            wire.expect(Transfer)
        state = Manager(connect()).queue(queue)
        assert (state["available"], state["acquired"]) == (16, 4)


@pytest.mark.parametrize("on_link", [True, False])
def test_an_echo_is_answered(broker: ChildBroker, queue: str, on_link: bool) -> None:
    """A flow with echo is answered by a flow: of the link when it names one, else of the session."""
    with TcpWire.begun(broker.url) as wire:
        attached = wire.attach(queue, role=RECEIVER, handle=5)
        link = {"handle": 5, "delivery_count": 0, "link_credit": 3} if on_link else {}
        wire.flow(echo=True, **link)
        answer = wire.expect(Flow)
        assert (answer.handle, answer.link_credit) == ((attached.handle, 3) if on_link else (None, None))
        assert not answer.echo


def test_credit_can_be_taken_back(broker: ChildBroker, connect: Connect, queue: str) -> None:
    """A flow with less credit than before counts: nothing comes for what was taken back."""
    with TcpWire.begun(broker.url) as wire:
        wire.attach(queue, role=RECEIVER)
        wire.flow(handle=0, delivery_count=0, link_credit=10)
        wire.flow(handle=0, delivery_count=0, link_credit=1, echo=True)
        assert wire.expect(Flow).link_credit == 1
        connect().sender(queue).send("a", "b", "c")
        wire.expect(Transfer)
        state = Manager(connect()).queue(queue)
        assert (state["available"], state["acquired"]) == (2, 1)


def test_turns_are_exact(connect: Connect, queue: str) -> None:
    """Consumers with credit get one each in turn, in the order in which they came."""
    peers = [connect() for _ in range(3)]
    receivers = [peer.receiver(queue, credit=100) for peer in peers]
    for peer in peers:
        # Answered behind its flow.
        Manager(peer).queue(queue)
    connect().sender(queue).send(*map(str, range(30)))
    for turn, receiver in enumerate(receivers):
        assert [got.message.body for got in receiver.wait(10)] == [str(number) for number in range(turn, 30, 3)]


def test_turns_skip_a_link_without_credit(connect: Connect, queue: str) -> None:
    """A consumer out of credit loses its turns, not the others theirs."""
    peer = connect()
    few, many = peer.receiver(queue, credit=2, name="few"), peer.receiver(queue, credit=100, name="many")
    Manager(peer).queue(queue)
    connect().sender(queue).send(*map(str, range(10)))
    assert [got.message.body for got in few.wait(2)] == ["0", "2"]
    assert [got.message.body for got in many.wait(8)] == ["1", "3", "4", "5", "6", "7", "8", "9"]


def test_senders_always_get_new_credit(peer: ProtonPeer, queue: str) -> None:
    """Credit is pacing: a sender that never waits gets 5,000 messages through, each accepted."""
    sender = peer.sender(queue)
    assert sender.link.credit > 0
    deliveries = sender.send(*["x"] * 5000)
    assert {int(delivery.remote_state) for delivery in deliveries} == {int(Delivery.ACCEPTED)}


def test_ids_wrap(broker: ChildBroker, queue: str) -> None:
    """Delivery-ids and delivery-counts are serial numbers: a client may begin three before the wrap."""
    with TcpWire.begun(broker.url) as wire:
        wire.say(Wire.attach(role=not RECEIVER, name=queue, initial_delivery_count=0xFFFFFFFE))
        wire.expect(Flow)
        for number in range(6):
            wire.send((0xFFFFFFFD + number) & 0xFFFFFFFF, b"\x00\x53\x77\x54\x01")
        settled: list[int] = []
        while len(settled) < 6:
            said = wire.expect(Disposition)
            assert said.settled
            assert isinstance(said.state, Accepted)
            last = said.first if said.last is None else said.last
            settled += [(said.first + n) & 0xFFFFFFFF for n in range(((last - said.first) & 0xFFFFFFFF) + 1)]
        assert settled == [(0xFFFFFFFD + number) & 0xFFFFFFFF for number in range(6)]
