"""Messages that wait through a whole campaign, of bytes that do not compress, and are received at its end."""

import random
from typing import Final

from ambermq.log.buffer import Buffer
from ambermq.protocol.amqp10.message.message import Data, Message, decode_message
from ambermq.protocol.amqp10.performatives.classes import Header
from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.client.link_client import LinkClient
from ambermq.tools.messages.publisher import Publisher
from ambermq.tools.messages.subscriber import Subscriber

__all__ = ["pile_faults", "pile_up"]

_QUEUE: Final = "pile"
_COUNT: Final = 4000
_BODY_BYTES: Final = 1024


def pile_up(url: str, chance: random.Random) -> list[bytes]:
    """Send messages that stay; return their bodies."""
    bodies = [chance.randbytes(_BODY_BYTES) for _ in range(_COUNT)]
    with LinkClient.connect(BrokerUrl.parse(url)) as client:
        publisher = Publisher(client, client.attach_sender(_QUEUE), on_outcome=lambda *_: None, window=500)
        for number, body in enumerate(bodies):
            publisher.offer(Message(header=Header(durable=True), body=(Data(body),)).encode(), number)
        publisher.finish()
    return bodies


def pile_faults(url: str, sent: list[bytes]) -> list[str]:
    """Receive all messages that stayed; return what is wrong: each must arrive once, in order, byte for byte."""
    with LinkClient.connect(BrokerUrl.parse(url)) as client:
        subscriber = Subscriber(client, client.attach_receiver(_QUEUE))
        arrived = [_body_of(payload) for payload in subscriber.payloads(idle_seconds=5.0)]
        subscriber.finish()
    if arrived == sent:
        return []
    lost = set(sent).difference(arrived)
    return [f"lost: of {len(sent)} messages that waited {len(lost)} are lost, {len(arrived)} came"]


def _body_of(payload: Buffer) -> bytes:
    (section,) = decode_message(payload).body
    assert isinstance(section, Data)
    return bytes(section.value)
