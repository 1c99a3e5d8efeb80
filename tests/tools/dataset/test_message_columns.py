from uuid import UUID

import pytest

from ambermq.protocol.amqp10.message.message import AmqpSequence, AmqpValue, Data, Message
from ambermq.protocol.amqp10.performatives.classes import Header, Properties
from ambermq.protocol.amqp10.types.values import Symbol, UByte, ULong
from ambermq.tools.dataset.message_columns import CONTENTS, content_of, id_of
from ambermq.tools.messages.message_ids import MessageId

_NAMES = tuple(CONTENTS)


def contents(message: Message) -> dict[str, object]:
    return dict(zip(_NAMES, content_of(message.encode(), _NAMES), strict=True))


@pytest.mark.parametrize(
    ("message_id", "shown"),
    [
        ("order-1", "order-1"),
        (ULong(7), "7"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (b"abc", "abc"),
        (b"\xff\x00", "0xff00"),
        (None, None),
    ],
)
def test_an_id_is_shown_as_it_is_typed(message_id: MessageId | None, shown: str | None) -> None:
    """Every type of message-id is text, in the form that commands take it."""
    message = Message(properties=Properties(message_id=message_id), body=(Data(b"x"),))
    assert id_of(message.encode()) == shown


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ((Data(b"\x00\xff"),), b"\x00\xff"),
        ((Data(b"one"), Data(b"two")), b"onetwo"),
        ((AmqpValue("grün"),), "grün".encode()),
        ((AmqpValue(b"\x01"),), b"\x01"),
        ((AmqpValue({"a": 1}),), b'{"a":1}'),
        ((AmqpValue(None),), b"null"),
        ((AmqpSequence([1, "x"]),), b'[1,"x"]'),
        ((AmqpSequence([1]), AmqpSequence([2])), b"[[1],[2]]"),
    ],
)
def test_a_body_is_bytes_text_or_json(body: tuple[Data | AmqpValue | AmqpSequence, ...], expected: bytes) -> None:
    """Data sections are as they were sent, text is UTF-8, all else JSON."""
    assert contents(Message(body=body))["body"] == expected


def test_sections_are_json_of_what_they_say() -> None:
    """Fields that say nothing are left out, and a section without any is null."""
    message = Message(
        header=Header(durable=True, priority=UByte(7)),
        message_annotations={Symbol("x-opt-k"): "v"},
        properties=Properties(subject="s"),
        application_properties={"k": 1},
        body=(Data(b""),),
    )
    assert contents(message) == {
        "headers": '{"durable":true,"priority":7,"annotations":{"x-opt-k":"v"}}',
        "properties": '{"subject":"s"}',
        "application_properties": '{"k":1}',
        "body": b"",
    }
    nothing = contents(Message(body=(Data(b"x"),)))
    assert [nothing[name] for name in _NAMES[:3]] == [None, None, None]


def test_bytes_that_are_no_message_are_their_own_body() -> None:
    """Nothing that was ever published makes a read fail."""
    assert content_of(b"no message", _NAMES) == (None, None, None, b"no message")
    assert id_of(b"no message") is None
