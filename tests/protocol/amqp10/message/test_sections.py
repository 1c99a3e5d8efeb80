"""The sections of a message: found, kept, and rebuilt."""

from contextlib import suppress
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.protocol.amqp10.errors import DecodeError
from ambermq.protocol.amqp10.message import redelivery
from ambermq.protocol.amqp10.message.message import AmqpSequence, AmqpValue, Data, Message, decode_message
from ambermq.protocol.amqp10.message.redelivery import with_header
from ambermq.protocol.amqp10.message.sections import Section, SectionScanner
from ambermq.protocol.amqp10.performatives.classes import Header
from ambermq.protocol.amqp10.types.decode import Buffer
from ambermq.protocol.amqp10.types.values import Symbol, ULong
from tests.protocol.amqp10.message.codec_reference import RefusedError, reference_message
from tests.protocol.amqp_messages import messages
from tests.protocol.amqp_payloads import payloads

VALUE = "00 53 77 40"
DATA = "00 53 75 a0 01 61"
SEQUENCE = "00 53 76 45"
HEADER = "00 53 70 45"
DELIVERY = "00 53 71 c1 01 00"
ANNOTATIONS = "00 53 72 c1 01 00"
PROPERTIES = "00 53 73 45"
APPLICATION = "00 53 74 c1 01 00"
FOOTER = "00 53 78 c1 01 00"


NAMES = {
    Section.HEADER: "header",
    Section.DELIVERY_ANNOTATIONS: "delivery_annotations",
    Section.MESSAGE_ANNOTATIONS: "message_annotations",
    Section.PROPERTIES: "properties",
    Section.APPLICATION_PROPERTIES: "application_properties",
}
HEADS = (Section.HEADER, Section.DELIVERY_ANNOTATIONS, Section.MESSAGE_ANNOTATIONS)


def scan(payload: Buffer) -> int:
    """Scan a whole message; returns where the last section ends."""
    scanner = SectionScanner(payload)
    while scanner.next_code():
        scanner.skip()
    return scanner.position


def scan_head(payload: Buffer) -> int:
    """Scan what stands before the bare message; returns where that begins."""
    return SectionScanner(payload).bare_start()


@pytest.mark.parametrize(
    "sections",
    [
        [VALUE],
        [DATA, DATA],
        [SEQUENCE, SEQUENCE, FOOTER],
        [HEADER, DELIVERY, ANNOTATIONS, PROPERTIES, APPLICATION, VALUE, FOOTER],
        [HEADER, VALUE],
        [ANNOTATIONS, DATA, FOOTER],
        ["00 80 0000000000000077 40"],
        ["00 a3 10 616d71703a646174613a62696e617279 a0 00"],
        ["00 53 77 00 53 01 00 53 02 56 01"],
        ["00 53 77 00 00 53 01 53 02 40"],
        [PROPERTIES],
        [],
    ],
)
def test_legal_orders(sections: list[str]) -> None:
    """Sections in the specification's order are a message; a missing body is let pass."""
    data = bytes.fromhex("".join(sections))
    assert len(data) == scan(data)


@pytest.mark.parametrize(
    "sections",
    [
        [VALUE, VALUE],
        [VALUE, DATA],
        [DATA, SEQUENCE],
        [DATA, HEADER],
        [DELIVERY, HEADER, VALUE],
        [ANNOTATIONS, DELIVERY, VALUE],
        [HEADER, HEADER, VALUE],
        [PROPERTIES, PROPERTIES, VALUE],
        [APPLICATION, PROPERTIES, VALUE],
        [PROPERTIES, HEADER, VALUE],
        [FOOTER],
        [VALUE, FOOTER, FOOTER],
        ["00 53 79 40"],
        ["00 53 00 40"],
        ["00 44 40"],
        ["00 a3 01 78 40"],
        ["00 45 40"],
        ["00 53 70 c1 01 00", VALUE],
        ["00 53 75 a1 01 61"],
        ["00 53 77 3f"],
        ["00 53 77 00 53 01"],
        ["40"],
        ["00"],
    ],
)
def test_illegal_orders(sections: list[str]) -> None:
    """Anything else is a DecodeError: wrong order, a section twice, mixed bodies, unknown or of a wrong type."""
    with pytest.raises(DecodeError):
        scan(bytes.fromhex("".join(sections)))


@settings(max_examples=100, deadline=None)
@given(messages)
def test_ranges_are_the_sections(message: Message) -> None:
    """Each range holds its section, and the bare message is the rest."""
    data = message.encode()
    scanner = SectionScanner(data)
    ranges = [scanner.span(code) for code in HEADS]
    codes = [data[start + 2] for start, _ in filter(None, ranges)]
    expected = (message.header, message.delivery_annotations, message.message_annotations)
    assert [code for code, part in zip((0x70, 0x71, 0x72), expected, strict=True) if part is not None] == codes
    assert scanner.bare_start() == max((stop for _, stop in filter(None, ranges)), default=0)
    assert ranges == [SectionScanner(data).span(code) for code in HEADS]


@settings(max_examples=1000, deadline=None)
@given(payloads)
def test_the_scanner_says_what_the_codec_says(payload: bytes) -> None:
    """Whatever the bytes are: asked for all of a message, the scanner reads what the codec reads, or both refuse."""
    expected: Message | None = None
    with suppress(RefusedError):
        expected = reference_message(payload)
    found: Message | None = None
    with suppress(DecodeError):
        found = decode_message(payload)
    assert repr(found) == repr(expected)  # by their text, since a NaN is not itself


