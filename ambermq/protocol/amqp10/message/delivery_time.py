"""When a message is to be available, by its message annotations.

    x-opt-delivery-time            milliseconds since 1970, of any type of whole numbers
    x-opt-scheduled-enqueue-time   a timestamp; Service Bus
    x-opt-delivery-delay           milliseconds after the arrival of the message

Rule 1. A time has precedence over a delay. A value of another type is ignored, and so are annotations that cannot be
        decoded: the message is stored as it came.
Rule 2. Most messages have none of these. A search through the bytes of the section says so, without decoding it.
Rule 3. A message that is scheduled mostly has one annotation, a long or a timestamp in the shortest encoding. Its bytes
        are compared, since each such message of a link has another time, and is read.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from ambermq.protocol.amqp10.errors import DecodeError
from ambermq.protocol.amqp10.types.decode import Buffer, decode

__all__ = ["ANNOTATIONS", "AT_ONCE", "DeliveryTime", "delivery_time"]


class DeliveryTime(NamedTuple):
    """When a message is to be available; both are 0 for at once."""

    time_ms: int = 0
    """Milliseconds since 1970; 0 for none."""
    delay_ms: int = 0
    """Milliseconds after the arrival of the message."""


AT_ONCE: Final = DeliveryTime()
_TIMES: Final = ("x-opt-delivery-time", "x-opt-scheduled-enqueue-time")
_DELAY: Final = "x-opt-delivery-delay"
ANNOTATIONS: Final = (*_TIMES, _DELAY)
"""The names of the annotations that schedule a message."""
_ALONE: Final = {b"\xa3" + bytes((len(name),)) + name.encode(): name for name in ANNOTATIONS}
"""The encoded name of an annotation, and the name."""
_LONGS: Final = (0x81, 0x83)
"""The format codes of a long and a timestamp."""
_LONG_BYTES: Final = 9
_MARKS: Final = (b"x-opt-delivery-", b"x-opt-scheduled-enqueue-time")


def delivery_time(payload: Buffer, start: int, stop: int) -> DeliveryTime:
    """Return when a message is to be available whose annotations, without their descriptor, are at `start`."""
    section = bytes(payload[start:stop])
    name = _ALONE.get(section[3:-_LONG_BYTES])
    if name is not None and section[-_LONG_BYTES] in _LONGS and section[:3] == bytes((0xC1, len(section) - 2, 2)):
        return _time_of({name: int.from_bytes(section[1 - _LONG_BYTES :], "big", signed=True)})
    if not any(mark in section for mark in _MARKS):
        return AT_ONCE
    try:
        annotations = decode(section)[0]
    except DecodeError:
        return AT_ONCE
    return _time_of(annotations) if isinstance(annotations, dict) else AT_ONCE


def _time_of(annotations: Mapping[Any, Any]) -> DeliveryTime:
    for name in _TIMES:
        time_ms = _whole(annotations.get(name))
        if time_ms is not None:
            # 0 is no time; the first millisecond of 1970 has passed too.
            return DeliveryTime(time_ms=max(1, time_ms))
    return DeliveryTime(delay_ms=max(0, _whole(annotations.get(_DELAY)) or 0))


def _whole(value: Any) -> int | None:
    return int(value) if isinstance(value, int) and not isinstance(value, bool) else None
