"""When a message expires by its property absolute-expiry-time (messaging, 3.2.4).

Rule 1. Most messages have so few properties that they cannot have it: their list says so by its count.
Rule 2. A value that is no timestamp is none, and so is one behind properties that cannot be read: the message is stored
        as it came. 0 is none too, because clients of JMS write it for a message that does not expire.
"""

from typing import Final

from ambermq.protocol.amqp10.message.property_walk import field_after
from ambermq.protocol.amqp10.types.decode import Buffer

__all__ = ["EXPIRY_FIELDS", "expiry_time_at"]

EXPIRY_FIELDS: Final = 9
"""The least number of properties of a message with an absolute-expiry-time."""
_TIMESTAMP: Final = 0x83
_TIMESTAMP_BYTES: Final = 9


def expiry_time_at(payload: Buffer, field: int, stop: int) -> int:
    """Return when a message expires whose properties, at least EXPIRY_FIELDS, begin at `field`; 0 for never.

    The value is in milliseconds since 1970, at least 1: an earlier time has passed as well.
    """
    field = field_after(payload, field, stop, EXPIRY_FIELDS - 1)
    if field + _TIMESTAMP_BYTES > stop or payload[field] != _TIMESTAMP:
        return 0
    time_ms = int.from_bytes(payload[field + 1 : field + _TIMESTAMP_BYTES], "big", signed=True)
    return max(1, time_ms) if time_ms else 0
