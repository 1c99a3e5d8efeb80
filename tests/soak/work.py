"""The honest work of a soak, beside the pairs: one function for each kind, and each call is one round.

Each function checks what it gets, and raises AssertionError where the broker is wrong.
"""

import random
from collections.abc import Callable, Mapping
from typing import Final

from ambermq.engine.model.muxer import MuxerKind, Options
from ambermq.protocol.amqp10.message.message import Data, Message, decode_message
from ambermq.protocol.amqp10.performatives.classes import Accepted, Header, Released
from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.client.link_client import LinkClient
from ambermq.tools.client.management_client import QueueManagement, SnapshotManagement
from ambermq.tools.config.attachment_options import AttachmentOptions
from ambermq.tools.messages.publisher import Publisher
from ambermq.tools.messages.subscriber import Subscriber
from ambermq.tools.wiring.client import WiringManagement
from bench.stalls.crowd_peer import CrowdPeer

__all__ = ["WORK"]

_COUNT: Final = 200
_LARGE_BYTES: Final = 3 << 20
_MEMBERS: Final = 3
_SELECTED_OF: Final = 10
_SECONDS: Final = 30.0

Round = Callable[[str, random.Random], None]
"""round(url, chance)."""


def _queue_life(url: str, chance: random.Random) -> None:
    """Create a queue, fill it, browse it, purge it, delete it."""
    name = f"life-{chance.randrange(1 << 30)}"
    with LinkClient.connect(BrokerUrl.parse(url)) as client:
        management = QueueManagement(client)
        management.declare(name)
        _send(url, name, [chance.randbytes(chance.randrange(1, 2000)) for _ in range(_COUNT)])
        with CrowdPeer(url, "browser") as peer:
            peer.receivers(name, credit=_COUNT, mode="copy")
            _collect(peer, _COUNT)
            assert peer.received_count == _COUNT, f"browsed {peer.received_count} of {_COUNT}"
        assert management.purge(name) == _COUNT
        management.delete(name)


def _muxer(url: str, chance: random.Random) -> None:
    """Publish to a muxer with three queues, and receive each copy."""
    members = [f"fan-{number}" for number in range(_MEMBERS)]
    with LinkClient.connect(BrokerUrl.parse(url)) as client:
        management = WiringManagement(client)
        management.declare_muxer("fan", MuxerKind.SIMPLE, Options())
        for name in members:
            management.declare(name)
            management.attach("fan", name, AttachmentOptions())
    bodies = [chance.randbytes(100) for _ in range(_COUNT)]
    _send(url, "/muxers/fan", bodies)
    for name in members:
        received = _receive(url, name)
        # A kill may have left messages of the round before.
        assert received[-_COUNT:] == bodies, f"{name}: {len(received)} arrived of {_COUNT}, or other bodies"


def _selector(url: str, chance: random.Random) -> None:
    """Receive by a selector, release, receive again, and purge the rest."""
    with LinkClient.connect(BrokerUrl.parse(url)) as client:
        management = QueueManagement(client)
        management.declare("mixed")
        management.purge("mixed")
        _send(url, "mixed", [chance.randbytes(50) for _ in range(_COUNT)])
        wanted = _COUNT // _SELECTED_OF
        for state in (Released(), Accepted()):
            with CrowdPeer(url, "selector") as peer:
                peer.receivers("mixed", credit=wanted, selector=f"n = {chance.randrange(_SELECTED_OF)}")
                _collect(peer, wanted)
                assert peer.received_count == wanted, f"selected {peer.received_count} of {wanted}"
                peer.settle(state)
        management.purge("mixed")


def _large(url: str, chance: random.Random) -> None:
    """Send a message that is stored in pieces, and receive it."""
    body = chance.randbytes(_LARGE_BYTES)
    _send(url, "large", [body])
    assert _receive(url, "large")[-1] == body


def _requests(url: str, chance: random.Random) -> None:
    """Read queues and wiring, and take and delete a snapshot now and then."""
    with LinkClient.connect(BrokerUrl.parse(url)) as client:
        wiring = WiringManagement(client)
        for queue in wiring.queues():
            assert queue["name"]
        assert list(wiring.muxers())
    if chance.random() < 0.05:
        with LinkClient.connect(BrokerUrl.parse(url)) as client:
            snapshots, name = SnapshotManagement(client), f"soak-{chance.randrange(1 << 30)}"
            snapshots.create(name)
            snapshots.delete(name)


def _collect(peer: CrowdPeer, count: int) -> None:
    """Read until so many messages have come, or for 30 s."""
    peer.wait(lambda: peer.received_count >= count, _SECONDS, is_required=False)


def _send(url: str, address: str, bodies: list[bytes]) -> None:
    with LinkClient.connect(BrokerUrl.parse(url)) as client:
        publisher = Publisher(client, client.attach_sender(address))
        for number, body in enumerate(bodies):
            properties = {"n": number % _SELECTED_OF}
            message = Message(header=Header(durable=True), application_properties=properties, body=(Data(body),))
            publisher.offer(message.encode(), number)
        publisher.finish()
    assert publisher.outcomes == {"accepted": len(bodies)}, dict(publisher.outcomes)


def _receive(url: str, address: str) -> list[bytes]:
    with LinkClient.connect(BrokerUrl.parse(url)) as client:
        subscriber = Subscriber(client, client.attach_receiver(address))
        bodies = []
        for payload in subscriber.payloads(idle_seconds=0.5):
            (section,) = decode_message(payload).body
            assert isinstance(section, Data)
            bodies.append(bytes(section.value))
        subscriber.finish()
    return bodies


WORK: Final[Mapping[str, tuple[Round, float]]] = {
    "queue lives": (_queue_life, 1.0),
    "muxer rounds": (_muxer, 1.0),
    "selector rounds": (_selector, 1.0),
    "large messages": (_large, 2.0),
    "requests": (_requests, 0.5),
}
"""Each kind with the pause between two rounds, in seconds."""
