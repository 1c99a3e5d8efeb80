"""The links of one connection as a whole: their credit, and the end of each kind."""

import pytest

from ambermq.protocol.amqp10.performatives.classes import Attach, Source, Target
from ambermq.protocol.gateway.connection_links import ConnectionLinks, message_bytes
from tests.protocol.watching import Watching

_MESSAGE = b"\x00\x53\x77\xa1\x01x"


def attached() -> tuple[Watching, ConnectionLinks]:
    """Return a peer that sends, receives and browses, with the links of its connection."""
    peer = Watching()
    peer.say(
        Attach(name="s", handle=0, role=False, target=Target(address="q"), initial_delivery_count=0),
        Attach(name="r", handle=1, role=True, source=Source(address="q")),
        Attach(name="b", handle=2, role=True, source=Source(address="q", distribution_mode="copy")),
    )
    return peer, peer.peer._links


def counts(links: ConnectionLinks) -> tuple[int, int, int]:
    """Return how many links are in each table."""
    return len(links.producers), len(links.consumers), len(links.sources)


def test_a_pause_takes_the_credit_of_consumers_and_a_resumption_grants_it_again() -> None:
    """Messages that come meanwhile stay on the queue."""
    peer, links = attached()
    peer.flow(5, handle=1)
    producer = peer.rig.producer()
    peer.peer.pause()
    peer.rig.do(peer.rig.publish(producer, _MESSAGE))
    assert peer.rig.queue().acquired_count == 0
    peer.peer.resume()
    peer.settle()
    assert peer.rig.queue().acquired_count == 1
    assert counts(links) == (1, 1, 1)


@pytest.mark.parametrize("kind", ["producers", "consumers", "sources"])
@pytest.mark.parametrize("end", ["forget", "remove"])
def test_a_link_ends_alone(kind: str, end: str) -> None:
    """The name goes with it; only a link that is forgotten is detached from the engine."""
    peer, links = attached()
    (link,) = getattr(links, kind)
    known = getattr(links, kind)[link]
    getattr(links, end)(link)
    peer.settle()
    assert getattr(links, kind) == {}
    assert sum(counts(links)) == 2
    assert len(peer.gateway.links) == 2
    assert kind == "sources" or not known.is_open
    state = peer.rig.loop.state
    expected = (0 if (kind, end) == ("producers", "forget") else 1, 0 if (kind, end) == ("consumers", "forget") else 1)
    assert (len(state.producers), len(state.consumers)) == expected


def test_all_links_are_lost_together() -> None:
    """Of each kind, with their names."""
    peer, links = attached()
    links.lost()
    peer.settle()
    assert counts(links) == (0, 0, 0)
    assert len(peer.gateway.links) == 0
    assert (len(peer.rig.loop.state.producers), len(peer.rig.loop.state.consumers)) == (0, 0)


def test_the_size_of_messages_is_the_average_of_the_queue() -> None:
    """0 for an empty queue, and for a consumer that is gone."""
    peer, links = attached()
    ((_, consumer_link),) = links.consumers.items()
    assert message_bytes(peer.rig.loop.state, consumer_link.consumer) == 0
    peer.rig.do(peer.rig.publish(peer.rig.producer(), _MESSAGE, _MESSAGE))
    queue = peer.rig.queue()
    assert message_bytes(peer.rig.loop.state, consumer_link.consumer) == queue.size // 2 > 0
    assert message_bytes(peer.rig.loop.state, 1 << 40) == 0
