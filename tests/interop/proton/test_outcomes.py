"""Every outcome that proton can give, and what it does to the message and its delivery-count."""

import pytest
from proton import Condition, Delivery, Endpoint, symbol
from proton.reactor import LinkOption

from tests.interop.conftest import Connect
from tests.interop.proton_peer import Manager, ProtonPeer


class Second(LinkOption):
    """rcv-settle-mode second: an outcome is settled when the broker says so."""

    def apply(self, link: object) -> None:
        link.rcv_settle_mode = 1  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("outcome", "modified", "count"),
    [
        (Delivery.RELEASED, {}, 0),
        (Delivery.MODIFIED, {}, 0),
        (Delivery.MODIFIED, {"failed": False}, 0),
        (Delivery.MODIFIED, {"failed": True}, 1),
        (None, {}, 0),
    ],
)
def test_what_comes_back(
    peer: ProtonPeer, queue: str, outcome: int | None, modified: dict[str, bool], count: int
) -> None:
    """Released, modified, or settled without an outcome: back to the head, counted where delivery failed."""
    peer.sender(queue).send("first", "second")
    receiver = peer.receiver(queue)
    receiver.next().settle(outcome, **modified)
    again = receiver.next()
    assert (again.message.body, again.delivery_count) == ("first", count)
    again.settle(Delivery.ACCEPTED)
    last = receiver.next()
    assert (last.message.body, last.delivery_count) == ("second", 0)


@pytest.mark.parametrize("outcome", [Delivery.ACCEPTED, Delivery.REJECTED])
def test_what_is_gone(peer: ProtonPeer, connect: Connect, queue: str, outcome: int) -> None:
    """Accepted and rejected messages leave the queue."""
    peer.sender(queue).send("gone", "next")
    receiver = peer.receiver(queue)
    got = receiver.next()
    if outcome == Delivery.REJECTED:
        got.delivery.local.condition = Condition("app:bad", "cannot be used")
    got.settle(outcome)
    assert receiver.next().message.body == "next"
    state = Manager(connect()).queue(queue)
    assert (state["available"], state["acquired"]) == (0, 1)
    assert state["rejected"] == (outcome == Delivery.REJECTED)
    assert state["accepted"] == (outcome == Delivery.ACCEPTED)


def test_failures_add_up(peer: ProtonPeer, queue: str) -> None:
    """Each modified(delivery-failed=true) counts one, and releases between them count nothing."""
    peer.sender(queue).send("x")
    receiver = peer.receiver(queue)
    counts = []
    for number in range(6):
        got = receiver.next()
        counts.append(got.delivery_count)
        if number % 2:
            got.settle(Delivery.RELEASED)
        else:
            got.settle(Delivery.MODIFIED, failed=True)
    assert counts == [0, 1, 1, 2, 2, 3]


def test_undeliverable_here_passes_a_link_by(peer: ProtonPeer, queue: str) -> None:
    """Not to this link again: it gets the next message, another link gets this one."""
    peer.sender(queue).send("not here", "next")
    receiver = peer.receiver(queue, name="first")
    receiver.next().settle(Delivery.MODIFIED, undeliverable=True)
    assert receiver.next().message.body == "next"
    receiver.drain(5)
    assert receiver.got == []
    other = peer.receiver(queue, name="second").next()
    assert (other.message.body, other.delivery_count) == ("not here", 0)


def test_annotations_are_merged(peer: ProtonPeer, queue: str) -> None:
    """Annotations of modified are added to the message's own, the later one wins, and others see them."""
    peer.sender(queue).send("x")
    receiver = peer.receiver(queue)
    receiver.next().settle(Delivery.MODIFIED, annotations={symbol("x-opt-a"): 1, symbol("x-opt-b"): 1})
    receiver.next().settle(Delivery.MODIFIED, failed=True, annotations={symbol("x-opt-b"): 2})
    got = peer.receiver(queue, name="other").next()
    assert got.message.annotations == {"x-opt-a": 1, "x-opt-b": 2}
    assert got.delivery_count == 1


