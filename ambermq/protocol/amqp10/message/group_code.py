"""The group of a message as a number, by the properties group-id and group-sequence (messaging, 3.2.4).

    48 bits of a hash of the group-id | 1 bit: the message ends the binding of its group

Rule 1. Most messages have so few properties that they cannot have a group: their list says so by its count.
Rule 2. A group-id that is empty or no string is none, and so is one behind properties that cannot be read: the message
        is stored as it came.
Rule 3. Two ids with one hash are one group: their messages have one order and one consumer.
"""

from hashlib import blake2b
from typing import Final

from ambermq.protocol.amqp10.message.property_walk import field_after
from ambermq.protocol.amqp10.types.decode import Buffer

__all__ = ["GROUP_FIELDS", "group_code", "group_code_at"]

GROUP_FIELDS: Final = 11
"""The least number of properties of a message with a group-id."""
_LAST_SEQUENCE: Final = b"\x70\xff\xff\xff\xff"
"""The group-sequence 4294967295, -1 for JMS, which has one encoding only."""
_HASH_BYTES: Final = 6
_STRINGS: Final = {0xA1: 1, 0xB1: 4}
"""The bytes of the size of a string, by its format code."""


def group_code(group_id: str, *, is_last: bool = False) -> int:
    """Return the group of a message with a group-id; 0 for an empty one."""
    return _code(group_id.encode(), is_last=is_last) if group_id else 0


def group_code_at(payload: Buffer, field: int, stop: int) -> int:
    """Return the group of a message whose properties, at least GROUP_FIELDS, begin at `field`; 0 without one."""
    field = field_after(payload, field, stop, GROUP_FIELDS - 1)
    if field >= stop:
        return 0
    size_bytes = _STRINGS.get(payload[field], 0)
    if not size_bytes:
        return 0
    start = field + 1 + size_bytes
    end = start + int.from_bytes(payload[field + 1 : start], "big")
    if end > stop or end <= start:
        return 0
    is_last = end + len(_LAST_SEQUENCE) <= stop and bytes(payload[end : end + len(_LAST_SEQUENCE)]) == _LAST_SEQUENCE
    return _code(bytes(payload[start:end]), is_last=is_last)


def _code(group_id: bytes, *, is_last: bool) -> int:
    return (int.from_bytes(blake2b(group_id, digest_size=_HASH_BYTES).digest(), "big") or 1) << 1 | is_last
