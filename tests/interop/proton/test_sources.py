"""Sources that take nothing, with proton: browsing now and in the past, and the events of the log."""

import time
from typing import Any

import pytest
from proton import Described, Message, symbol, timestamp, ulong
from proton.handlers import MessagingHandler
from proton.reactor import Container, Copy, Filter
from proton.utils import LinkDetached

from tests.interop.conftest import Connect, StartBroker
from tests.interop.proton_peer import Manager, ProtonPeer, Receiving

AT = symbol("ambermq:at")
ALL = 100_000


def at(moment: ulong | timestamp) -> Filter:
    """The filter for a moment."""
    return Filter({AT: Described(AT, moment)})


def browser(peer: ProtonPeer, address: str, *options: Any) -> Receiving:
    """Attach a link to browse."""
    return peer.receiver(address, options=[Copy(), *options])


def browse(peer: ProtonPeer, address: str, *options: Any) -> list[Any]:
    """Everything that a source shows, until the drain is answered; the bodies."""
    receiver = browser(peer, address, *options)
    receiver.drain(ALL)
    found = list(receiver.bodies)
    receiver.close()
    return found


def events(peer: ProtonPeer, *options: Any) -> list[Message]:
    """The events of the log, until the drain is answered."""
    receiver = peer.receiver("/log", options=list(options))
    receiver.drain(ALL)
    found = [got.message for got in receiver.got]
    receiver.close()
    return found


def last_offset(peer: ProtonPeer) -> int:
    """The offset of the last record that is durable."""
    last = events(peer, at(ulong(0)))[-1]
    assert last.properties is not None
    return int(last.properties["next"]) - 1


def refused(peer: ProtonPeer, address: str, *options: Any) -> str:
    """The condition that a link is refused with."""
    with pytest.raises(LinkDetached) as caught:
        browser(peer, address, *options)
    return str(caught.value.condition)


def test_browsing_takes_nothing(peer: ProtonPeer, queue: str) -> None:
    """Twice the same messages, in order; then a consumer gets all of them, never delivered before."""
    peer.sender(queue).send("a", "b", "c")
    assert browse(peer, f"/queues/{queue}") == ["a", "b", "c"]
    assert browse(peer, queue) == ["a", "b", "c"]
    attributes = Manager(peer).queue(queue)
    assert (attributes["available"], attributes["delivered"], attributes["acquired"]) == (3, 0, 0)
    consumer = peer.receiver(queue)
    consumer.drain(10)
    assert [(got.message.body, got.delivery_count) for got in consumer.got] == [("a", 0), ("b", 0), ("c", 0)]


def test_many_messages_are_browsed_beside_a_consumer(peer: ProtonPeer, queue: str) -> None:
    """3,000 messages come in order, although they are taken by another link meanwhile."""
    bodies = [f"{number}" for number in range(3000)]
    peer.sender(queue).send(*bodies)
    receiver = browser(peer, queue)
    consumer = peer.receiver(queue, credit=1000, name="consumer")
    receiver.link.flow(10)
    receiver.wait(10)
    consumer.wait(1000)
    receiver.drain(ALL)
    assert receiver.bodies == bodies[10:]


def test_a_queue_as_it_was(peer: ProtonPeer, queue: str) -> None:
    """At an offset and at a time that lie before a purge: the messages of then; the applied filter is echoed."""
    sender = peer.sender(queue)
    sender.send("a", "b")
    offset = last_offset(peer)
    time.sleep(0.005)
    moment = timestamp(int(time.time() * 1000))
    time.sleep(0.005)
    Manager(peer).ask("PURGE", queue)
    sender.send("c")
    for when in (ulong(offset), moment):
        assert browse(peer, f"/queues/{queue}", at(when)) == ["a", "b"]
    receiver = browser(peer, queue, at(ulong(offset)))
    applied = receiver.link.remote_source.filter
    applied.next()
    assert applied.get_object() == {AT: Described(AT, ulong(offset))}
    assert browse(peer, queue) == ["c"]


