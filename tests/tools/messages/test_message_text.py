"""Messages as JSON and as lines."""

import uuid
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.protocol.amqp10.message.message import AmqpSequence, AmqpValue, Data, Message, decode_message
from ambermq.protocol.amqp10.performatives.classes import Header, Properties
from ambermq.protocol.amqp10.types.decode import Limits
from ambermq.protocol.amqp10.types.values import Array, Described, Float, Symbol, Timestamp, UInt, ULong
from ambermq.tools.dataset.message_columns import CONTENTS, content_of
from ambermq.tools.messages.message_ids import message_id_of
from ambermq.tools.messages.message_preview import message_facts, pairs_text
from ambermq.tools.messages.message_text import (
    MessageDraft,
    body_text,
    draft_bytes,
    message_of,
    present,
    presented,
    printed_text,
    read_draft,
    read_message,
    with_properties,
)
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode
from tests.protocol.amqp_messages import messages
from tests.protocol.amqp_payloads import payloads
from tests.protocol.amqp_values import maps, typed, values

TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3), max_leaves=5
)
BODIES = st.one_of(
    st.fixed_dictionaries({"text": TEXT}),
    st.fixed_dictionaries({"value": VALUES}),
    st.just({"base64": "/wA="}),
)
DRAFTS = st.builds(
    lambda fields, body: fields | body,
    st.fixed_dictionaries(
        {},
        optional={
            "id": TEXT | st.integers(0, 2**64 - 1),
            "correlation_id": TEXT | st.integers(0, 2**64 - 1),
            "to": TEXT,
            "subject": TEXT,
            "reply_to": TEXT,
            "content_type": st.just("text/plain"),
            "group_id": TEXT,
            "durable": st.just(True),
            "priority": st.integers(0, 255),
            "ttl_ms": st.integers(0, 2**32 - 1),
            "properties": st.dictionaries(TEXT, SCALARS, min_size=1, max_size=3),
        },
    ),
    BODIES,
)


@given(DRAFTS)
@settings(max_examples=200, deadline=None)
def test_what_is_received_can_be_sent_again(fields: dict[str, Any]) -> None:
    """present(decode(encode(message_of(read(json))))) is the JSON: `receive --ndjson` feeds `send --ndjson`."""
    draft = read_draft(msgspec.json.encode(fields), "here")
    printed = msgspec.json.encode(present(decode_message(message_of(draft, durable=False).encode())))
    assert msgspec.json.decode(printed) == {"durable": False} | fields


def test_durable_is_what_the_line_says_else_what_the_command_says() -> None:
    """A draft's own word goes first."""
    for said, default, expected in (
        (None, True, True),
        (None, False, False),
        (False, True, False),
        (True, False, True),
    ):
        header = message_of(MessageDraft(durable=said), durable=default).header
        assert header is not None
        assert header.durable is expected


@pytest.mark.parametrize("line", [b"", b"{", b"[]", b'{"txt": 1}', b'{"priority": "high"}', b"\xff"])
def test_a_line_that_is_no_message_is_told_with_its_place(line: bytes) -> None:
    """One message, exit code 2."""
    with pytest.raises(
        ToolError, match="file, line 3: the line is not a message in JSON: expected an object"
    ) as caught:
        read_draft(line, "file, line 3")
    assert caught.value.exit_code == ExitCode.USAGE


def test_base64_that_is_none_is_told() -> None:
    """The place is named."""
    with pytest.raises(ToolError, match="message 1: the body is not base64"):
        message_of(MessageDraft(base64="!"), durable=True, where="message 1")


def test_the_types_of_other_clients_are_named() -> None:
    """A value that JSON lacks is an object of type and value."""
    message = Message(
        header=Header(delivery_count=2),
        message_annotations={"x-opt": Array("uint", (UInt(1), UInt(2)))},
        properties=Properties(message_id=uuid.UUID(int=1), user_id=b"me", content_type="text/plain"),
        application_properties={"s": Symbol("sym"), "t": Timestamp(5), "d": Described(ULong(1), b"\xff")},
        body=(AmqpValue({1: [True]}),),
    )
    one, two = ({"type": "uint", "value": text} for text in "12")
    descriptor, content = {"type": "ulong", "value": "1"}, {"type": "binary", "value": "/w=="}
    assert present(decode_message(message.encode())) == {
        "id": {"type": "uuid", "value": "00000000-0000-0000-0000-000000000001"},
        "user_id": {"type": "binary", "value": "bWU="},
        "content_type": "text/plain",
        "durable": False,
        "delivery_count": 2,
        "annotations": {"x-opt": {"type": "array", "value": ["uint", [one, two], []]}},
        "properties": {
            "s": {"type": "symbol", "value": "sym"},
            "t": {"type": "timestamp", "value": "5"},
            "d": {"type": "described", "value": [descriptor, content]},
        },
        "value": {"type": "map", "value": [[1, [True]]]},
    }


