"""What all behaviours do with proton: connections of a name, texts sent, and what is left of a queue."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from proton import Delivery, Message
from proton.reactor import Container

from tests.interop.proton_peer import ProtonPeer, Receiving

__all__ = ["check", "coloured", "connected", "drained", "left", "send"]


@contextmanager
def connected(url: str, container: str = "") -> Iterator[ProtonPeer]:
    """Connect, as a container of that name; close in the end."""
    made = Container()
    if container:
        made.container_id = container
    peer = ProtonPeer(url, container=made)
    try:
        yield peer
    finally:
        peer.blocking.close()


def send(peer: ProtonPeer, address: str | None, *bodies: Message | str) -> None:
    """Send on a link of its own; each message must be accepted."""
    sender = peer.sender(address, name=str(uuid4()))
    for delivery in sender.send(*bodies):
        check(Delivery.ACCEPTED, delivery.remote_state, "outcome")
    sender.link.close()


def coloured(text: str, colour: str) -> Message:
    """Return a durable message of a colour, for selectors."""
    return Message(text, durable=True, properties={"colour": colour})


def drained(receiver: Receiving, credit: int = 100) -> list[Any]:
    """Grant credit, drain it, accept the messages and return them."""
    receiver.drain(credit)
    bodies = receiver.bodies
    for got in receiver.got:
        got.settle(Delivery.ACCEPTED)
    receiver.got.clear()
    return bodies


def left(url: str, address: str) -> list[Any]:
    """Receive the messages of a queue on a connection of its own."""
    with connected(url) as peer:
        return drained(peer.receiver(address))


def check(expected: object, found: object, what: str) -> None:
    """Hold two values to be the same."""
    if expected != found:
        raise AssertionError(f"{what}: expected {expected!r}, found {found!r}")
