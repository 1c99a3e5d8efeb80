"""A message as it is sent: byte for byte as it is stored, but for what its delivery adds.

Rule 1. Only a redelivered message, one from another queue, and one with a time to live or a lock get a new header.
Rule 2. A stored message that cannot be decoded is sent as it was received.
"""

from collections.abc import Mapping
from typing import Any, Final

from ambermq.engine.entries.entry import PLAIN, Entry
from ambermq.protocol.amqp10.errors import DecodeError
from ambermq.protocol.amqp10.message.edit import REDRIVE_COUNT, total_redrives
from ambermq.protocol.amqp10.message.redelivery import KEPT_TTL, claims_first_acquirer, with_header
from ambermq.protocol.amqp10.types.decode import Buffer, decode
from ambermq.protocol.amqp10.types.values import Timestamp

__all__ = ["LOCKED_UNTIL", "SEQUENCE_NUMBER", "delivery_annotations", "redelivered"]

LOCKED_UNTIL: Final = "x-opt-locked-until"
"""The message annotation that says when the lock of a delivery ends."""
SEQUENCE_NUMBER: Final = "x-opt-sequence-number"
"""The message annotation by which clients of Service Bus name a message of a queue."""


def delivery_annotations(word: int, until_ms: int, *, is_service_bus: bool) -> dict[str, Any]:
    """Return the message annotations that a delivery has for its lock, and for a client of Service Bus."""
    added: dict[str, Any] = {LOCKED_UNTIL: Timestamp(until_ms)} if until_ms else {}
    return added | ({SEQUENCE_NUMBER: word >> 16} if is_service_bus else {})


def redelivered(body: Buffer, entry: Entry | None, now_us: int = 0, added: Mapping[str, Any] | None = None) -> Buffer:
    """Return a message as it is sent: with the delivery count, annotations and remaining time to live of its entry.

    `now_us` is the elapsed time; 0: the time to live stays. A message from another queue has none. `added` are further
    message annotations.
    """
    if entry is None:
        if not added:
            return body
        entry = PLAIN
    ttl_ms: int | None = KEPT_TTL
    if entry.expires_us and now_us:
        ttl_ms = max(1, (entry.expires_us - now_us) // 1000)
    elif entry.origin:
        ttl_ms = None
    elif not (entry.count or entry.annotations or entry.marks or added or _is_claimed(body, entry)):
        return body
    try:
        annotations = {decode(key)[0]: decode(value)[0] for key, value in entry.added}
        if entry.marks is not None and entry.marks.redrives:
            annotations[REDRIVE_COUNT] = total_redrives(body, entry.marks.redrives)
        return with_header(
            body,
            delivery_count=entry.count,
            annotations={**annotations, **(added or {})} or None,
            ttl_ms=ttl_ms,
            was_acquired=entry.was_acquired,
        )
    except DecodeError:
        # The header after its durable flag was never decoded: an invalid one is sent as it was received.
        return body


def _is_claimed(body: Buffer, entry: Entry) -> bool:
    """Return whether a message that was acquired before has a header that denies it."""
    if not entry.was_acquired:
        return False
    try:
        return claims_first_acquirer(body)
    except DecodeError:
        # As below.
        return False