def resent(payload: bytes, *, keep_header: bool = False) -> bytes:
    """Return the message that `send --ndjson` makes of what `receive --ndjson` prints."""
    line = msgspec.json.encode(presented(payload))
    return draft_bytes(read_draft(line, "here"), durable=True, keep_header=keep_header)


def normal(message: Message, *, keep_header: bool) -> Message:
    """Return a message without what has no meaning: empty sections, and defaults that are written."""
    header = message.header or Header()
    return Message(
        header=replace(
            header,
            durable=bool(header.durable),
            delivery_count=header.delivery_count or None if keep_header else None,
        ),
        delivery_annotations=message.delivery_annotations or None if keep_header else None,
        message_annotations=message.message_annotations or None,
        properties=message.properties or Properties(),
        application_properties=message.application_properties or None,
        body=message.body,
        footer=message.footer or None,
    )


@given(messages, maps(values), st.booleans())
@settings(max_examples=300, deadline=None)
def test_every_section_field_and_type_is_sent_again(message: Message, properties: Any, keep_header: bool) -> None:
    """What is received in NDJSON and sent from it is the same message, types of all values included."""
    message.application_properties = properties or None
    before = decode_message(message.encode())
    after = decode_message(resent(message.encode(), keep_header=keep_header))
    expected = normal(before, keep_header=keep_header)
    assert after == expected
    assert after.encode() == expected.encode()
    for name in ("message_annotations", "application_properties", "footer"):
        assert typed(getattr(after, name)) == typed(getattr(expected, name))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), Float("-inf"), Float("nan"), -0.0])
def test_numbers_that_json_lacks(value: float) -> None:
    """They are text of their type."""
    body = Message(body=(AmqpValue(value),)).encode()
    (section,) = decode_message(resent(body)).body
    assert repr(section.value) == repr(value)


@pytest.mark.parametrize("keys", [("type", "value"), ("value", "type")])
@pytest.mark.parametrize("name", ["int", "map", "nonsense"])
def test_a_map_that_looks_like_a_typed_value(name: str, keys: tuple[str, str]) -> None:
    """It is written as pairs, in a body, in properties and in annotations."""
    pairs: dict[str, Any] = dict(zip(keys, (name, "1") if keys[0] == "type" else ("1", name), strict=True))
    message = Message(message_annotations=dict(pairs), application_properties=dict(pairs), body=(AmqpValue(pairs),))
    after = decode_message(resent(message.encode()))
    assert (after.message_annotations, after.application_properties) == (pairs, pairs)
    assert after.body == (AmqpValue(pairs),)


@pytest.mark.parametrize(
    ("line", "body"),
    [
        ('{"value": {"type": "int", "value": "high"}}', AmqpValue({"type": "int", "value": "high"})),
        ('{"value": {"type": "list", "value": 3}}', AmqpValue({"type": "list", "value": 3})),
        ('{"value": {"type": "ubyte", "value": "256"}}', AmqpValue({"type": "ubyte", "value": "256"})),
        ('{"value": {"type": "map", "value": [1]}}', AmqpValue({"type": "map", "value": [1]})),
        ('{"value": [1, [2.5, null]]}', AmqpValue([1, [2.5, None]])),
        ('{"id": 7, "delivery_count": 3, "properties": {"a": null}, "base64": "/wA="}', Data(b"\xff\x00")),
        ('{"durable": true, "annotations": {"x": 1}, "value": null}', AmqpValue(None)),
        ("{}", Data(b"")),
    ],
)
def test_lines_of_the_first_version(line: str, body: Any) -> None:
    """What 0.1.0 printed is read as it was."""
    assert message_of(read_draft(line.encode(), "here"), durable=True).body == (body,)


