"""Duplicates with proton over TCP: what a producer sends again is accepted, and stored once."""

from uuid import UUID

from proton import Delivery, Message, ulong

from tests.interop.conftest import Connect, StartBroker
from tests.interop.proton_peer import Manager, ProtonPeer


def test_what_is_sent_again_is_stored_once(peer: ProtonPeer, connect: Connect, queue: str) -> None:
    """By another connection too; an id is its value and its type."""
    manager = Manager(connect())
    manager.ask("CREATE", queue, {"dedup_window_ms": 600_000})
    assert manager.queue(queue)["dedup_window_ms"] == 600_000
    ids = ["1", ulong(1), UUID(int=1), None, "2"]
    sender = peer.sender(queue)
    sender.send(*[Message(str(index), id=one, durable=True) for index, one in enumerate(ids)])
    again = connect().sender(queue)
    again.send(*[Message(f"again {index}", id=one, durable=True) for index, one in enumerate(ids)])
    found = manager.queue(queue)
    assert (found["available"], found["duplicates"]) == (6, 4)
    receiver = connect().receiver(queue)
    came = []
    for _ in range(6):
        one = receiver.next()
        came.append(one.message.body)
        one.settle(Delivery.ACCEPTED)
    assert came == ["0", "1", "2", "3", "4", "again 3"]
    # What was accepted is remembered.
    again.send(Message("later", id="2", durable=True))
    assert manager.queue(queue)["duplicates"] == 5


def test_a_kill_forgets_nothing(start_broker: StartBroker, connect: Connect) -> None:
    """What was accepted before the kill is known after it, also from a snapshot; what was not accepted comes once."""
    broker = start_broker()
    manager = Manager(connect(broker.url))
    manager.ask("CREATE", "q", {"dedup_window_ms": 600_000})
    messages = [Message(str(number), id=f"m-{number}", durable=True) for number in range(100)]
    connect(broker.url).sender("q").send(*messages[:60])
    manager.ask("CREATE", "before", type="org.ambermq.snapshot")
    late = connect(broker.url)
    sender = late.sender("q")
    sender.send(*messages[60:70])
    for one in messages[70:80]:
        sender.put(one)
    late.drop()
    broker.kill()
    broker.start()
    connect(broker.url).sender("q").send(*messages)
    found = Manager(connect(broker.url)).queue("q")
    assert (found["available"], found["duplicates"] >= 70) == (100, True)
    receiver = connect(broker.url).receiver("q", credit=100)
    assert sorted(int(str(one.message.body)) for one in receiver.wait(100)) == list(range(100))
