"""The beginning of a large message: a message of its own, with the first bytes of the body."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ambermq.protocol.amqp10.errors import DecodeError
from ambermq.protocol.amqp10.message.beginning import beginning
from ambermq.protocol.amqp10.message.message import AmqpSequence, AmqpValue, Data, Message, decode_message
from ambermq.protocol.amqp10.performatives.classes import Header, Properties

HEAD: dict[str, Any] = {"header": Header(durable=True), "properties": Properties(message_id="id")}


@given(st.binary(max_size=600), st.integers(0, 400), st.integers(60, 700), st.integers(1, 2))
def test_it_has_the_head_and_the_first_bytes_that_are_there(body: bytes, most: int, piece: int, count: int) -> None:
    """At most so many; of several data sections those of the first one."""
    sections = (Data(body), Data(b"second"))[:count]
    payload = Message(**HEAD, body=sections).encode()
    head = len(Message(**HEAD, body=()).encode())
    found = decode_message(beginning(payload[: max(piece, head + 5)], most))
    assert (found.header, found.properties) == (HEAD["header"], HEAD["properties"])
    ((shown,),) = [[bytes(one.value) for one in found.body if isinstance(one, Data)]]
    assert body.startswith(shown)
    assert len(shown) <= most
    if piece >= len(payload):
        assert shown == body[:most]


@pytest.mark.parametrize("body", [AmqpValue("text" * 100), AmqpSequence([1, 2])])
def test_a_body_that_is_no_data_is_empty(body: Any) -> None:
    """A value cannot be cut."""
    found = decode_message(beginning(Message(**HEAD, body=(body,)).encode(), 10))
    assert found.properties == HEAD["properties"]
    assert [bytes(one.value) for one in found.body if isinstance(one, Data)] == [b""]


def test_a_body_must_begin() -> None:
    """Stored messages fulfil it."""
    with pytest.raises(DecodeError):
        beginning(Message(**HEAD, body=(Data(b"a"),)).encode()[:5], 10)
