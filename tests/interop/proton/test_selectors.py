"""Selectors of receivers on queues, with proton."""

import pytest
from proton import Delivery, Described, Message, symbol, ulong
from proton.reactor import Copy, Filter, Selector
from proton.utils import LinkDetached

from tests.interop.conftest import Connect, StartBroker
from tests.interop.proton_peer import ProtonPeer

COLOURS = ("red", "green", "blue")


def coloured(count: int) -> list[Message]:
    """Messages of three colours in turn, numbered."""
    return [Message(number, durable=True, properties={"colour": COLOURS[number % 3]}) for number in range(count)]


def test_each_gets_what_it_selects(peer: ProtonPeer, queue: str) -> None:
    """Each consumer gets what its selector matches, without a wait; one without a selector gets the rest."""
    red = peer.receiver(queue, credit=100, name="red", options=Selector("colour = 'red'"))
    green = peer.receiver(queue, credit=100, name="green", options=Selector("colour = 'green'", name="any"))
    peer.sender(queue).send(*coloured(9))
    assert [got.message.body for got in red.wait(3)] == [0, 3, 6]
    assert [got.message.body for got in green.wait(3)] == [1, 4, 7]
    rest = peer.receiver(queue, name="rest")
    rest.drain(100)
    assert rest.bodies == [2, 5, 8]


def test_deep_in_a_queue(peer: ProtonPeer, queue: str) -> None:
    """The one message behind thousands of others is found, and a drain is answered after it."""
    sender = peer.sender(queue)
    sender.send(*[Message(number) for number in range(3000)], Message("that", properties={"wanted": True}))
    receiver = peer.receiver(queue, options=Selector("wanted"))
    receiver.drain(10)
    assert receiver.bodies == ["that"]


def test_what_is_applied_is_told(peer: ProtonPeer, queue: str) -> None:
    """By the number of JMS too; what is not known is not told, and no-local means nothing on a queue."""
    known = {symbol("jms-selector"): Described(ulong(0x0000468C00000004), "colour = 'red'")}
    others = {
        symbol("no-local"): Described(ulong(0x0000468C00000003), "NoLocalFilter{}"),
        symbol("other"): Described(symbol("other"), "x"),
    }
    receiver = peer.receiver(queue, options=Filter({**known, **others}))
    applied = receiver.link.remote_source.filter
    applied.rewind()
    assert applied.next()
    assert applied.get_dict() == known


def test_selectors_after_a_kill(start_broker: StartBroker, connect: Connect) -> None:
    """What was held counts as redelivered, and is selected by that; the rest is read from the disk."""
    broker = start_broker()
    peer = connect(broker.url)
    peer.sender("q").send(*coloured(300))
    peer.receiver("q", credit=10, options=Selector("colour = 'blue'")).wait(10)
    # An acquisition rides along with the next sync; this makes one.
    peer.sender("other").send("z")
    broker.kill()
    broker.start()
    peer = connect(broker.url)
    again = peer.receiver("q", name="again", options=Selector("JMSRedelivered = TRUE"))
    again.drain(100)
    assert again.bodies == list(range(2, 30, 3))
    fresh = peer.receiver("q", name="fresh", options=Selector("JMSXDeliveryCount = 1 AND colour = 'blue'"))
    fresh.drain(100)
    assert fresh.bodies == list(range(32, 300, 3))


@pytest.mark.parametrize("browses", [False, True])
def test_a_bad_selector_is_refused(peer: ProtonPeer, queue: str, browses: bool) -> None:
    """With the place and what stands there; the connection goes on."""
    options = [Selector("colour IN ('red',)"), *([Copy()] if browses else [])]
    with pytest.raises(LinkDetached, match="amqp:invalid-field") as caught:
        peer.receiver(queue, options=options)
    assert "character 17, " in str(caught.value)
    assert peer.sender(queue).send("x")[0].remote_state == Delivery.ACCEPTED
