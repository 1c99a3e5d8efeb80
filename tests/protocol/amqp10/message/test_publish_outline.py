"""The outline of a message: one scan says what the codec says, and so does what is recognised as alike."""

from typing import Any
from uuid import UUID
from zlib import crc32

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ambermq.protocol.amqp10.errors import DecodeError
from ambermq.protocol.amqp10.message.message import Message
from ambermq.protocol.amqp10.message.message_recogniser import MessageRecogniser, learn_message
from ambermq.protocol.amqp10.message.publish_outline import message_id_hash, read_outline
from ambermq.protocol.amqp10.performatives.classes import Header, Properties
from ambermq.protocol.amqp10.types.values import Symbol, ULong
from tests.protocol.amqp10.message.codec_reference import RefusedError, reference_message, reference_outline
from tests.protocol.amqp_messages import messages
from tests.protocol.amqp_payloads import payloads

DURABLE = bytes.fromhex("005370c0020141")


def answer(payload: bytes) -> tuple[bool, int, bool] | None:
    """Return durable, the hash and whether there are delivery annotations; None where the scanner refuses."""
    try:
        outline = read_outline(payload)
    except DecodeError:
        return None
    return outline.is_durable, outline.id_hash, outline.delivery_annotations is not None


def expected(payload: bytes) -> tuple[bool, int, bool] | None:
    """Return the same of the general codec."""
    try:
        return reference_outline(payload)
    except RefusedError:
        return None


@settings(max_examples=1000, deadline=None)
@given(payloads)
@example(b"")
@example(bytes.fromhex("005371c10100 005371c10100"))
@example(bytes.fromhex("005372c10100 005371c10100"))
@example(bytes.fromhex("005370c0020156 005375a000"))
@example(bytes.fromhex("005370c003015602 005375a000"))
@example(bytes.fromhex("005370c003015601 005375a000"))
@example(bytes.fromhex("005373c00401a101ff 005375a000"))
@example(bytes.fromhex("005373c00401a301ff 005375a000"))
@example(bytes.fromhex("005373c0020144 005375a000"))
@example(bytes.fromhex("005373d0000000030000 005375a000"))
@example(bytes.fromhex("005373c0020080 005375a000"))
@example(bytes.fromhex("005373c00101 005375a000"))
def test_the_scanner_says_what_the_codec_says(payload: bytes) -> None:
    """Whatever the bytes are, both give the same outline, or both refuse them."""
    assert answer(payload) == answer(memoryview(payload)) == expected(payload)  # type: ignore[arg-type]


@settings(max_examples=500, deadline=None)
@given(payloads)
def test_whole_messages(payload: bytes) -> None:
    """A message that the codec reads to its end has the outline that its sections tell; none of them is refused."""
    try:
        message = reference_message(payload)
    except RefusedError:
        return
    header, properties = message.header or Header(), message.properties or Properties()
    has_annotations = message.delivery_annotations is not None
    assert (bool(header.durable), message_id_hash(properties.message_id), has_annotations) == answer(payload)


@settings(max_examples=1000, deadline=None)
@given(payloads, payloads, st.integers(0, 3), st.integers(0, 255), st.integers(0, 60))
def test_what_is_recognised_is_what_a_scan_says(first: bytes, other: bytes, change: int, value: int, at: int) -> None:
    """No bytes get another outline by beginning as a message that was learned: not cut, changed or continued."""
    alike = learned(first)
    if alike is None:
        return
    head = first[: read_outline(first).head_bytes]
    changed = bytearray(first)
    changed[at % len(changed)] = value
    candidate = (bytes(changed), head + other, head + other[3:], first[: max(len(first) - at, 0)])[change]
    hashes = alike.id_hashes([candidate])
    if hashes is not None:
        assert answer(candidate) == (alike.is_durable, hashes[0], False)
    assert alike.id_hashes([first, candidate]) == (None if hashes is None else [read_outline(first).id_hash, *hashes])


@settings(max_examples=300, deadline=None)
@given(messages, st.binary(max_size=60))
def test_another_body_is_alike(message: Message, rest: bytes) -> None:
    """What follows the properties does not matter, and equal bytes up to there are recognised."""
    data = message.encode()
    outline, alike = read_outline(data), learned(data)
    if alike is None:
        return
    same = data[: max(outline.size_min, outline.head_bytes)] + rest
    is_ascii = outline.id_place is None or not outline.id_place.is_text or data.isascii()
    assert alike.id_hashes([same, memoryview(same)]) in ([outline.id_hash] * 2, None if not is_ascii else [])


