"""Cut-through with proton over TCP: a receiver has the beginning of a message whose end its sender has not sent."""

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from proton import Delivery

from ambermq.tools.broker.child_broker import ChildBroker
from tests.interop.conftest import Connect
from tests.interop.proton_peer import Inbox, Manager, ProtonPeer, Receiving
from tests.interop.queues.test_large_messages import MIB, large, put_part

_SECONDS = 60


class Beginnings(Inbox):
    """Keeps what comes of deliveries that are not complete, and which of them are aborted."""

    def __init__(self) -> None:
        super().__init__()
        self.partial_bytes = 0
        """The most bytes that were there of one."""
        self.aborted = 0

    def on_delivery(self, event: Any) -> None:
        delivery = event.delivery
        if delivery.aborted:
            self.aborted += 1
            delivery.settle()
            return
        self.partial_bytes = max(self.partial_bytes, delivery.pending if delivery.partial else 0)
        super().on_delivery(event)


def receiver_of(peer: ProtonPeer, queue: str) -> tuple[Receiving, Beginnings]:
    """Attach a receiver with one credit."""
    inbox = Beginnings()
    return Receiving(peer, peer.blocking.create_receiver(queue, credit=1, handler=inbox), inbox), inbox


def until(condition: Callable[[], bool], *peers: ProtonPeer) -> None:
    """Move the bytes of all peers until a condition holds."""
    deadline = time.monotonic() + _SECONDS
    while not condition():
        assert time.monotonic() < deadline
        for peer in peers:
            container = peer.blocking.container
            before, container.timeout = container.timeout, 0.02
            container.process()
            container.timeout = before


def declare(peer: ProtonPeer, queue: str) -> Manager:
    """Return a manager of a queue with cut-through."""
    manager = Manager(peer)
    manager.ask("CREATE", queue, {"cut_through": True})
    return manager


def test_the_beginning_is_received_before_the_end_is_sent(connect: Connect, queue: str) -> None:
    """The message is on its queue when it is complete, and its acceptance ends it there."""
    peer, other = connect(), connect()
    manager, sending = declare(connect(), queue), peer.sender(queue)
    receiver, inbox = receiver_of(other, queue)
    body = large(1, 5 * MIB)
    delivery = sending.link.delivery("large")
    put_part(peer, sending.link, body[: 3 * MIB])
    until(lambda: inbox.partial_bytes >= 2 * MIB, peer, other)
    assert manager.queue(queue)["available"] == 0
    put_part(peer, sending.link, body[3 * MIB :])
    sending.link.advance()
    peer.wait(lambda: delivery.settled, "its outcome")
    got = receiver.next()
    assert got.data == body
    got.settle(Delivery.ACCEPTED)
    until(lambda: manager.queue(queue)["accepted"] == 1, other)
    assert manager.queue(queue)["available"] == 0


def test_an_abort_of_the_sender_aborts_the_delivery(connect: Connect, queue: str) -> None:
    """And so does the end of its connection. Nothing is on the queue; the next message comes."""
    other = connect()
    manager = declare(connect(), queue)
    receiver, inbox = receiver_of(other, queue)
    for number, peer in enumerate((connect(), connect())):
        sending = peer.sender(queue)
        delivery = sending.link.delivery("large")
        put_part(peer, sending.link, large(number, 3 * MIB))
        until(lambda: inbox.partial_bytes > 0, peer, other)
        if number:
            peer.drop()
        else:
            delivery.abort()
        until(lambda: inbox.aborted == number + 1, *([] if number else [peer]), other)  # noqa: B023 - called at once
        inbox.partial_bytes = 0
        receiver.link.flow(1)
        assert manager.queue(queue)["available"] == 0
    connect().sender(queue).send("after")
    assert receiver.next().message.body == "after"


def test_a_kill_in_the_middle_leaves_nothing(tmp_path: Path) -> None:
    """Of the message that a receiver has had the beginning of."""
    broker = ChildBroker(tmp_path / "data")
    broker.start()
    try:
        peer, other = ProtonPeer(broker.url), ProtonPeer(broker.url)
        declare(ProtonPeer(broker.url), "q")
        sending = peer.sender("q")
        _, inbox = receiver_of(other, "q")
        sending.link.delivery("cut")
        put_part(peer, sending.link, large(5, 3 * MIB))
        until(lambda: inbox.partial_bytes > 0, peer, other)
        broker.kill()
        broker.start()
        again = ProtonPeer(broker.url)
        again.sender("q").send("after")
        receiver = again.receiver("q")
        assert receiver.next().message.body == "after"
        receiver.drain(1)
        assert not receiver.got
        again.drop()
    finally:
        broker.kill()


def test_the_commands_pass_a_file_through_a_queue(
    broker: ChildBroker, connect: Connect, queue: str, tmp_path: Path
) -> None:
    """`receive --to-file` writes while `send --file` reads, and neither knows of cut-through."""
    manager = declare(connect(), queue)
    source, copy = tmp_path / "source", tmp_path / "copy"
    source.write_bytes(large(6, 6 * MIB))
    command = [sys.executable, "-m", "ambermq"]
    arguments = ["receive", queue, "--to-file", str(copy), "--url", broker.url, "--timeout", str(_SECONDS)]
    with subprocess.Popen([*command, *arguments]) as receiving:
        deadline = time.monotonic() + _SECONDS
        while not manager.queue(queue)["consumers"] and time.monotonic() < deadline:
            time.sleep(0.01)
        subprocess.run(
            [*command, "send", queue, "--file", str(source), "--url", broker.url], check=True, timeout=_SECONDS
        )
        assert receiving.wait(_SECONDS) == 0
    assert copy.read_bytes() == source.read_bytes()
    figures = manager.ask("READ", "broker", type="org.ambermq.broker").body
    assert figures["messages_cut_through"] > 0
