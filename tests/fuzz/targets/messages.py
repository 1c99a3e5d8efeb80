"""The decoder of messages, and the readers of the broker that look at parts of one.

Rule: the outline reads what the decoder reads. A message of the decoder has an outline.
"""

from typing import Final

from ambermq.protocol.amqp10.errors import DecodeError
from ambermq.protocol.amqp10.message.message import decode_message
from ambermq.protocol.amqp10.message.message_recogniser import learn_message
from ambermq.protocol.amqp10.message.publish_outline import read_outline
from ambermq.protocol.amqp10.message.redelivery import with_header
from ambermq.protocol.gateway.links.routing_fields import RoutingFields
from ambermq.tools.messages.message_preview import message_facts
from ambermq.tools.messages.message_text import present
from tests.fuzz.target import Target
from tests.golden.clients import CLIENT_NAMES, read_client

_FIELDS: Final = (
    "properties.message-id",
    "properties.to",
    "header.priority",
    "annotations.x-opt-key",
    "colour",
    "amqp.x",
)


def run(data: bytes) -> None:
    """Decode the message, and read its parts."""
    message_facts(data)
    message_facts(data, is_whole=False)
    try:
        outline = read_outline(data)
    except DecodeError:
        outline = None
    try:
        message = decode_message(data)
    except DecodeError:
        message = None
    if outline is None:
        assert message is None, "a message without an outline"
        return
    if (recogniser := learn_message(outline, data)) is not None:
        recogniser.id_hashes([data, data[:-1], data + b"\0"])
    fields = RoutingFields(data)
    for name in _FIELDS:
        fields.get(name)
    _redeliver(data)
    if message is not None:
        present(message)
        decode_message(message.encode())


def _redeliver(data: bytes) -> None:
    for annotations in (None, {"x-opt-reason": "expired"}):
        try:
            with_header(data, delivery_count=3, annotations=annotations)
        except DecodeError:
            continue


def seeds() -> list[bytes]:
    """Return the recorded messages of each client."""
    return [message.payload for name in CLIENT_NAMES for message in read_client(name)]


TARGET: Final = Target(
    run,
    seeds,
    words=(
        *(b"\0\x53" + bytes([code]) for code in range(0x70, 0x79)),
        b"\0\xa3\x11amqp:value:*",
        b"\xc1\x01\0",
        b"\xd1\0\0\0\x04\0\0\0\0",
        b"\xc0\x01\0",
        b"\x45",
        b"\xa0\0",
        b"\xb0\0\0\0\0",
        b"\xa3\x05x-opt",
        b"\x83" + bytes(8),
        b"\x98" + bytes(16),
    ),
)
