"""The outline of a message: one scan says what the codec says, and so does what is recognised as alike."""

from typing import Any
from uuid import UUID
from zlib import crc32

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ambermq.protocol.amqp10.errors import DecodeError
from ambermq.protocol.amqp10.message.group_code import group_code
from ambermq.protocol.amqp10.message.message import Data, Message
from ambermq.protocol.amqp10.message.message_recogniser import MessageRecogniser, learn_message
from ambermq.protocol.amqp10.message.publish_outline import message_id_hash, read_outline
from ambermq.protocol.amqp10.message.sections import BODY_SECTIONS_MAX
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
    assert read_outline(payload).ttl_ms == (header.ttl or 0)
    is_last = properties.group_sequence == 0xFFFFFFFF
    assert read_outline(payload).group == group_code(properties.group_id or "", is_last=is_last)
    expires_ms = 0 if header.ttl else properties.absolute_expiry_time or 0
    assert read_outline(payload).expires_ms == (expires_ms and max(1, expires_ms))


@pytest.mark.parametrize(
    ("fields", "count", "ttl_ms"),
    [
        ("41 5004 7000000f00", 3, 0xF00),
        ("41 40 520f", 3, 15),
        ("5601 40 43", 3, 0),
        ("41 40 40", 3, 0),
        ("41 40", 2, 0),
        ("41 40 520f", 2, 0),
        ("41 a10178 520f", 3, 0),
        ("41 40 7000", 3, 0),
        ("41 40 80000000000000000f", 3, 0),
        ("41 40", 3, 0),
    ],
)
@pytest.mark.parametrize("is_short", [True, False])
def test_the_time_to_live_is_read_where_the_header_is_good(
    fields: str, count: int, ttl_ms: int, *, is_short: bool
) -> None:
    """A bad field behind durable is none."""
    said, width = bytes.fromhex(fields), 1 if is_short else 4
    size = (len(said) + width).to_bytes(width, "big") + count.to_bytes(width, "big")
    body = b"\0\x53\x70" + (b"\xc0" if is_short else b"\xd0") + size + said + bytes.fromhex("005375a000")
    assert read_outline(body).ttl_ms == ttl_ms


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
        assert read_outline(candidate).ttl_ms == alike.ttl_ms
        assert read_outline(candidate).expires_ms == alike.expires_ms
        groups = alike.groups([candidate]) if alike.may_group else []
        assert (groups or [0]) == [read_outline(candidate).group]
    assert alike.id_hashes([first, candidate]) == (None if hashes is None else [read_outline(first).id_hash, *hashes])


@settings(max_examples=300, deadline=None)
@given(messages, st.lists(st.binary(max_size=300), min_size=1, max_size=4))
def test_another_body_is_alike(message: Message, bodies: list[bytes]) -> None:
    """What follows the properties may differ: whole messages with equal bytes up to there are recognised."""
    data = message.encode()
    outline, alike = read_outline(data), learned(data)
    if alike is None:
        return
    same = [data[: outline.tail_start] + Message(body=(Data(body),)).encode() for body in bodies]
    is_ascii = outline.id_place is None or not outline.id_place.is_text or data.isascii()
    begins = all(one[: outline.head_bytes] == data[: outline.head_bytes] for one in same)
    assert alike.id_hashes([*same, memoryview(same[0])]) in (
        [[outline.id_hash] * (len(same) + 1)] if begins and is_ascii else [None, [outline.id_hash] * (len(same) + 1)]
    )
    assert alike.id_hashes([*same, same[0] + b"\0"]) is None
    assert alike.id_hashes([*same, same[0][:-1]]) is None


def learned(payload: bytes) -> MessageRecogniser | None:
    """Learn from a message; None where the scanner refuses it, or it cannot be learned."""
    try:
        return learn_message(read_outline(payload), payload)
    except DecodeError:
        return None


@pytest.mark.parametrize(
    ("head", "head_bytes"),
    [
        ("005375a00161", 3),
        ("005370c0020141 005375a00161", 10),
        ("005370c0020141 00537345", 11),
        ("005370c0020141 005373c0020140", 14),
        ("005370c0020141 005373c0060240 a3026162", 14),
        ("005370c0020141 005373c00501a1026162", 15),
        ("005370c0020141 005373d00000000801 00000001a1", 0),
    ],
)
def test_the_head_ends_where_all_is_decided(head: str, head_bytes: int) -> None:
    """It is the descriptor of the body, an empty list of properties, or the code and the size of the first of them."""
    payload = bytes.fromhex(head) + bytes.fromhex("005375a00161") * ("005373" in head)
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


