"""The operation RENEW-LOCK of type `org.ambermq.queue`: the locks of deliveries begin again.

Rule 1. A delivery is named by its tag, which has the attempt of the message and its word. So a request renews what the
        client holds, and not a later delivery of the same message.
Rule 2. A request renews the deliveries of its own connection; with the right to manage the queue those of any one.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from ambermq.engine.commands import Command, RenewLocks
from ambermq.engine.errors import Refused
from ambermq.protocol.amqp10.types.values import Timestamp
from ambermq.protocol.management.request_fields import name_property, refuse_unknown

__all__ = ["LOCK_OPERATIONS", "RENEW_LOCK", "deliveries_of"]

RENEW_LOCK: Final = "RENEW-LOCK"
_NOUN: Final = "queue"
_TAGS: Final = "delivery_tags"
_TAG_BYTES: Final = 16
_WORD_BYTES: Final = 8
_ATTEMPT_MAX: Final = (1 << 63) - 1


def deliveries_of(tags: object) -> list[tuple[int, int]]:
    """Return the word and the attempt of each delivery-tag. Raises Refused."""
    if not isinstance(tags, list) or not tags or not all(isinstance(one, bytes) for one in tags):
        raise Refused("amqp:invalid-field", f"{_TAGS!r} must be a list of delivery-tags, found {tags!r:.80}")
    if any(len(one) != _TAG_BYTES or int.from_bytes(one[:_WORD_BYTES]) > _ATTEMPT_MAX for one in tags):
        found = next((one for one in tags if len(one) != _TAG_BYTES), tags[0])
        why = f"a delivery-tag of a queue has {_TAG_BYTES} bytes, found {len(found)}: name deliveries with a lock"
        raise Refused("amqp:invalid-field", why)
    return [(int.from_bytes(one[_WORD_BYTES:]), int.from_bytes(one[:_WORD_BYTES])) for one in tags]


def _renew(request: Any, properties: Mapping[str, Any], body: Mapping[str, Any], _max: int) -> Command:
    refuse_unknown(body, _NOUN, _TAGS)
    name, deliveries = name_property(properties, _NOUN), deliveries_of(body.get(_TAGS))
    return RenewLocks(request, name, deliveries, _answer, request.holders(name))


def _answer(locked_until_ms: int) -> dict[str, Any]:
    return {"locked_until": Timestamp(locked_until_ms)}


LOCK_OPERATIONS: Final[Mapping[str, Callable[[Any, Mapping[str, Any], Mapping[str, Any], int], Command]]] = {
    RENEW_LOCK: _renew,
}
"""Operation to the function that makes its command of request, application properties, body, and page rows."""
