"""Strategies for the bytes of messages: as each client may encode them, damaged, or no messages at all."""

from hypothesis import strategies as st

from ambermq.protocol.amqp10.message.message import AmqpValue, Message
from ambermq.protocol.amqp10.performatives.base import Composite
from ambermq.protocol.amqp10.performatives.classes import Header, Properties
from ambermq.protocol.amqp10.spec import DESCRIPTORS
from ambermq.protocol.amqp10.types.values import Symbol
from tests.golden.clients import CLIENT_NAMES, read_client
from tests.protocol.amqp_messages import messages

__all__ = ["payloads"]

_SECTIONS = [
    Message(header=Header(durable=True), body=()).encode(),
    Message(header=Header(), body=()).encode(),
    Message(delivery_annotations={Symbol("a"): 1}, body=()).encode(),
    Message(message_annotations={Symbol("a"): 1}, body=()).encode(),
    Message(properties=Properties(message_id="a"), body=()).encode(),
    Message(properties=Properties(), body=()).encode(),
    Message(application_properties={"a": 1}, body=()).encode(),
    Message(body=(AmqpValue(None),)).encode(),
    Message(footer={Symbol("a"): 1}, body=()).encode(),
]
"""One section each."""

_NAMES = {code: symbol for symbol, code in DESCRIPTORS.values()} | {
    composite.CODE: composite.NAME for composite in (Header, Properties)
}


def _described(encoded: bytes, form: int) -> bytes:
    """Return an encoded section with its descriptor as a small ulong, a wide one, or a symbol."""
    symbol = _NAMES[encoded[2]].encode()
    descriptors = (encoded[1:3], b"\x80" + bytes(7) + encoded[2:3], bytes((0xA3, len(symbol))) + symbol)
    return b"\0" + descriptors[form] + encoded[3:]


def _as_list(composite: Composite, form: int) -> bytes:
    """Return a header or properties as a small list, a wide one with narrow fields, or a wide one with wide fields."""
    encoded = composite.encode(form == 2)
    if form == 1 and encoded[3] == 0xC0:
        size, count = encoded[4], encoded[5]
        return encoded[:3] + b"\xd0" + (size + 3).to_bytes(4) + count.to_bytes(4) + encoded[6:]
    return encoded


def _encoded(message: Message, forms: list[int]) -> bytes:
    """Return a message whose head a client encoded in its own way."""
    header, properties = message.header, message.properties
    rest = Message(
        application_properties=message.application_properties, body=message.body, footer=message.footer
    ).encode()
    annotations = Message(
        delivery_annotations=message.delivery_annotations, message_annotations=message.message_annotations, body=()
    ).encode()
    return b"".join(
        (
            _described(_as_list(header, forms[0]), forms[1]) if header is not None else b"",
            annotations,
            _described(_as_list(properties, forms[2]), forms[3]) if properties is not None else b"",
            rest,
        )
    )


def _damaged(payload: bytes, at: int, value: int, cut: int) -> bytes:
    changed = bytearray(payload)
    if changed:
        changed[at % len(changed)] = value
    return bytes(changed[: len(changed) - cut % (len(changed) + 1)])


_forms = st.lists(st.integers(0, 2), min_size=4, max_size=4)
_recorded = st.sampled_from([message.payload for name in CLIENT_NAMES for message in read_client(name)])
_valid = st.builds(_encoded, messages, _forms) | _recorded | messages.map(Message.encode)
_places = st.integers(0, 40) | st.integers(0, 1 << 16)
_mutated = st.builds(_damaged, _valid, _places, st.integers(0, 255), st.just(0) | st.integers(0, 1 << 16))
_unordered = st.lists(st.sampled_from(_SECTIONS), max_size=5).map(b"".join)
_begun = st.builds(
    lambda code, constructor, rest: bytes((0x00, 0x53, code, constructor)) + rest,
    st.integers(0x70, 0x78),
    st.sampled_from([0x45, 0xC0, 0xC1, 0xD0, 0xD1, 0xA0, 0x40]),
    st.binary(max_size=40),
)

payloads = st.one_of(_valid, _mutated, _mutated, _unordered, _begun, st.binary(max_size=40))
"""Any bytes, most of them messages or nearly so."""
