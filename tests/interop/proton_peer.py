"""Qpid Proton as a peer: its blocking connection, its links, and the bytes of what it receives."""

import itertools
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import proton
from proton import Delivery, Message
from proton.utils import BlockingConnection, BlockingReceiver, SyncRequestResponse

__all__ = ["Got", "Inbox", "Manager", "ProtonPeer"]

_TIMEOUT = 60.0


class Got(NamedTuple):
    """One delivery that came."""

    data: bytes
    delivery: Any

    @property
    def message(self) -> Message:
        """What it says."""
        message = Message()
        message.decode(self.data)
        return message

    @property
    def delivery_count(self) -> int:
        """How often it was delivered before."""
        return int(self.message.delivery_count)

    def settle(self, outcome: int | None = None, **modified: Any) -> None:
        """Settle it, with an outcome."""
        local = self.delivery.local
        for name, value in modified.items():
            setattr(local, name, value)
        if outcome is not None:
            self.delivery.update(outcome)
        self.delivery.settle()


class Inbox(proton.Handler):
    """Keeps what comes on a link, as bytes, and settles nothing."""

    def __init__(self) -> None:
        self.got: list[Got] = []

    def on_delivery(self, event: Any) -> None:
        delivery = event.delivery
        link = event.receiver
        if link is not None and link.is_receiver and delivery.readable and not delivery.partial:
            data = link.recv(delivery.pending) or b""
            link.advance()
            self.got.append(Got(data, delivery))


class Sending:
    """A link on which proton sends."""

    def __init__(self, peer: "ProtonPeer", link: Any) -> None:
        self.peer = peer
        self.link = link
        self._tags = itertools.count()

    def put(self, message: Message | bytes, *, settled: bool = False) -> Delivery:
        """Send a message, or the bytes of one, when there is credit; wait for nothing else."""
        self.peer.wait(lambda: self.link.credit > 0, "credit")
        delivery = self.link.delivery(str(next(self._tags)))
        self.link.stream(message if isinstance(message, bytes) else message.encode())
        if settled:
            delivery.settle()
        self.link.advance()
        return delivery

    def send(self, *bodies: Message | bytes | str) -> list[Delivery]:
        """Send messages, and wait for their outcomes; a text becomes a durable message's body."""
        deliveries = [self.put(Message(body, durable=True) if isinstance(body, str) else body) for body in bodies]
        self.peer.wait(lambda: all(delivery.settled for delivery in deliveries), "outcomes")
        return deliveries


class Receiving:
    """A link on which proton receives."""

    def __init__(self, peer: "ProtonPeer", blocking: BlockingReceiver, inbox: Inbox) -> None:
        self.peer = peer
        self.link = blocking.link
        # Its end takes the handler off the link.
        self._blocking = blocking
        self.inbox = inbox

    @property
    def got(self) -> list[Got]:
        """What has come and was not taken."""
        return self.inbox.got

    @property
    def bodies(self) -> list[object]:
        """The bodies of what has come."""
        return [got.message.body for got in self.got]

    def wait(self, count: int) -> list[Got]:
        """Wait until `count` deliveries are here, and take them."""
        self.peer.wait(lambda: len(self.got) >= count, f"{count} deliveries on {self.link.name}")
        taken, self.inbox.got[:] = self.inbox.got[:count], self.inbox.got[count:]
        return taken

    def next(self) -> Got:
        """Return the next delivery; grants a credit for it where none is left."""
        if not self.got and self.link.credit <= 0:
            self.link.flow(1)
        return self.wait(1)[0]

    def drain(self, credit: int) -> None:
        """Grant credit, and wait until all of it is used or given back."""
        self.link.drain(credit)
        self.peer.wait(lambda: not self.link.draining(), "the end of the drain")

    def close(self) -> None:
        """Detach for good."""
        self.link.close()
        self.peer.wait(lambda: self.link.state & proton.Endpoint.REMOTE_CLOSED, "the answer to the detach")


class ProtonPeer:
    """A connection of proton's."""

    def __init__(self, url: str, **options: Any) -> None:
        self.blocking = BlockingConnection(url, timeout=_TIMEOUT, **{"allowed_mechs": "ANONYMOUS", **options})
        self._names = itertools.count()

    @property
    def connection(self) -> Any:
        """Proton's own connection."""
        return self.blocking.conn

    def wait(self, condition: Callable[[], Any], what: str) -> None:
        """Run until a condition holds."""
        self.blocking.wait(condition, msg=what)

    def sender(self, address: str | None, **options: Any) -> Sending:
        """Attach a link to send on."""
        return Sending(self, self.blocking.create_sender(address, **options).link)

    def receiver(self, address: str | None, *, credit: int = 0, **options: Any) -> Receiving:
        """Attach a link to receive on."""
        inbox = Inbox()
        blocking = self.blocking.create_receiver(address, credit=credit, handler=inbox, **options)
        return Receiving(self, blocking, inbox)

    def drop(self) -> None:
        """Hang up without a word, as a client that dies."""
        connection = self.blocking.conn
        selectable = connection and connection.transport and connection.transport._selectable
        if selectable and selectable.fileno() >= 0:
            with suppress(OSError):
                selectable._delegate.shutdown(socket.SHUT_RDWR)


class Manager:
    """Questions to `$management`, by proton's own request and response."""

    def __init__(self, peer: ProtonPeer) -> None:
        self._requests = SyncRequestResponse(peer.blocking, "$management")

    def ask(self, operation: str, name: str | None = None, body: object = None, **properties: object) -> Message:
        """Return the answer to a request about queues."""
        asked = {"operation": operation, "type": "org.ambermq.queue", **properties}
        if name is not None:
            asked["name"] = name
        return self._requests.call(Message(body, properties=asked))

    def queue(self, name: str) -> dict[str, Any]:
        """Return a queue's attributes."""
        body = self.ask("READ", name).body
        assert isinstance(body, dict)
        return body