def test_what_is_released_out_of_order_comes_in_order(peer: ProtonPeer, queue: str) -> None:
    """Released deliveries stand again where they stood, whatever the order of the releases."""
    peer.sender(queue).send(*"abcdefgh")
    receiver = peer.receiver(queue, credit=6)
    taken = receiver.wait(6)
    for index in (3, 0, 5, 1):
        taken[index].settle(Delivery.RELEASED)
    for index in (2, 4):
        taken[index].settle(Delivery.ACCEPTED)
    receiver.link.flow(6)
    assert [got.message.body for got in receiver.wait(6)] == list("abdfgh")


def test_settled_out_of_order(peer: ProtonPeer, connect: Connect, queue: str) -> None:
    """Accepted in reverse: all are gone."""
    peer.sender(queue).send(*map(str, range(50)))
    receiver = peer.receiver(queue, credit=50)
    for got in reversed(receiver.wait(50)):
        got.settle(Delivery.ACCEPTED)
    receiver.drain(1)
    state = Manager(connect()).queue(queue)
    assert (state["available"], state["acquired"], state["accepted"]) == (0, 0, 50)


@pytest.mark.parametrize(
    ("outcome", "left"),
    [(Delivery.ACCEPTED, 0), (Delivery.REJECTED, 0), (Delivery.RELEASED, 1), (Delivery.MODIFIED, 1)],
)
def test_receiver_second_is_answered(peer: ProtonPeer, connect: Connect, queue: str, outcome: int, left: int) -> None:
    """disposition(settled=false, outcome) is answered by disposition(role=sender, settled=true, the same outcome)."""
    peer.sender(queue).send("x")
    receiver = peer.receiver(queue, options=Second())
    assert receiver.link.remote_rcv_settle_mode == 1
    got = receiver.next()
    got.delivery.local.condition = Condition("app:bad", "what the broker does not say again")
    got.delivery.update(outcome)
    peer.wait(lambda: got.delivery.settled, "the broker to settle")
    assert got.delivery.remote_state == outcome
    assert got.delivery.remote.condition is None
    got.delivery.settle()
    assert Manager(connect()).queue(queue)["available"] == left


def test_loss_of_a_link_counts_what_was_sent(peer: ProtonPeer, queue: str) -> None:
    """Detached with deliveries unsettled: they come back counted; what never left comes uncounted, in order."""
    peer.sender(queue).send(*"abcd")
    receiver = peer.receiver(queue, credit=2, name="lost")
    receiver.wait(2)
    receiver.close()
    other = peer.receiver(queue, credit=4, name="other")
    assert [(got.message.body, got.delivery_count) for got in other.wait(4)] == [
        ("a", 1),
        ("b", 1),
        ("c", 0),
        ("d", 0),
    ]


def test_loss_of_a_session_counts(connect: Connect, peer: ProtonPeer, queue: str) -> None:
    """The end of a session is the loss of its links."""
    peer.sender(queue).send("x")
    other = connect()
    receiver = other.receiver(queue, credit=1)
    receiver.wait(1)
    session = receiver.link.session
    session.close()
    other.wait(lambda: session.state & Endpoint.REMOTE_CLOSED, "the answer to the end")
    got = peer.receiver(queue, credit=1).wait(1)[0]
    assert got.delivery_count == 1


def test_loss_of_a_connection_counts(connect: Connect, peer: ProtonPeer, queue: str) -> None:
    """A client that dies without a word: what it held comes back counted, each time."""
    peer.sender(queue).send("x", "y")
    for count in range(3):
        dying = connect()
        taken = dying.receiver(queue, credit=1).wait(1)[0]
        assert (taken.message.body, taken.delivery_count) == ("x", count)
        dying.drop()
    counts = [(got.message.body, got.delivery_count) for got in peer.receiver(queue, credit=2).wait(2)]
    assert counts == [("x", 3), ("y", 0)]
