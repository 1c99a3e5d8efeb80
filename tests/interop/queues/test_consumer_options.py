"""Options of consumers with proton: the only one, the active one, a rate."""

import re
import time
from typing import Any

import pytest
from proton import Transport, symbol
from proton.reactor import LinkOption
from proton.utils import LinkDetached

from tests.interop.conftest import Connect
from tests.interop.proton_peer import Manager, ProtonPeer


class Properties(LinkOption):
    """Properties of an attach."""

    def __init__(self, **properties: object) -> None:
        self._properties = {symbol(f"ambermq:{name}"): value for name, value in properties.items()}

    def apply(self, link: Any) -> None:
        link.properties = self._properties


EXCLUSIVE = Properties(exclusive=True)


def until_unused(manager: Manager, name: str) -> None:
    """Wait until a queue has no consumer: the broker learns a moment later that a client has died."""
    begin_s = time.monotonic()
    while manager.queue(name)["consumers"]:
        assert time.monotonic() - begin_s < 20
        time.sleep(0.02)


def test_the_only_consumer(connect: Connect, queue: str) -> None:
    """It is refused where another one is; others are refused while it is there, browsers are not."""
    first, second = connect(), connect()
    other = first.receiver(queue)
    with pytest.raises(LinkDetached, match="amqp:resource-locked"):
        second.receiver(queue, options=EXCLUSIVE)
    other.close()
    only = second.receiver(queue, options=EXCLUSIVE, credit=1)
    for options in (None, EXCLUSIVE):
        with pytest.raises(LinkDetached, match="amqp:resource-locked"):
            connect().receiver(queue, options=options)
    connect().sender(queue).send("one")
    assert only.next().message.body == "one"
    second.drop()
    until_unused(Manager(connect()), queue)
    first.receiver(queue, name="later")


class Frames:
    """What the broker says on a connection: proton's own trace, since it has no other access to a flow's properties."""

    def __init__(self, peer: ProtonPeer) -> None:
        self.lines: list[str] = []
        transport = peer.connection.transport
        transport.tracer = lambda _transport, line: self.lines.append(line)
        transport.trace(Transport.TRACE_FRM)

    def active(self) -> list[str]:
        """Return what the flows of the broker said of the active consumer."""
        found = (re.search(r"<- @flow.*ambermq:active\\?\"?=(\w+)", line) for line in self.lines)
        return [one[1] for one in found if one]


def test_the_active_consumer_is_told(connect: Connect, queue: str) -> None:
    """Each one at its attach, and the next one when the first one goes, before its first message."""
    manager = Manager(connect())
    manager.ask("CREATE", queue, {"exclusive": True})
    peers = [connect() for _ in range(2)]
    frames = [Frames(peer) for peer in peers]
    first, second = (peer.receiver(queue, credit=2) for peer in peers)
    peers[0].wait(frames[0].active, "the flow")
    peers[1].wait(frames[1].active, "the flow")
    assert [one.active() for one in frames] == [["true"], ["false"]]
    connect().sender(queue).send("one", "two")
    first.wait(2)
    peers[0].drop()
    assert [got.message.body for got in second.wait(2)] == ["one", "two"]
    assert frames[1].active() == ["false", "true"]
    kinds = [line for line in frames[1].lines if "<- @transfer" in line or "ambermq:active" in line]
    assert "@flow" in kinds[1]
    assert "@transfer" in kinds[2]
    manager.ask("UPDATE", queue, {"exclusive": False})
    peers[1].wait(lambda: len(frames[1].active()) == 3, "the flow")
    assert frames[1].active()[-1] == "false"


def test_a_rate(connect: Connect, queue: str) -> None:
    """A consumer gets so many messages a second; another one gets what is left, and a drain is answered."""
    connect().sender(queue).send(*[str(number) for number in range(60)])
    slow_peer, fast_peer = connect(), connect()
    slow = slow_peer.receiver(queue, options=Properties(rate=20), credit=30)
    begin_s = time.monotonic()
    slow.wait(21)
    taken_s = time.monotonic() - begin_s
    assert 0.9 < taken_s < 3
    fast = fast_peer.receiver(queue, credit=25)
    fast.wait(25)
    slow.wait(9)
    slow.drain(10)
    assert len(slow.got) < 5


@pytest.mark.parametrize("rate", [0, -1, "1", True])
def test_no_rate(peer: ProtonPeer, queue: str, rate: object) -> None:
    """Another value refuses the attach."""
    with pytest.raises(LinkDetached, match="ambermq:rate of a receiver is a number of messages a second"):
        peer.receiver(queue, options=Properties(rate=rate))
