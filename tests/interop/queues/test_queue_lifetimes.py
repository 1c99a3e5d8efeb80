"""Queues that end by themselves, with proton: with their last consumer, without use, or with the broker."""

import time

from proton import Delivery, Endpoint
from proton.reactor import Copy

from tests.interop.conftest import Connect, StartBroker
from tests.interop.proton_peer import Manager

EXPIRES_S = 1.0


def names(manager: Manager) -> list[str]:
    """Return the names of the queues: a listing, which is no use of a queue."""
    body = manager.ask("QUERY", None, {"attributeNames": ["name"]}, entityType="org.ambermq.queue").body
    return [name for (name,) in body["results"]]


def until_gone(manager: Manager, name: str) -> float:
    """Return the seconds until a queue is gone."""
    begin_s = time.monotonic()
    while name in names(manager):
        assert time.monotonic() - begin_s < 60
        time.sleep(0.02)
    return time.monotonic() - begin_s


def test_a_queue_ends_with_its_last_consumer(connect: Connect, queue: str) -> None:
    """By a detach or a lost connection, with its messages; a sender to it stays, and its messages are unroutable."""
    manager, consumers = Manager(connect()), [connect(), connect()]
    assert int(manager.ask("CREATE", queue, {"auto_delete": True}).properties["statusCode"]) == 201
    producer = connect()
    sender = producer.sender(queue)
    sender.send("one", "two", "three")
    first, second = (peer.receiver(queue, credit=1) for peer in consumers)
    first.wait(1)
    second.wait(1)
    first.close()
    assert queue in names(manager)
    consumers[1].drop()
    until_gone(manager, queue)
    assert sender.link.state & Endpoint.REMOTE_ACTIVE
    (delivery,) = sender.send("four")
    assert int(delivery.remote_state) == int(Delivery.RELEASED)
    assert queue not in names(manager)


def test_a_queue_without_use_ends(connect: Connect, queue: str) -> None:
    """Links keep it, also a browser; then it ends after its time."""
    manager = Manager(connect())
    manager.ask("CREATE", queue, {"expires_ms": int(1000 * EXPIRES_S)})
    sending, receiving, browsing = connect(), connect(), connect()
    sending.sender(queue).send("one")
    receiving.receiver(queue)
    browsing.receiver(queue, options=Copy())
    for peer in (sending, receiving, browsing):
        time.sleep(1.2 * EXPIRES_S)
        assert queue in names(manager)
        peer.blocking.close()
    assert until_gone(manager, queue) > 0.5 * EXPIRES_S


def test_a_read_is_a_use(connect: Connect, queue: str) -> None:
    """A listing is none."""
    manager = Manager(connect())
    manager.ask("CREATE", queue, {"expires_ms": int(1000 * EXPIRES_S)})
    for _ in range(4):
        time.sleep(0.5 * EXPIRES_S)
        assert manager.queue(queue)["expires_ms"] == 1000
    assert until_gone(manager, queue) > 0.5 * EXPIRES_S


def test_a_queue_that_is_not_durable_ends_with_the_broker(start_broker: StartBroker, connect: Connect) -> None:
    """A kill ends it and its messages; the one beside it stays. Its name is free."""
    broker = start_broker()
    manager = Manager(connect(broker.url))
    assert int(manager.ask("CREATE", "run", {"durable": False}).properties["statusCode"]) == 201
    assert manager.queue("run")["durable"] is False
    assert int(manager.ask("UPDATE", "run", {"durable": True}).properties["statusCode"]) == 409
    peer = connect(broker.url)
    peer.sender("run").send("of this run")
    peer.sender("kept").send("of every run")
    broker.kill()
    broker.start()
    manager = Manager(connect(broker.url))
    assert names(manager) == ["kept"]
    assert int(manager.ask("CREATE", "run", {"durable": False}).properties["statusCode"]) == 201
    assert manager.queue("run")["available"] == 0
    assert connect(broker.url).receiver("kept", credit=1).next().message.body == "of every run"
