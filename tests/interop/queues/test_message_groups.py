"""Message groups with proton over TCP."""

from proton import Delivery, Message

from tests.interop.conftest import Connect
from tests.interop.proton_peer import Manager, ProtonPeer, Receiving

LAST = 0xFFFFFFFF


def grouped(*bodies: str, sequence: int = 0) -> list[Message]:
    """Return messages whose first letters are their groups."""
    return [Message(body, durable=True, group_id=body[0], group_sequence=sequence, id=f"id-{body}") for body in bodies]


def receiving(connect: Connect, queue: str, credit: int) -> Receiving:
    """Return a receiver whose credit the broker knows: it has answered a later attach of the connection."""
    peer = connect()
    receiver = peer.receiver(queue, credit=credit)
    peer.sender(queue)
    return receiver


def bodies_of(receiver: Receiving, count: int) -> list[object]:
    """Wait for deliveries, and return their bodies; they stay out."""
    receiver.peer.wait(lambda: len(receiver.got) >= count, f"{count} deliveries")
    return receiver.bodies


def test_a_group_goes_to_one_receiver(peer: ProtonPeer, connect: Connect, queue: str) -> None:
    """Three groups and two receivers: each group in order at one of them; the properties come as they were sent."""
    first, second = receiving(connect, queue, 20), receiving(connect, queue, 20)
    peer.sender(queue).send(*grouped("a1", "b1", "c1", "a2", "b2", "c2", "a3", "b3", "c3"))
    assert bodies_of(first, 6) == ["a1", "c1", "a2", "c2", "a3", "c3"]
    assert bodies_of(second, 3) == ["b1", "b2", "b3"]
    assert [one.message.group_id for one in second.got] == ["b"] * 3
    assert Manager(connect()).queue(queue)["groups"] is True


def test_a_lost_receiver_loses_its_groups(peer: ProtonPeer, connect: Connect, queue: str) -> None:
    """What it held is back first, then what waited for it comes, each group in order."""
    first, second = receiving(connect, queue, 3), receiving(connect, queue, 20)
    sender = peer.sender(queue)
    sender.send(*grouped("a1", "b1", "c1", "a2", "c2", "a3", "b2"))
    assert bodies_of(first, 3) == ["a1", "c1", "a2"]
    assert bodies_of(second, 2) == ["b1", "b2"]
    first.peer.drop()
    assert bodies_of(second, 7)[2:] == ["a1", "c1", "a2", "c2", "a3"]
    assert [one.delivery_count for one in second.got[2:]] == [1, 1, 1, 0, 0]
    sender.send(*grouped("a4", "b3"))
    assert bodies_of(second, 9)[7:] == ["a4", "b3"]


def test_a_group_without_credit_lets_others_pass(peer: ProtonPeer, connect: Connect, queue: str) -> None:
    """And goes on with the next credit; what it releases comes back in its place."""
    first, second = receiving(connect, queue, 1), receiving(connect, queue, 20)
    peer.sender(queue).send(*grouped("a1", "a2", "b1", "a3", "b2"))
    assert bodies_of(second, 2) == ["b1", "b2"]
    first.next().settle(Delivery.RELEASED)
    assert [first.next().message.body for _ in range(3)] == ["a1", "a2", "a3"]


def test_the_last_of_a_group_ends_its_binding(peer: ProtonPeer, connect: Connect, queue: str) -> None:
    """The next receiver gets the messages behind it."""
    first, second = receiving(connect, queue, 20), receiving(connect, queue, 20)
    sender = peer.sender(queue)
    sender.send(*grouped("a1"), *grouped("a2", sequence=LAST))
    assert bodies_of(first, 2) == ["a1", "a2"]
    sender.send(*grouped("a3"))
    assert bodies_of(second, 1) == ["a3"]


def test_an_update_switches_groups_off(peer: ProtonPeer, connect: Connect, queue: str) -> None:
    """Then each message goes to the next receiver."""
    first, second = receiving(connect, queue, 20), receiving(connect, queue, 20)
    Manager(connect()).ask("UPDATE", queue, {"groups": False})
    peer.sender(queue).send(*grouped("a1", "a2", "a3", "a4"))
    assert bodies_of(first, 2) == ["a1", "a3"]
    assert bodies_of(second, 2) == ["a2", "a4"]