MALFORMED = {
    "no section": "",
    "a body section cut off in its descriptor": "005375",
    "a data section that is a list": "005375c00100",
    "a data section that is a string": "005375a10161",
    "a sequence that is a map": "005376c10100",
    "application properties that are a list": "00537445005375a000",
    "a footer that is a list": "005375a00000537845",
    "bytes behind the last section": "005375a0016100",
    "a byte behind a value": "0053774040",
    "a value cut off": "005377a10561",
    "a value without bytes": "005377",
    "a described value cut off": "005377005301",
    "a value of no format code": "00537747",
    "a size that runs over the end": "005375b0000000026a",
    "a header behind the body": "005375a00000537045",
    "properties behind the body": "005375a00000537345",
    "two values": "0053774000537740",
    "data and a value": "005375a00000537740",
    "data and a sequence": "005375a00000537645",
    "a footer without a body": "005370450053 78c10100",
    "two footers": "005375a000005378c10100005378c10100",
    "a footer before the body and one behind it": "005378c10100005375a000005378c10100",
    "a footer before the properties": "005378c1010000537345005375a000",
    "a footer between two bodies": "005375a000005378c10100005375a000",
    "two headers": "00537045 00537045 005375a000",
    "application properties before the properties": "005374c10100 00537345 005375a000",
    "an unknown section": "005379a000",
    "an unknown section behind the body": "005375a000005379a000",
    "a descriptor of another type": "005075a000",
    "more descriptors than any client decodes": "005377" + "005301" * 1025 + "40",
    "more sections than the bound": "005375a000" * (BODY_SECTIONS_MAX + 1),
}


@pytest.mark.parametrize("written", MALFORMED.values(), ids=MALFORMED.keys())
def test_malformed_messages(written: str) -> None:
    """Bad structure is a DecodeError wherever it is, and what began as another message is not recognised either."""
    payload = bytes.fromhex(written)
    with pytest.raises(DecodeError):
        read_outline(payload)
    for prefix in (b"", DURABLE, DURABLE + Message(properties=Properties(message_id="a"), body=()).encode()):
        for good in (b"x", b"", bytes(300)):
            alike = learned(prefix + Message(body=(Data(good),)).encode())
            assert alike is not None
            if answer(prefix + payload) is None:
                assert alike.id_hashes([prefix + payload]) is None


@pytest.mark.parametrize(
    "written",
    [
        "00537045",
        "005371c10100",
        "005372c10100",
        "00537345",
        "005374c10100",
        "00537045 005374c10100",
        "005375a000" * BODY_SECTIONS_MAX,
        "00537645 00537645 005378c10100",
        "005377" + "005301" * 1024 + "40",
        "0053770080000000000000000140",
        "00a310616d71703a646174613a62696e617279b000000000",
    ],
)
def test_structure_that_is_accepted(written: str) -> None:
    """A body may be missing: Proton sends a message of properties so. Each encoding of a descriptor is accepted."""
    read_outline(bytes.fromhex(written))


@pytest.mark.parametrize("code", range(256))
def test_format_codes_of_a_value(code: int) -> None:
    """The scanner refuses a format code that the codec does not know, and no other."""
    payload = bytes((0, 0x53, 0x77, code)) + bytes(16)
    accepted = {stop for stop in range(4, 21) if answer(payload[:stop]) is not None}
    assert accepted == {stop for stop in range(4, 21) if expected(payload[:stop]) is not None}


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


@pytest.mark.parametrize("head", ["", "00537045", "0053704500537345", "00537345005374c10100"])
def test_a_footer_before_the_body_is_accepted(head: str) -> None:
    """The client rhea writes it there, and other clients read it."""
    read_outline(bytes.fromhex(head + "005378c10100" + "005375a000" + "005375a000"))


@pytest.mark.parametrize(
    ("header", "priority", "ttl_ms"),
    [
        ("005370c0020141", 4, 0),
        ("005370c00402415007", 7, 0),
        ("005370c004024150ff", 9, 0),
        ("005370c003024140", 4, 0),
        ("005370c006034150095209", 9, 9),
        ("005370c005034140 5209", 4, 9),
        ("005370c00302 4143", 4, 0),
        ("005370c00302 4150", 4, 0),
        ("00537045", 4, 0),
    ],
)
def test_the_priority_of_a_header(header: str, priority: int, ttl_ms: int) -> None:
    """At most 9; 4 without one, and if the field is bad: such a message is stored as it came."""
    outline = read_outline(bytes.fromhex(header + "005375a000"))
    assert (outline.priority, outline.ttl_ms) == (priority, ttl_ms)