def learned(payload: bytes) -> MessageRecogniser | None:
    """Learn from a message; None where the scanner refuses it, or it cannot be learned."""
    try:
        return learn_message(read_outline(payload), payload)
    except DecodeError:
        return None


@pytest.mark.parametrize(
    ("head", "head_bytes"),
    [
        ("005375", 3),
        ("005370c0020141 005375", 10),
        ("005370c0020141 00537345", 11),
        ("005370c0020141 005373c0020140", 14),
        ("005370c0020141 005373c0060240 a3026162", 14),
        ("005370c0020141 005373c00501a1026162", 15),
        ("005370c0020141 005373d00000000801 00000001a1", 0),
    ],
)
def test_the_head_ends_where_all_is_decided(head: str, head_bytes: int) -> None:
    """It is the descriptor of a body, an empty list of properties, or the code and the size of the first of them."""
    payload = bytes.fromhex(head) + b"\xa0\x01a"
    if head_bytes:
        assert read_outline(payload).head_bytes == head_bytes
    else:
        with pytest.raises(DecodeError):
            read_outline(payload)


def test_ids_that_differ_are_hashed_each() -> None:
    """A run of messages with ids of one width is recognised; one of another width is not, and ends it."""
    run = [DURABLE + Message(properties=Properties(message_id=f"id {number}")).encode() for number in range(10)]
    alike = learned(run[0])
    assert alike is not None
    assert alike.id_hashes(run) == [message_id_hash(f"id {number}") for number in range(10)]
    other = DURABLE + Message(properties=Properties(message_id="id 10")).encode()
    assert alike.id_hashes([*run, other]) is None


def test_ids_beyond_ascii_are_read_one_by_one() -> None:
    """Bytes that two ids have together may be UTF-8 where those of one are not."""
    first = Message(properties=Properties(message_id="\u00e9")).encode()
    alike = learned(first)
    assert alike is not None
    halves = [first.replace(b"\xc3\xa9", part) for part in (b"a\xc3", b"\xa9b")]
    assert alike.id_hashes([first]) is None
    assert alike.id_hashes(halves) is None
    assert [answer(half) for half in halves] == [None, None]


def test_what_is_not_learned() -> None:
    """A message without a body says nothing of others; one with delivery annotations would have to be cut."""
    for payload in (b"", DURABLE, Message(delivery_annotations={Symbol("a"): 1}).encode()):
        assert learned(payload) is None
    long = Message(message_annotations={Symbol("a"): "x" * 600}).encode()
    assert learned(long) is None


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
    assert crc32(canonical) == message_id_hash(message_id) == read_outline(data).id_hash


def test_no_id_hashes_as_0_and_nothing_else_does() -> None:
    """0 stands for a message without an id, so an id whose CRC is 0 gets 1."""
    assert 0 == message_id_hash(None) == read_outline(Message().encode()).id_hash
    colliding = _bytes_with_crc_0(b"b")
    assert crc32(b"b" + colliding) == 0
    data = Message(properties=Properties(message_id=colliding)).encode()
    outline = read_outline(data)
    alike = learn_message(outline, data)
    assert alike is not None
    assert 1 == message_id_hash(colliding) == outline.id_hash
    assert alike.id_hashes([data]) == [1]


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
    assert answer(data) == answer(data[:-2]) == answer(data[:-5])
    with pytest.raises(DecodeError):
        read_outline(data[:-6])


@pytest.mark.parametrize(
    "payload",
    [
        b"nonsense",
        b"\x00\x53\x10\x45",
        b"\x00\x53\x70\xc0\x02\x01\xa1",
        b"\x00\x53\x78\x45",
        b"\x00\x53\x70\xc0\x02\x01\xa1\x00\x53\x75\xa0\x00",
    ],
)
def test_what_is_no_message(payload: bytes) -> None:
    """Bytes that do not begin with sections are a DecodeError."""
    with pytest.raises(DecodeError):
        read_outline(payload)
