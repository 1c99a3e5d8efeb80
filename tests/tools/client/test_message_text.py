"""Messages as JSON and as lines."""

import uuid
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.protocol.amqp10.message.message import AmqpSequence, AmqpValue, Data, Message, decode_message
from ambermq.protocol.amqp10.performatives.classes import Header, Properties
from ambermq.protocol.amqp10.types.values import Array, Described, Symbol, Timestamp, ULong
from ambermq.tools.client.message_text import MessageDraft, body_text, message_of, present, read_draft
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode

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
    assert msgspec.json.decode(printed) == fields


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


@pytest.mark.parametrize(
    "line", [b"", b"{", b"[]", b'{"txt": 1}', b'{"priority": "high"}', b'{"properties": {"a": []}}', b"\xff"]
)
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


def test_the_types_of_other_clients_are_shown_as_json_can() -> None:
    """UUIDs and symbols as text, timestamps as numbers, arrays as lists, described values as what they describe."""
    message = Message(
        header=Header(delivery_count=2),
        message_annotations={"x-opt": Array("uint", (1, 2))},
        properties=Properties(message_id=uuid.UUID(int=1), user_id=b"me"),
        application_properties={"s": Symbol("sym"), "t": Timestamp(5), "d": Described(ULong(1), b"\xff")},
        body=(AmqpValue({1: [True]}),),
    )
    assert present(decode_message(message.encode())) == {
        "id": "00000000-0000-0000-0000-000000000001",
        "delivery_count": 2,
        "annotations": {"x-opt": [1, 2]},
        "properties": {"s": "sym", "t": 5, "d": "/w=="},
        "value": {"1": [True]},
    }


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
