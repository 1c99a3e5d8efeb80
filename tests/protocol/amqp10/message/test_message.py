"""Messages as clients have them."""

import pytest
from hypothesis import given, settings

from ambermq.protocol.amqp10.errors import DecodeError, LocalError
from ambermq.protocol.amqp10.message.message import AmqpSequence, AmqpValue, Data, Message, decode_message
from ambermq.protocol.amqp10.performatives.classes import Header, Properties
from tests.protocol.amqp_messages import messages
from tests.protocol.amqp_values import typed


@settings(max_examples=150, deadline=None)
@given(messages)
def test_round_trip(message: Message) -> None:
    """decode(encode(message)) == message, section by section, types of the body included."""
    found = decode_message(message.encode())
    assert message == found
    assert [typed(section.value) for section in message.body] == [typed(section.value) for section in found.body]


def test_golden_bytes() -> None:
    """A message of every section, written down by hand."""
    message = Message(
        header=Header(durable=True, priority=4),
        delivery_annotations={"d": 1},
        message_annotations={"m": 2},
        properties=Properties(message_id="i"),
        application_properties={"k": "v"},
        body=(Data(b"x"), Data(b"y")),
        footer={"f": 3},
    )
    expected = (
        "00 53 70 c0 07 05 41 50 04 40 40 40  00 53 71 c1 06 02 a30164 5501  00 53 72 c1 06 02 a3016d 5502"
        "00 53 73 c0 10 0d a10169 40 40 40 40 40 40 40 40 40 40 40 40  00 53 74 c1 07 02 a1016b a10176"
        "00 53 75 a0 01 78  00 53 75 a0 01 79  00 53 78 c1 06 02 a30166 5503"
    )
    assert bytes.fromhex(expected) == message.encode()


def test_a_message_is_empty_data_by_default() -> None:
    """The shortest message that every client takes has a body of no bytes."""
    assert bytes.fromhex("00 53 75 a0 00") == Message().encode()


@pytest.mark.parametrize(
    "body", [(Data(b""), AmqpValue(1)), (AmqpValue(1), AmqpValue(2)), (AmqpSequence([]), Data(b""))]
)
def test_bodies_do_not_mix(body: tuple[Data | AmqpValue | AmqpSequence, ...]) -> None:
    """A body of several kinds, or of two values, is our own mistake."""
    with pytest.raises(LocalError):
        Message(body=body).encode()


@pytest.mark.parametrize(
    "written", ["00 53 77 a1 01 ff", "00 53 73 c0 02 01 43", "00 53 77 c0 03 01 40 40", "00 53 75"]
)
def test_bad_contents(written: str) -> None:
    """A section whose contents cannot be read is a DecodeError."""
    with pytest.raises(DecodeError):
        decode_message(bytes.fromhex(written))
