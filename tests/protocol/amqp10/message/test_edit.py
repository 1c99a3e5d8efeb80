"""Edited copies of messages: what changes, what stays byte for byte, and what is refused."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ambermq.protocol.amqp10.errors import DecodeError
from ambermq.protocol.amqp10.message.edit import (
    EDITED_FROM,
    FIELDS_MAX,
    REDRIVE_COUNT,
    MessageEdit,
    edited,
    total_redrives,
)
from ambermq.protocol.amqp10.message.message import AmqpValue, Data, Message, decode_message
from ambermq.protocol.amqp10.performatives.classes import Header, Properties
from ambermq.protocol.amqp10.types.values import Symbol, Timestamp, UByte, UInt, ULong

FULL = Message(
    header=Header(durable=True, priority=UByte(2), ttl=UInt(5), first_acquirer=True, delivery_count=UInt(3)),
    message_annotations={Symbol("x-opt-delivery-delay"): 9, Symbol("x-opt-kept"): "yes"},
    properties=Properties(message_id="m", subject="old", absolute_expiry_time=Timestamp(1), content_type=Symbol("a/b")),
    application_properties={"region": "eu", "size": 1},
    body=(AmqpValue({"deep": [1, None]}),),
    footer={Symbol("x-foot"): 1},
)


def test_a_copy_has_the_edits_and_all_else_but_the_times() -> None:
    """Body and footer byte for byte."""
    values = {"region": "us", "properties.subject": "new", "header.priority": 9, "annotations.x-opt-a": [1]}
    edit = MessageEdit({**values, "properties.content-type": "c/d"}, ("size", "annotations.x-opt-kept"), "again-")
    found = decode_message(edited(FULL.encode(), edit, offset=77))
    assert found.header == Header(durable=True, priority=9)
    assert found.message_annotations == {EDITED_FROM: 77, "x-opt-a": [1]}
    assert found.properties == Properties(message_id="again-77", subject="new", content_type=Symbol("c/d"))
    assert found.application_properties == {"region": "us"}
    assert (found.body, found.footer) == (FULL.body, FULL.footer)


def test_a_copy_may_keep_the_message_id() -> None:
    """Without a prefix it has that of the message."""
    found = decode_message(edited(FULL.encode(), MessageEdit({"a": "b"}), offset=1))
    assert found.properties is not None
    assert found.properties.message_id == "m"


@pytest.mark.parametrize(
    ("before", "redrives", "after"), [(0, 0, None), (0, 1, 1), (3, 2, 5), (0xFFFF_FFFF, 2, 0xFFFF_FFFF)]
)
def test_a_copy_tells_the_redrives_of_all_before_it(before: int, redrives: int, after: int | None) -> None:
    """A count of a message that is no copy is its producer's, which says nothing."""
    known = {EDITED_FROM: ULong(5), REDRIVE_COUNT: UInt(before)} if before else {REDRIVE_COUNT: UInt(9)}
    payload = Message(message_annotations=known, body=(Data(b"x"),)).encode()
    found = decode_message(edited(payload, MessageEdit({"a": "b"}), offset=1, redrives=redrives))
    assert (found.message_annotations or {}).get(REDRIVE_COUNT) == after
    assert total_redrives(payload, redrives) == (after or 0)


def test_a_message_without_sections_before_the_body_gets_them() -> None:
    """As many as the edits need."""
    found = decode_message(edited(Message(body=(Data(b"x"),)).encode(), MessageEdit({"a": 1}, (), "p"), offset=5))
    assert found.application_properties == {"a": 1}
    assert found.properties == Properties(message_id="p5")
    assert found.body == (Data(b"x"),)


@given(st.binary(max_size=60))
def test_bytes_that_are_no_message_are_a_decode_error_or_a_copy(payload: bytes) -> None:
    """Nothing else is raised."""
    with suppress(DecodeError):
        edited(payload, MessageEdit({"a": "b"}, ("c",), "p"), offset=1)


@pytest.mark.parametrize(
    ("values", "removed", "words"),
    [
        ({"": "x"}, (), "no name"),
        ({"properties.message-id": "x"}, (), "cannot be edited"),
        ({"header.ttl": 1}, (), "cannot be edited: header has durable, priority"),
        ({"header.durable": "yes"}, (), "expected true or false"),
        ({"header.priority": 256}, (), "from 0 to 255"),
        ({"header.priority": True}, (), "from 0 to 255"),
        ({"properties.subject": 1}, (), "expected a text"),
        ({"a": [1]}, (), "no list and no map"),
        ({}, ("annotations.",), "names no annotation"),
        ({}, tuple(f"a{n}" for n in range(FIELDS_MAX + 1)), "at most 100 fields, found 101"),
    ],
)
def test_what_cannot_be_is_said(values: dict[str, object], removed: tuple[str, ...], words: str) -> None:
    """Before any message is looked at."""
    with pytest.raises(ValueError, match=words):
        MessageEdit(values, removed).check()
