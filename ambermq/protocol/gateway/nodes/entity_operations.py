"""The operations of the node NAME/$management: requests and answers as clients of Service Bus have them.

    peek-message                from-sequence-number, message-count             messages: [{message}]
    schedule-message            messages: [{message}]                           sequence-numbers
    cancel-scheduled-message    sequence-numbers
    renew-lock                  lock-tokens                                     expirations
    receive-by-sequence-number  sequence-numbers, receiver-settle-mode          messages: [{message, lock-token}]
    update-disposition          lock-tokens, disposition-status

Rule 1. A sequence number is the offset of a message on its queue. A lock token is the delivery-tag, in the order of
        bytes that Microsoft's UUIDs have.
Rule 2. A request may be of any shape: Refused says what was expected.
"""

from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from ambermq.engine.commands import Publish
from ambermq.engine.entries.entry import Entry
from ambermq.engine.entries.outcome import ACCEPTED, MODIFIED_FAILED, Outcome, OutcomeKind
from ambermq.engine.errors import Refused
from ambermq.engine.model.queue import Queue
from ambermq.protocol.amqp10.errors import DecodeError
from ambermq.protocol.amqp10.message.publish_outline import read_outline
from ambermq.protocol.amqp10.message.redelivery import without_delivery_annotations
from ambermq.protocol.amqp10.types.decode import Buffer
from ambermq.protocol.amqp10.types.values import Array, Int, Timestamp
from ambermq.protocol.gateway.links.outgoing_message import LOCKED_UNTIL, SEQUENCE_NUMBER, redelivered

__all__ = [
    "deliveries",
    "message_row",
    "number",
    "outcome",
    "publishes",
    "sequence_numbers",
    "state_of",
]

_COUNT_MAX: Final = 1000
_STATE: Final = "x-opt-message-state"
_SIZE: Final = "x-opt-message-size"
"""Of a message that an answer shows the beginning of: about how many bytes it has."""
_ACTIVE, _DEFERRED, _SCHEDULED = 0, 1, 2
_REASON_BYTES_MAX: Final = 1024


def number(body: Mapping[str, Any], name: str, default: int = 0) -> int:
    """Return a whole number of a request, `default` if it has none. Raises Refused."""
    value = body.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool) or not -(1 << 63) <= value < 1 << 63:
        raise Refused("amqp:invalid-field", f"{name!r} must be a whole number, found {value!r:.80}")
    return int(value)


def _items(body: Mapping[str, Any], name: str, kind: type) -> list[Any]:
    value = body.get(name)
    items = list(value.items) if isinstance(value, Array) else value
    if (
        not isinstance(items, list)
        or not 0 < len(items) <= _COUNT_MAX
        or not all(isinstance(one, kind) for one in items)
    ):
        expected = f"an array of 1 to {_COUNT_MAX} values of class {kind.__name__}"
        raise Refused("amqp:invalid-field", f"{name!r} must be {expected}, found {value!r:.80}")
    return items


def sequence_numbers(body: Mapping[str, Any]) -> list[int]:
    """Return the offsets that a request names. Raises Refused."""
    return [int(one) for one in _items(body, "sequence-numbers", int)]


def deliveries(body: Mapping[str, Any]) -> list[tuple[int, int]]:
    """Return the word and the attempt of each delivery that a request names by its lock token. Raises Refused."""
    tags = [one.bytes_le for one in _items(body, "lock-tokens", UUID)]
    return [(int.from_bytes(tag[8:]), int.from_bytes(tag[:8]) & (1 << 63) - 1) for tag in tags]


def publishes(body: Mapping[str, Any]) -> list[Publish]:
    """Return the messages that a request schedules, one in each command. Raises Refused."""
    found: list[Publish] = []
    for row in _items(body, "messages", dict):
        payload = row.get("message")
        if not isinstance(payload, bytes):
            raise Refused("amqp:invalid-field", f"a message must be a binary value, found {payload!r:.80}")
        try:
            outline = read_outline(payload)
        except DecodeError as error:
            raise Refused("amqp:decode-error", f"the message: {error.description}") from error
        time_ms, delay_ms = outline.delivery
        if not time_ms and not delay_ms:
            raise Refused("amqp:invalid-field", "the message has no annotation x-opt-scheduled-enqueue-time")
        if outline.delivery_annotations is not None:
            payload = bytes(without_delivery_annotations(payload, outline.delivery_annotations))
        publish = Publish(None, 0, 0, [payload], [outline.id_hash], len(payload))
        publish.groups = [outline.group] if outline.group else []
        publish.ttl_ms, publish.priority = outline.ttl_ms, outline.priority
        publish.time_ms, publish.delay_ms, publish.expires_ms = time_ms, delay_ms, outline.expires_ms
        found.append(publish)
    return found


def outcome(body: Mapping[str, Any]) -> Outcome:
    """Return the outcome that a request says. Raises Refused."""
    status = body.get("disposition-status")
    match status:
        case "completed":
            return ACCEPTED
        case "abandoned":
            return MODIFIED_FAILED
        case "defered":
            return Outcome(OutcomeKind.MODIFIED, undeliverable_here=True)
        case "suspended":
            reason, text = (str(body.get(f"deadletter-{name}") or "") for name in ("reason", "description"))
            cut = _REASON_BYTES_MAX // 4
            return Outcome(OutcomeKind.REJECTED, condition=reason[:cut], description=text[:cut])
        case _:
            expected = "completed, abandoned, defered or suspended"
            raise Refused("amqp:invalid-field", f"'disposition-status' must be {expected}, found {status!r:.80}")


def state_of(queue: Queue, word: int) -> int:
    """Return the state of a message that waits, as clients of Service Bus number it."""
    if queue.scheduled.count and queue.scheduled.holds(word):
        return _SCHEDULED
    entry = queue.entries.get(word >> 16)
    return _DEFERRED if entry is not None and entry.excluded else _ACTIVE


def message_row(
    word: int,
    entry: Entry | None,
    body: Buffer,
    *,
    state: int,
    until_ms: int = 0,
    is_held: bool = False,
    whole_bytes: int = 0,
) -> dict[str, Any]:
    """Return a message as answers have it; `is_held`: with its lock token.

    `whole_bytes` is the size of a large message, of which `body` is the beginning.
    """
    added: dict[str, Any] = {SEQUENCE_NUMBER: word >> 16, _STATE: Int(state)}
    if until_ms:
        added[LOCKED_UNTIL] = Timestamp(until_ms)
    if whole_bytes:
        added[_SIZE] = whole_bytes
    row: dict[str, Any] = {"message": bytes(redelivered(body, entry, 0, added))}
    if is_held:
        attempt = 0 if entry is None else entry.attempt
        row["lock-token"] = UUID(bytes_le=attempt.to_bytes(8) + word.to_bytes(8))
    return row
