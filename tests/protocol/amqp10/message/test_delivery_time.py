"""When a message is to be available: which annotations count, and which do not."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ambermq.protocol.amqp10.message.delivery_time import AT_ONCE, DeliveryTime, delivery_time
from ambermq.protocol.amqp10.message.publish_outline import read_outline
from ambermq.protocol.amqp10.types.encode import encode
from ambermq.protocol.amqp10.types.values import Symbol, Timestamp, UInt, ULong

_TIME, _ENQUEUE, _DELAY = "x-opt-delivery-time", "x-opt-scheduled-enqueue-time", "x-opt-delivery-delay"
_BODY = b"\x00\x53\x77\xa1\x01x"


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        ({}, AT_ONCE),
        ({"x-opt-jms-dest": UInt(1)}, AT_ONCE),
        ({_TIME: 5}, DeliveryTime(time_ms=5)),
        ({_TIME: Timestamp(7), _DELAY: 3}, DeliveryTime(time_ms=7)),
        ({_TIME: -1, _DELAY: 3}, DeliveryTime(time_ms=1)),
        ({_ENQUEUE: Timestamp(9)}, DeliveryTime(time_ms=9)),
        ({_TIME: "soon", _ENQUEUE: Timestamp(9)}, DeliveryTime(time_ms=9)),
        ({_DELAY: ULong(4)}, DeliveryTime(delay_ms=4)),
        ({_DELAY: -4}, AT_ONCE),
        ({_DELAY: True}, AT_ONCE),
        ({_DELAY: None}, AT_ONCE),
    ],
)
def test_the_time_of_annotations(annotations: dict[str, Any], expected: DeliveryTime) -> None:
    """A time has precedence; another type is ignored; the outline has it, with and without properties."""
    section = encode({Symbol(name): value for name, value in annotations.items()})
    assert delivery_time(section, 0, len(section)) == expected
    for properties in (b"", b"\x00\x53\x73\xc0\x04\x01\xa1\x01a"):
        assert read_outline(b"\x00\x53\x72" + section + properties + _BODY).delivery == expected


@given(st.binary(max_size=40))
def test_annotations_that_cannot_be_decoded_have_no_effect(rest: bytes) -> None:
    """The message is stored as it came."""
    section = b"\xc1" + rest + b"x-opt-delivery-delay" + rest
    assert isinstance(delivery_time(section, 0, len(section)), DeliveryTime)