def test_an_event_driven_client_browses(peer: ProtonPeer, queue: str) -> None:
    """A Container ends its browsing by the flow that answers its drain."""
    peer.sender(queue).send("a", "b")

    class Browser(MessagingHandler):
        def __init__(self) -> None:
            super().__init__(prefetch=0)
            self.bodies: list[object] = []

        def on_start(self, event: Any) -> None:
            connection = event.container.connect(str(peer.blocking.url))
            event.container.create_receiver(connection, f"/queues/{queue}", options=[Copy()]).drain(10)

        def on_message(self, event: Any) -> None:
            self.bodies.append(event.message.body)

        def on_link_flow(self, event: Any) -> None:
            if event.link.is_receiver and not event.link.draining():
                event.connection.close()

    handler = Browser()
    Container(handler).run()
    assert handler.bodies == ["a", "b"]


@pytest.mark.parametrize("moment", [ulong(1 << 40), timestamp(1 << 42)])
@pytest.mark.parametrize("address", ["", "/log"])
def test_the_future_is_refused(peer: ProtonPeer, queue: str, address: str, moment: ulong | timestamp) -> None:
    """The link alone, with amqp:precondition-failed."""
    peer.sender(queue).send("a")
    assert refused(peer, address or queue, at(moment)) == "amqp:precondition-failed"
    assert browse(peer, queue) == ["a"]


def test_a_queue_that_is_not_there_is_refused(peer: ProtonPeer, queue: str) -> None:
    """Now and in the past amqp:not-found; it is not created."""
    peer.sender("something").send("a")
    assert refused(peer, queue) == "amqp:not-found"
    assert refused(peer, queue, at(ulong(last_offset(peer)))) == "amqp:not-found"
    assert refused(peer, "/queues/none") == "amqp:not-found"


def test_events_from_the_beginning_then_live(peer: ProtonPeer, queue: str) -> None:
    """From offset 0 to the durable end, then each event as it happens: who published what, and what became of it."""
    receiver = peer.receiver("/log", options=[at(ulong(0))])
    receiver.drain(ALL)
    offsets = [got.message.id for got in receiver.got]
    assert offsets == sorted(set(offsets))
    assert receiver.got[0].message.subject == "started"
    receiver.got.clear()
    receiver.link.flow(100)
    peer.sender(queue).send("a")
    peer.wait(lambda: any(got.message.subject == "published" for got in receiver.got), "the event")
    (published,) = [got.message for got in receiver.got if got.message.subject == "published"]
    assert published.properties is not None
    assert (published.properties["queue"], published.properties["count"]) == (queue, 1)
    assert published.properties["offset"] == published.id
    assert isinstance(published.body, dict)
    assert published.body["queues"] == [queue]
    assert browse(peer, queue, at(ulong(published.id))) == ["a"]
    taken = peer.receiver(queue, credit=1, name="consumer").wait(1)[0]
    taken.settle(taken.delivery.ACCEPTED)
    peer.wait(lambda: any(got.message.subject == "settled" for got in receiver.got), "the event")
    assert [got.message.properties["outcome"] for got in receiver.got if got.message.subject == "settled"] == [
        "accepted"
    ]


def test_only_permitted_users_read_the_log(start_broker: StartBroker, connect: Connect) -> None:
    """With users only those whom [permissions] names; queues are open to all of them."""
    broker = start_broker(
        "--user",
        "alice:a",
        "--user",
        "bob:b",
        config='[permissions]\nlog = ["alice"]\n',
    )
    host = broker.url.removeprefix("amqp://")
    alice, bob = (
        connect(f"amqp://{name}:{name[0]}@{host}", allowed_mechs="PLAIN", allow_insecure_mechs=True)
        for name in ("alice", "bob")
    )
    bob.sender("q").send("x")
    assert refused(bob, "/log") == "amqp:unauthorized-access"
    assert browse(bob, "q") == ["x"]
    assert "published" in [event.subject for event in events(alice, at(ulong(0)))]


def test_the_past_of_an_earlier_life(start_broker: StartBroker, connect: Connect) -> None:
    """After a restart the moments before it can be browsed, and the log is told from its beginning."""
    broker = start_broker()
    peer = connect(broker.url)
    peer.sender("q").send("a", "b")
    offset = last_offset(peer)
    Manager(peer).ask("PURGE", "q")
    broker.kill()
    broker.start()
    again = connect(broker.url)
    assert browse(again, "q", at(ulong(offset))) == ["a", "b"]
    assert [event.subject for event in events(again, at(ulong(0)))].count("started") == 2
