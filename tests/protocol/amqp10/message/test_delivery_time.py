"""When a message is to be available: which annotations count, and which do not."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ambermq.protocol.amqp10.errors import DecodeError
from ambermq.protocol.amqp10.message.delivery_time import AT_ONCE, DeliveryTime, delivery_time
from ambermq.protocol.amqp10.message.publish_outline import read_outline
from ambermq.protocol.amqp10.types.decode import decode
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


@given(
    name=st.sampled_from((_TIME, _ENQUEUE, _DELAY)),
    value=st.integers(-(2**63), 2**63 - 1),
    is_timestamp=st.booleans(),
    change=st.none() | st.tuples(st.integers(0, 60), st.integers(0, 255)),
)
def test_a_single_annotation_is_what_the_codec_decodes(
    name: str, value: int, change: tuple[int, int] | None, *, is_timestamp: bool
) -> None:
    """Whatever byte of it is another one."""
    number = (b"\x83" if is_timestamp else b"\x81") + value.to_bytes(8, "big", signed=True)
    pair = b"\xa3" + bytes((len(name),)) + name.encode() + number
    section = bytearray(bytes((0xC1, len(pair) + 1, 2)) + pair)
    if change is not None:
        section[change[0] % len(section)] = change[1]
    found = delivery_time(section, 0, len(section))
    try:
        annotations = decode(section)[0]
    except DecodeError:
        assert found == AT_ONCE
        return
    known = annotations if isinstance(annotations, dict) else {}
    times = [known[one] for one in (_TIME, _ENQUEUE) if isinstance(known.get(one), int)]
    times = [one for one in times if not isinstance(one, bool)]
    delay = known.get(_DELAY)
    delay_ms = max(0, delay) if isinstance(delay, int) and not isinstance(delay, bool) else 0
    assert found == (DeliveryTime(time_ms=max(1, times[0])) if times else DeliveryTime(delay_ms=delay_ms))
