"""The shapes of other clients against the bytes that these were recorded with."""

from collections.abc import Iterator
from typing import Any

import pytest

from ambermq.protocol.amqp10.framing.frames import decode_frame_body
from ambermq.protocol.amqp10.message.message import decode_message
from bench.client.shapes import SHAPES, STAMPED_ID_BYTES, Shape
from bench.client.transfer_batch import TransferBatch
from tests.golden.clients import CLIENT_NAMES, ClientMessage, read_client

KINDS = {
    "proton": "durable-text",
    "rhea": "durable-text",
    "jms": "text",
    "go": "durable-binary",
    "rust": "durable-text",
    "azure": "text",
    "azure-node": "text",
}
"""The kind of message that a shape is of."""


def recorded(client: str) -> list[ClientMessage]:
    """Return the recorded messages of the kind of a shape."""
    return [message for message in read_client(client) if message.kind == KINDS[client]]


def body_of(payload: bytes) -> bytes:
    """Return the bytes of the body of a message."""
    value: Any = decode_message(payload).body[0].value
    return value.encode() if isinstance(value, str) else bytes(value)


def stamped_spans(shape: Shape, payload: bytes) -> Iterator[tuple[int, int]]:
    """Yield position and width of what differs from message to message: a client has another id for each."""
    if shape.id_position >= 0:
        properties = decode_message(payload).properties
        assert properties is not None
        text = str(properties.message_id).encode()
        assert shape.id_position + STAMPED_ID_BYTES <= payload.index(text) + len(text)
        yield payload.index(text), len(text)
    if shape.time_position >= 0:
        yield shape.time_position, 8


def test_every_client_of_the_matrix_has_a_shape() -> None:
    """There is a load for each recorded client."""
    assert sorted(SHAPES) == CLIENT_NAMES == sorted(KINDS)


@pytest.mark.parametrize("client", sorted(SHAPES))
def test_messages_are_the_recorded_ones(client: str) -> None:
    """A shape around the recorded body is the recorded message, but for what is stamped."""
    shape = SHAPES[client]
    for message in recorded(client):
        made, payload = bytearray(shape.message(body_of(message.payload))), message.payload
        for position, width in stamped_spans(shape, payload):
            made[position : position + width] = payload[position : position + width]
        assert bytes(made) == payload


@pytest.mark.parametrize("client", sorted(SHAPES))
def test_transfers_are_the_recorded_ones(client: str) -> None:
    """A stamped frame has the fields and the encoding of the recorded one, but for delivery-id and tag."""
    shape = SHAPES[client]
    for message in recorded(client):
        batch = TransferBatch(body_of(message.payload), count_max=1, frame_bytes_max=512, shape=shape)
        frame = bytes(batch.stamp(7, 1))
        made, payload_start = decode_frame_body(frame, 8, len(frame))
        head = message.head
        expected, _ = decode_frame_body(head, 8, len(head))
        varying = ("handle", "delivery_id", "delivery_tag")
        assert fields_of(made, *varying) == fields_of(expected, *varying)
        assert frame[11] == head[11]
        assert len(frame) - payload_start == len(message.payload)


def fields_of(performative: Any, *without: str) -> dict[str, Any]:
    """Return the fields of a performative but for some."""
    return {name: getattr(performative, name) for name in performative.FIELDS if name not in without}


@pytest.mark.parametrize("client", sorted(SHAPES))
def test_each_message_of_a_batch_is_stamped(client: str) -> None:
    """Ids are consecutive, message-ids differ, and creation-time is of today."""
    batch = TransferBatch(bytes(100), count_max=3, frame_bytes_max=512, shape=SHAPES[client])
    stream = bytes(batch.stamp(254, 3))
    ids, message_ids = [], set()
    for start in range(0, len(stream), batch.bytes_each):
        frame = stream[start : start + batch.bytes_each]
        transfer, payload_start = decode_frame_body(frame, 8, len(frame))
        message = decode_message(frame[payload_start:])
        ids.append((getattr(transfer, "delivery_id"), getattr(transfer, "delivery_tag")))  # noqa: B009  # a Transfer
        if message.properties is not None:
            message_ids.add(message.properties.message_id)
            assert (message.properties.creation_time or 1 << 62) > 1_700_000_000_000
    assert ids == [(number, number.to_bytes(4)) for number in (254, 255, 256)]
    assert len(message_ids) == (3 if SHAPES[client].id_position >= 0 else len(message_ids))
