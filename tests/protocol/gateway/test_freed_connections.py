"""A connection whose transport has ended frees everything at once, without the cyclic garbage collector."""

import gc
from collections import Counter
from typing import Final

import pytest

from ambermq.protocol.amqp10.connection.connection import Connection
from ambermq.protocol.amqp10.link.partial_delivery import PartialDelivery
from ambermq.protocol.amqp10.link.receiver import Receiver
from ambermq.protocol.amqp10.link.sender import Sender
from ambermq.protocol.amqp10.performatives.classes import Attach, Source, Target, Transfer
from ambermq.protocol.amqp10.session.session import Session
from ambermq.protocol.gateway.connection_gateway import ConnectionGateway
from ambermq.protocol.gateway.consumers.consumer_link import ConsumerLink
from ambermq.protocol.gateway.nodes.management_node import ManagementNode
from ambermq.protocol.gateway.producers.producer_link import ProducerLink
from tests.protocol.gateway.test_link_stealing import pair
from tests.protocol.peers import Wire
from tests.protocol.watching import Watching

PARTS: Final = (
    *(Connection, ConnectionGateway, Session, Sender, Receiver, PartialDelivery),
    *(ConsumerLink, ProducerLink, ManagementNode),
)
FRAME: Final = bytes(60_000)


def living() -> Counter[str]:
    """Return how many objects of each class exist."""
    return Counter(type(each).__name__ for each in gc.get_objects() if type(each) in PARTS)


def attach_all(peer: Watching) -> None:
    """Attach a link of each kind, begin a delivery and a frame, and take messages."""
    peer.rig.do(peer.rig.publish(peer.rig.producer(), *[b"\x00\x53\x77\xa1\x01x"] * 5))
    peer.say(
        Attach(name="r", handle=0, role=True, source=Source(address="q")),
        Attach(name="b", handle=1, role=True, source=Source(address="q", distribution_mode="copy")),
        Attach(name="s", handle=2, role=False, target=Target(address="q"), initial_delivery_count=0),
        Attach(name="m", handle=3, role=False, target=Target(address="$management"), initial_delivery_count=0),
        Attach(name="a", handle=4, role=True, source=Source(address="$management"), target=Target(address="me")),
    )
    peer.flow(2, handle=0)
    peer.flow(2, handle=1)
    partial = Transfer(handle=2, delivery_id=0, delivery_tag=b"t", more=True)
    peer.give(Wire.frame(partial, FRAME))
    peer.give(Wire.frame(partial, FRAME)[:-1])


@pytest.mark.parametrize("is_closed", [False, True])
def test_everything_is_freed_with_the_transport(*, is_closed: bool) -> None:
    """Whether the connection was lost, or had closed before: no object of it is left."""
    one, two = pair("me", "you")
    gc.collect()
    gc.disable()
    try:
        before = living()
        attach_all(two)
        assert (living() - before)["PartialDelivery"] == 1
        if is_closed:
            two.peer.connection.close()
            two.settle()
        two.peer.release()
        two.settle()
        one.gateway.touched.clear()
        del two
        after = living()
    finally:
        gc.enable()
    assert after == before - Counter(Connection=1, ConnectionGateway=1, Session=1)
    assert list(one.gateway.peers) == [one.peer]


def test_effects_may_follow() -> None:
    """Effects that were on their way when the transport ended change nothing, and are no mistakes."""
    _, two = pair("me", "you")
    attach_all(two)
    two.rig.do(two.rig.publish(two.rig.producer(), *[b"\x00\x53\x77\xa1\x01y"] * 5))
    command = Wire.frame(Transfer(handle=3, delivery_id=1, delivery_tag=b"t"), b"\x00\x53\x77\xa1\x01x")
    two.peer.connection.receive(command, 0)
    two.peer.handle_events()
    two.peer.release()
    two.settle()
    assert two.rig.queue().available == 10
    assert two.peer.connection.poll(1_000_000) is None