@settings(max_examples=300, deadline=None)
@given(payloads, st.lists(st.integers(Section.HEADER, Section.APPLICATION_PROPERTIES), max_size=4))
def test_sections_asked_for_in_any_order(payload: bytes, codes: list[int]) -> None:
    """As far as it is asked the scanner says the same of a message, in whatever order; it refuses no good message."""
    try:
        message = reference_message(payload)
    except RefusedError:
        return
    scanner = SectionScanner(payload)
    for code in codes:
        assert repr(scanner.value(code)) == repr(getattr(message, NAMES[code]))
    assert scanner.bare_start() == SectionScanner(payload).bare_start()
    body = type(message.body[0]) if message.body else None
    assert scanner.body_code() == {None: 0, Data: 0x75, AmqpSequence: 0x76, AmqpValue: 0x77}[body]


@settings(max_examples=100, deadline=None)
@given(messages, st.data())
def test_bad_bytes(message: Message, data: st.DataObject) -> None:
    """A message with a byte changed, or cut off, is a message or a DecodeError, however it is read."""
    mutated = bytearray(message.encode())
    mutated[data.draw(st.integers(0, len(mutated) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(mutated[: data.draw(st.integers(0, len(mutated)))])
    for payload in (bytes(mutated), cut):
        for read in (scan, scan_head, decode_message, lambda payload: with_header(payload, delivery_count=1)):
            with suppress(DecodeError):
                read(payload)


@settings(max_examples=100, deadline=None)
@given(messages, st.integers(0, 2**32 - 1), st.none() | st.dictionaries(st.sampled_from(["a", "b"]), st.integers(0, 9)))
def test_with_header_changes_the_head_alone(message: Message, count: int, annotations: dict[str, Any] | None) -> None:
    """The count is set, annotations merged, delivery annotations gone, and the bare message kept to the byte."""
    before = message.encode()
    after = with_header(memoryview(before), delivery_count=count, annotations=annotations)
    assert before[scan_head(before) :] == after[scan_head(after) :]
    rebuilt = decode_message(after)
    assert rebuilt.delivery_annotations is None
    assert (message.message_annotations or {}) | (annotations or {}) == (rebuilt.message_annotations or {})
    assert count == (rebuilt.header.delivery_count or 0 if rebuilt.header else 0)
    if message.header:
        assert message.header.durable == rebuilt.header.durable
        assert message.header.ttl == rebuilt.header.ttl


@settings(max_examples=300, deadline=None)
@given(payloads | messages.map(Message.encode), st.integers(0, 9), st.data())
def test_the_cached_header_is_that_of_the_scanner(payload: bytes, count: int, data: st.DataObject) -> None:
    """The fast way of most messages gives the bytes of the general one, or its error, for any bytes."""
    mutated = bytearray(payload)
    if mutated and data.draw(st.booleans()):
        mutated[data.draw(st.integers(0, min(len(mutated), 12) - 1))] = data.draw(st.integers(0, 255))
    found: list[bytes | None] = []
    for end in (redelivery._plain_header_end, lambda _payload: -1):
        with mock.patch.object(redelivery, "_plain_header_end", end):
            try:
                found.append(with_header(bytes(mutated), delivery_count=count))
            except DecodeError:
                found.append(None)
    assert found[0] == found[1]


def test_headers_that_are_alike_are_rebuilt_once() -> None:
    """Of 1,000 messages with one header, whatever follows it."""
    redelivery._next_header.cache_clear()
    for number in range(1000):
        payload = Message(header=Header(durable=True), application_properties={"n": number}).encode()
        assert decode_message(with_header(payload, delivery_count=1)).application_properties == {"n": number}
    assert redelivery._next_header.cache_info().misses == 1


def test_with_header_on_the_first_frames() -> None:
    """The head of a message whose body is still to come is rebuilt alike."""
    data = Message(header=Header(durable=True)).encode()
    assert with_header(data[:-1], delivery_count=3)[-4:] == b"\x00\x53\x75\xa0"


def test_a_header_is_not_made_for_nothing() -> None:
    """A message without a header and without failed deliveries stays as it is."""
    data = Message(message_annotations={"a": 1}).encode()
    assert data == with_header(data, delivery_count=0)
    assert Header(delivery_count=1) == decode_message(with_header(data, delivery_count=1)).header


def test_annotation_keys() -> None:
    """Keys are symbols, whether given as such or as str, or numbers."""
    annotations = {"a": 1, Symbol("b"): 2, ULong(3): 3}
    found = decode_message(with_header(bytes.fromhex(VALUE), delivery_count=0, annotations=annotations))
    assert [Symbol, Symbol, ULong] == [type(key) for key in found.message_annotations]


@pytest.mark.parametrize("head", ["", "00537045", "00537045005372c10100"])
def test_a_footer_before_the_body_hides_no_section_before_it(head: str) -> None:
    """A redelivery gets its header, and a selector finds no properties instead of an error."""
    payload = bytes.fromhex(head + "005378c10100005375a000")
    scanner = SectionScanner(payload)
    assert scanner.bare_start() == len(head) // 2
    assert scanner.value(Section.APPLICATION_PROPERTIES) is None
    again = SectionScanner(with_header(payload, delivery_count=2))
    assert again.value(Section.HEADER).delivery_count == 2


@pytest.mark.parametrize("head", ["", "005370c003024140"])
def test_a_view_of_a_read_buffer_is_rebuilt_like_bytes(head: str) -> None:
    """Large messages wait as views of a buffer that can be written, which have no hash."""
    payload = bytes.fromhex(head + "005375a00161")
    view = memoryview(bytearray(payload))
    assert with_header(view, delivery_count=2) == with_header(payload, delivery_count=2)
    assert decode_message(with_header(view, delivery_count=2)).header.delivery_count == 2
