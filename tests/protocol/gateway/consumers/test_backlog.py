"""A link on which a peer receives: what it is sent, and what goes back to the queue."""

import pytest

from ambermq.engine.effects import Deliver
from ambermq.protocol.amqp10.performatives.base import Composite
from ambermq.protocol.amqp10.performatives.classes import Close, Detach, End, Flow
from tests.engine.rig import Rig
from tests.protocol.peers import FIRST_ID, Wire
from tests.protocol.watching import Watching, bodies

_MESSAGES = [b"\x00\x53\x77\xa1\x01%d" % number for number in range(6)]
_LATE = b"\x00\x53\x77\xa1\x01x"


def receiver(*, window: int = 1000) -> Watching:
    """A peer with a link at the queue `q`, which holds messages."""
    rig = Rig()
    rig.do(rig.publish(rig.producer(), *_MESSAGES))
    peer = Watching(rig, window=window)
    peer.attach("q", mode=None)
    return peer


def test_a_paused_peer_gets_no_deliveries() -> None:
    """Neither for the credit that it has, nor for credit or messages that come meanwhile; all when it reads again."""
    peer = receiver()
    assert bodies(peer.flow(2)) == _MESSAGES[:2]
    peer.peer.pause()
    assert bodies(peer.flow(2, count=2)) == []
    queue = peer.rig.queue()
    assert (queue.acquired_count, queue.available) == (2, 4)
    assert [each for each in peer.rig.do(peer.rig.publish(peer.rig.producer(), _LATE)) if type(each) is Deliver] == []
    assert bodies(peer.settle()) == []
    assert peer.rig.queue().acquired_count == 2
    peer.peer.resume()
    assert bodies(peer.settle()) == _MESSAGES[2:4]


def test_a_pause_takes_back_the_credit_that_the_engine_has() -> None:
    """A message that comes after the pause waits on its queue."""
    peer = receiver()
    producer = peer.rig.producer()
    assert bodies(peer.flow(20)) == _MESSAGES
    peer.peer.pause()
    assert [effect for effect in peer.rig.do(peer.rig.publish(producer, _LATE)) if type(effect) is Deliver] == []
    assert peer.rig.queue().available == 1
    peer.peer.resume()
    assert bodies(peer.settle()) == [_LATE]


def with_backlog() -> Watching:
    """A peer with two links in a session whose window the first link has used up: the second one has a backlog."""
    rig = Rig()
    for name in ("first", "q"):
        rig.do(rig.publish(rig.producer(name), *_MESSAGES))
    peer = Watching(rig, window=4)
    peer.attach("first", handle=0, mode=None)
    peer.attach("q", handle=1, mode=None)
    flows = [
        Flow(
            next_incoming_id=0,
            incoming_window=4,
            next_outgoing_id=FIRST_ID,
            outgoing_window=1000,
            handle=handle,
            delivery_count=0,
            link_credit=4,
        )
        for handle in (0, 1)
    ]
    assert bodies(peer.give(b"".join(map(Wire.frame, flows)))) == _MESSAGES[:4]
    assert [link.backlog_count for link in peer.peer._links.consumers.values()] == [0, 4]
    assert rig.queue().acquired_count == 4
    return peer


@pytest.mark.parametrize("end", [Detach(handle=1, closed=True), Detach(handle=1), End(), Close()])
def test_a_backlog_goes_back_to_the_queue(end: Composite) -> None:
    """Whichever way the link ends; uncounted, since nothing of it was sent. The next receiver gets it byte for byte."""
    peer = with_backlog()
    peer.say(end)
    queue = peer.rig.queue()
    assert (queue.acquired_count, queue.available) == (0, 6)
    assert not any(entry.count for entry in queue.entries.values())
    other = Watching(peer.rig, container="other", gateway=peer.gateway)
    other.attach("q", mode=None)
    assert bodies(other.flow(10)) == _MESSAGES


def test_a_lost_connection_gives_its_backlog_back() -> None:
    """As a detach does; what was sent on the other link counts as delivered."""
    peer = with_backlog()
    peer.peer.lost()
    peer.settle()
    queue, first = peer.rig.queue(), peer.rig.queue("first")
    assert (queue.available, first.available) == (6, 6)
    assert [sum(entry.count for entry in one.entries.values()) for one in (queue, first)] == [0, 4]


def test_a_backlog_comes_when_the_window_opens() -> None:
    """Before the messages that are on the queue."""
    peer = with_backlog()
    assert bodies(peer.flow(6, handle=1, next_incoming_id=4, incoming_window=100)) == _MESSAGES
