"""When a message is to be available, by its message annotations.

    x-opt-delivery-time            milliseconds since 1970, of any type of whole numbers
    x-opt-scheduled-enqueue-time   a timestamp; Service Bus
    x-opt-delivery-delay           milliseconds after the arrival of the message

Rule 1. A time has precedence over a delay. A value of another type is ignored, and so are annotations that cannot be
        decoded: the message is stored as it came.
Rule 2. Most messages have none of these. A search through the bytes of the section says so, without decoding it.
"""

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
_MARKS: Final = (b"x-opt-delivery-", b"x-opt-scheduled-enqueue-time")


def delivery_time(payload: Buffer, start: int, stop: int) -> DeliveryTime:
    """Return when a message is to be available whose annotations, without their descriptor, are at `start`."""
    section = bytes(payload[start:stop])
    if not any(mark in section for mark in _MARKS):
        return AT_ONCE
    try:
        annotations = decode(section)[0]
    except DecodeError:
        return AT_ONCE
    if not isinstance(annotations, dict):
        return AT_ONCE
    for name in _TIMES:
        time_ms = _whole(annotations.get(name))
        if time_ms is not None:
            # 0 is no time; the first millisecond of 1970 has passed too.
            return DeliveryTime(time_ms=max(1, time_ms))
    return DeliveryTime(delay_ms=max(0, _whole(annotations.get(_DELAY)) or 0))


def _whole(value: Any) -> int | None:
    return int(value) if isinstance(value, int) and not isinstance(value, bool) else None
