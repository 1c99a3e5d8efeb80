"""Priorities of messages with proton over TCP."""

from proton import Delivery, Message
from proton.reactor import Selector

from tests.interop.conftest import Connect
from tests.interop.proton_peer import Manager, ProtonPeer


def _prioritized(*priorities: int) -> list[Message]:
    return [Message(f"{priority}.{turn}", priority=priority, durable=True) for turn, priority in enumerate(priorities)]


def test_the_highest_comes_first(peer: ProtonPeer, connect: Connect, queue: str) -> None:
    """Of one priority by arrival; 9 is the highest there is; the header is delivered as it was sent."""
    peer.sender(queue).send(*_prioritized(0, 4, 9, 255, 4, 7))
    assert Manager(connect()).queue(queue)["priorities"] is True
    receiver = connect().receiver(queue)
    came = []
    for _ in range(6):
        one = receiver.next()
        came.append((one.message.body, one.message.priority))
        one.settle(Delivery.ACCEPTED)
    assert came == [("9.2", 9), ("255.3", 255), ("7.5", 7), ("4.1", 4), ("4.4", 4), ("0.0", 0)]


def test_a_selector_follows_the_priorities(peer: ProtonPeer, connect: Connect, queue: str) -> None:
    """And so does a message that comes back."""
    peer.sender(queue).send(*_prioritized(1, 8, 8, 1))
    first = connect().receiver(queue, credit=1)
    one = first.next()
    assert one.message.body == "8.1"
    one.settle(Delivery.RELEASED)
    first.close()
    receiver = connect().receiver(queue, options=Selector("JMSPriority > 0"))
    assert [receiver.next().message.body for _ in range(4)] == ["8.1", "8.2", "1.0", "1.3"]


def test_an_update_ends_them(peer: ProtonPeer, connect: Connect, queue: str) -> None:
    """Then messages come by their arrival."""
    peer.sender(queue).send(*_prioritized(1, 9))
    Manager(connect()).ask("UPDATE", queue, {"priorities": False})
    receiver = connect().receiver(queue)
    assert [receiver.next().message.body for _ in range(2)] == ["1.0", "9.1"]
