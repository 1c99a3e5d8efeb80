"""The overflow policy `block` with proton over TCP: producers get no credit until the queue has room again."""

from typing import Final

import pytest
from proton import Delivery, Message

from ambermq.protocol.amqp10.performatives.classes import Flow
from ambermq.protocol.amqp10.types.values import Symbol
from tests.interop.conftest import Connect, StartBroker
from tests.interop.proton_peer import Manager, ProtonPeer, Sending
from tests.protocol.tcp import TcpWire

_CREDIT: Final = 10
_CONFIG: Final = f"[server]\ncredit_max = {_CREDIT}\ncredit_grown_max = 0\n"
_BLOCKED: Final = Symbol("ambermq:blocked")
_COUNT: Final = 20


def _fill(peer: ProtonPeer, sender: Sending) -> int:
    """Send until there is no credit, and no more comes; return the number of messages, which are all accepted."""
    count = 0
    while sender.link.credit > 0:
        (delivery,) = sender.send(Message(str(count), durable=True))
        assert delivery.remote_state == Delivery.ACCEPTED
        count += 1
    with pytest.raises(Exception, match="credit"):
        peer.blocking.wait(lambda: sender.link.credit > 0, timeout=0.5, msg="credit")
    return count


def test_a_producer_waits_for_room(start_broker: StartBroker, connect: Connect) -> None:
    """No message is refused. After a kill the queue still holds producers back, until a consumer takes messages."""
    broker = start_broker(config=_CONFIG)
    manager = Manager(connect(broker.url))
    manager.ask("CREATE", "q", {"overflow": "block", "messages_max": _COUNT})
    peer = connect(broker.url)
    sender = peer.sender("q")
    count = _fill(peer, sender)
    assert _COUNT <= count <= _COUNT + _CREDIT
    assert manager.queue("q")["available"] == count
    broker.kill()
    broker.start()
    with TcpWire.begun(broker.url) as wire:
        wire.attach("q", role=False, name="late")
        told = wire.expect(Flow)
        while not told.properties:
            assert not told.link_credit
            told = wire.expect(Flow)
        assert (told.properties, told.link_credit or 0) == ({_BLOCKED: Symbol("queue-full")}, 0)
        receiver = connect(broker.url).receiver("q", credit=count)
        got = receiver.wait(count)
        for each in got:
            each.settle(Delivery.ACCEPTED)
        assert [each.message.body for each in got] == [str(number) for number in range(count)]
        while not (told := wire.expect(Flow)).link_credit:
            assert told.properties == {_BLOCKED: None}
        assert told.link_credit == _CREDIT
    connect(broker.url).sender("q").send("again")


def test_others_go_on(start_broker: StartBroker, connect: Connect) -> None:
    """Links to other queues have credit; the anonymous terminus rejects; a higher maximum ends the wait."""
    broker = start_broker(config=_CONFIG)
    manager, peer = Manager(connect(broker.url)), connect(broker.url)
    manager.ask("CREATE", "q", {"overflow": "block", "messages_max": 1})
    sender = peer.sender("q")
    _fill(peer, sender)
    peer.sender("other").send("one")
    (refused,) = peer.sender(None).send(Message("two", address="q", durable=True))
    assert refused.remote_state == Delivery.REJECTED
    (refused,) = peer.sender("/muxers/QUEUE/q").send("two")
    assert refused.remote_state == Delivery.REJECTED
    manager.ask("UPDATE", "q", {"messages_max": 100})
    sender.send("three")
