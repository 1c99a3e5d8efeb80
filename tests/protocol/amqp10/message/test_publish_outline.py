"""The outline of a message: the fast way says what the codec says."""

from collections.abc import Callable
from typing import Any
from uuid import UUID
from zlib import crc32

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ambermq.protocol.amqp10.errors import DecodeError
from ambermq.protocol.amqp10.message.message import AmqpValue, Message
from ambermq.protocol.amqp10.message.publish_outline import message_id_hash, outline, outline_slowly
from ambermq.protocol.amqp10.performatives.classes import Header, Properties
from ambermq.protocol.amqp10.types.values import Symbol, ULong
from tests.protocol.amqp_messages import messages


@settings(max_examples=300, deadline=None)
@given(messages, st.booleans())
def test_fast_equals_general(message: Message, as_view: bool) -> None:
    """Both ways give the same answer to every message, and it is what the sections say."""
    data = message.encode()
    payload = memoryview(data) if as_view else data
    header, properties = message.header or Header(), message.properties or Properties()
    expected = (
        bool(header.durable),
        message_id_hash(properties.message_id),
        message.delivery_annotations is not None,
    )
    assert expected == outline(payload)[:3] == outline_slowly(payload)[:3]


@settings(max_examples=300, deadline=None)
@given(messages, st.booleans())
def test_trimmed_sections(message: Message, full_width: bool) -> None:
    """Clients that leave trailing fields out get the same outline."""
    parts = [part.encode(full_width) for part in (message.header, message.properties) if part is not None]
    data = b"".join(parts) + b"\x00\x53\x75\xa0\x00"
    assert outline_slowly(data)[:3] == outline(data)[:3]


_SECTIONS = {
    "header": Message(header=Header(durable=True), body=()),
    "empty header": Message(header=Header(), body=()),
    "delivery-annotations": Message(delivery_annotations={Symbol("a"): 1}, body=()),
    "message-annotations": Message(message_annotations={Symbol("a"): 1}, body=()),
    "properties": Message(properties=Properties(message_id="a"), body=()),
    "application-properties": Message(application_properties={"a": 1}, body=()),
    "body": Message(body=(AmqpValue(None),)),
    "footer": Message(footer={Symbol("a"): 1}, body=()),
}
"""One section each."""


@settings(max_examples=500, deadline=None)
@given(st.lists(st.sampled_from(sorted(_SECTIONS)), min_size=1, max_size=5))
@example(["delivery-annotations", "delivery-annotations"])
@example(["message-annotations", "delivery-annotations"])
def test_sections_in_any_order_and_number(names: list[str]) -> None:
    """What the codec refuses, repeated or behind what it stands before, the fast way refuses too, and nothing else."""
    payload = b"".join(_SECTIONS[name].encode() for name in names)
    assert _answer(outline_slowly, payload) == _answer(outline, payload)


def _answer(way: Callable[[bytes], tuple[bool, int, bool, int]], payload: bytes) -> tuple[bool, int, bool] | None:
    try:
        return way(payload)[:3]
    except DecodeError:
        return None


@settings(max_examples=300, deadline=None)
@given(messages, st.data())
def test_mutated_messages(message: Message, data: st.DataObject) -> None:
    """A message that the codec reads has one outline; one that it does not read is at worst a DecodeError."""
    mutated = bytearray(message.encode())
    mutated[data.draw(st.integers(0, min(len(mutated), 40) - 1))] = data.draw(st.integers(0, 255))
    payload = bytes(mutated[: data.draw(st.integers(0, len(mutated)))])
    try:
        fast = outline(payload)[:3]
    except DecodeError:
        fast = None
    try:
        slow = outline_slowly(payload)[:3]
    except DecodeError:
        return
    assert slow == fast


@settings(max_examples=300, deadline=None)
@given(messages, st.integers(0, 40), st.integers(0, 255), st.binary(max_size=40))
def test_the_deciding_bytes_decide(message: Message, at: int, value: int, rest: bytes) -> None:
    """Whatever follows the first bytes that decide, the outline is the same one: also where a byte was changed."""
    data = bytearray(message.encode())
    data[at % len(data)] = value
    try:
        first = outline(bytes(data))
    except DecodeError:
        return
    deciding_bytes = first[3]
    assert deciding_bytes <= len(data)
    if deciding_bytes:
        assert outline(bytes(data[:deciding_bytes]) + rest) == first


def test_without_properties_few_bytes_decide() -> None:
    """A header and a body's descriptor; properties may hold an id, which is another in each message."""
    header = Header(durable=True)
    assert outline(Message(header=header).encode()) == (True, 0, False, 14)
    assert outline(Message().encode()) == (False, 0, False, 3)
    assert outline(Message(header=header, properties=Properties(subject="a")).encode()) == (True, 0, False, 0)


@pytest.mark.parametrize(
    ("message_id", "canonical"),
    [
        ("id-\u00e9", b"sid-\xc3\xa9"),
        ("", b"s"),
        (b"id", b"bid"),
        (UUID(int=1), b"u" + bytes(15) + b"\x01"),
        (ULong(258), b"l" + bytes(6) + b"\x01\x02"),
        (258, b"l" + bytes(6) + b"\x01\x02"),
    ],
)
def test_hashes(message_id: Any, canonical: bytes) -> None:
    """A message-id's hash is the CRC-32 of its type and its bytes."""
    data = Message(properties=Properties(message_id=message_id)).encode()
    assert crc32(canonical) == message_id_hash(message_id) == outline(data)[1]


def test_no_id_hashes_as_0_and_nothing_else_does() -> None:
    """0 stands for a message without an id, so an id whose CRC is 0 gets 1."""
    assert 0 == message_id_hash(None) == outline(Message().encode())[1]
    colliding = _bytes_with_crc_0(b"b")
    assert crc32(b"b" + colliding) == 0
    assert 1 == message_id_hash(colliding) == outline(Message(properties=Properties(message_id=colliding)).encode())[1]


def _bytes_with_crc_0(prefix: bytes) -> bytes:
    """Four bytes that bring the CRC behind a prefix to 0: each of the 32 bits of input flips a known set of output."""
    base = crc32(prefix + bytes(4))
    basis: list[tuple[int, int]] = []
    for bit in range(32):
        output = crc32(prefix + (1 << bit).to_bytes(4, "big")) ^ base
        source = 1 << bit
        for known_output, known_source in basis:
            if output ^ known_output < output:
                output, source = output ^ known_output, source ^ known_source
        basis.append((output, source))
        basis.sort(reverse=True)
    wanted, chosen = base, 0
    for output, source in basis:
        if wanted ^ output < wanted:
            wanted, chosen = wanted ^ output, chosen ^ source
    return chosen.to_bytes(4, "big")


def test_the_first_frames_are_enough() -> None:
    """What stands behind the properties may be missing."""
    data = Message(header=Header(durable=True), properties=Properties(message_id="a")).encode()
    assert outline(data) == outline(data[:-2]) == outline(data[:-5])
    with pytest.raises(DecodeError):
        outline(data[:-6])


@pytest.mark.parametrize(
    "payload", [b"nonsense", b"\x00\x53\x10\x45", b"\x00\x53\x70\xc0\x02\x01\xa1", b"\x00\x53\x78\x45"]
)
def test_what_is_no_message(payload: bytes) -> None:
    """Bytes that do not begin with sections are a DecodeError."""
    with pytest.raises(DecodeError):
        outline(payload)