def nested(depth: int) -> bytes:
    """Return a message whose body is that many lists, one in the other."""
    value = b"\x40"
    for _ in range(depth):
        value = b"\xd0" + (len(value) + 4).to_bytes(4) + b"\0\0\0\1" + value
    return b"\0Sw" + value


POISON = {
    "a list of 70,000 values": Message(body=(AmqpValue([1] * 70_000),)).encode(),
    "33 lists": nested(33),
    "10,000 lists": nested(10_000),
    "a list as a key": b"\0St\xc1\x04\x02\x45\x54\x01\0Sw\x40",
    "a list as a key of annotations": b"\0Sr\xc1\x04\x02\x45\x54\x01\0Sw\x40",
    "text that is no UTF-8": b"\0Sw\xa1\x01\xff",
    "a symbol beyond ASCII": b"\0Sw\xa3\x01\xff",
    "a header with too many fields": b"\0Sp\xc0\x07\x06" + b"\x40" * 6 + b"\0Su\xa0\0",
    "properties of other types": b"\0Ss\xc0\x03\x02\x40\x41" + b"\0Su\xa0\0",
    "a key twice": b"\0Sw\xc1\x05\x04\x40\x40\x40\x40",
    "nulls without width": b"\0Sw\xf0\0\0\0\x05\xff\xff\xff\xff\x40",
    "no bytes": b"",
    "nonsense": b"\xff\xfe",
}


@pytest.mark.parametrize("payload", POISON.values(), ids=POISON)
def test_any_message_is_shown_and_sent_again(payload: bytes) -> None:
    """A message that cannot be decoded is its bytes in hex and a reason; they are sent as they are."""
    shown, text = presented(payload), printed_text(payload)
    if "hex" in shown:
        assert shown["reason"]
        assert text == f"0x{payload.hex()} ({shown['reason']})"
        assert resent(payload) == payload
    else:
        assert decode_message(resent(payload), Limits(elements=1 << 20)).body == read_message(payload).body
    facts = message_facts(payload)
    assert [pairs_text(facts[name] | {"x": 1})[-3:] for name in ("application_properties", "annotations")] == [
        "x=1"
    ] * 2
    assert len(content_of(payload, tuple(CONTENTS))) == len(CONTENTS)


@given(payloads)
@settings(max_examples=300, deadline=None)
def test_no_bytes_fail_to_be_shown(payload: bytes) -> None:
    """Whatever the bytes are, each way of showing a message shows them."""
    line = presented(payload)
    assert msgspec.json.encode(line)
    assert resent(payload) is not None
    printed_text(payload).encode()
    for is_whole in (True, False):
        facts = message_facts(payload, is_whole=is_whole)
        assert [pairs_text(facts[name]) is not None for name in ("header", "properties", "annotations")]
        assert msgspec.json.encode(facts)
    content_of(payload, tuple(CONTENTS))
    message_id_of(payload)


def test_many_values_are_shown_as_values() -> None:
    """The element limit of the broker is for what it decodes itself; a client shows a message of any size."""
    assert presented(POISON["a list of 70,000 values"])["value"] == [1] * 70_000


def test_properties_of_the_command_line() -> None:
    """They replace those of the line, in an object and in pairs."""
    pairs = {"type": "map", "value": [["a", 1], [2, 3]]}
    assert with_properties({"a": 1, "b": 2}, {"a": "x"}) == {"a": "x", "b": 2}
    assert with_properties(pairs, {"a": "x"}) == {"type": "map", "value": [[2, 3], ["a", "x"]]}


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ((Data(b"one "), Data(b"two")), "one two"),
        ((Data(b"\xff\x00"),), "/wA="),
        ((AmqpValue("text"),), "text"),
        ((AmqpValue({"a": 1}),), '{"a":1}'),
        ((AmqpValue(None),), "null"),
        ((AmqpSequence([1, 2]), AmqpSequence([3])), "[[1,2],[3]]"),
        ((Data(b""),), ""),
    ],
)
def test_a_body_is_a_line_for_a_person(body: Any, line: str) -> None:
    """Text as it is, values as JSON, other bytes as base64."""
    assert body_text(decode_message(Message(body=body).encode())) == line
