"""The fields that identifiers in a selector name.

    colour, a.b                     the application property of that name
    JMSPriority, JMSMessageID, ...  the field that carries this JMS header, converted as JMS shows it
    amqp.message_id                 the field of header or properties, `_` for `-` (the filter registry of AMQP)
    properties.message_id           the same field by its section; likewise header.priority
    annotations.NAME                a message annotation
    "properties.message-id"         any name of `Fields`, unchanged

Rule: an unknown name that begins with `amqp.`, `header.` or `properties.` is refused, because no message can have it.
"""

from collections.abc import Callable
from typing import Any, Final
from uuid import UUID

from ambermq.engine.selectors.fields import SECTION_FIELDS

__all__ = ["Conversion", "field_of"]

Conversion = Callable[[Any], Any]
"""A function from a field's value, None if it is absent, to the value that a selector sees."""


def field_of(identifier: str) -> tuple[str, Conversion | None]:
    """Return the name of `Fields`, and the conversion of its value or None. Raises KeyError if no field can have it."""
    if identifier in _FIELDS:
        return _FIELDS[identifier]
    if identifier.partition(".")[0] in _SECTIONS and "." in identifier:
        raise KeyError(identifier)
    return identifier, None


def _delivery_mode(durable: Any) -> str:
    return "PERSISTENT" if durable is True else "NON_PERSISTENT"


def _redelivered(count: Any) -> bool:
    return isinstance(count, int) and count > 0


def _delivery_number(count: Any) -> int:
    return 1 + (count if isinstance(count, int) else 0)


def _id(value: Any) -> Any:
    return str(value) if isinstance(value, UUID) else value


def _jms_id(value: Any) -> Any:
    """Return an id of any type as text, by the mapping of AMQP to JMS (3.2.1.1)."""
    match value:
        case UUID():
            return f"ID:AMQP_UUID:{value}"
        case bytes():
            return f"ID:AMQP_BINARY:{value.hex().upper()}"
        case int():
            return f"ID:AMQP_ULONG:{int(value)}"
        case _:
            return value


def _user(value: Any) -> Any:
    """Return a user-id as text if it is valid UTF-8; in AMQP it is bytes."""
    try:
        return value.decode() if isinstance(value, bytes) else value
    except UnicodeDecodeError:
        return value


_SHOWN: Final[dict[str, Conversion]] = {"message-id": _id, "user-id": _user, "correlation-id": _id}
_SECTIONS: Final = frozenset(("amqp", "header", "properties"))

_JMS: Final[dict[str, tuple[str, Conversion | None]]] = {
    "JMSDeliveryMode": ("header.durable", _delivery_mode),
    "JMSPriority": ("header.priority", None),
    "JMSRedelivered": ("header.delivery-count", _redelivered),
    "JMSMessageID": ("properties.message-id", _jms_id),
    "JMSCorrelationID": ("properties.correlation-id", _jms_id),
    "JMSTimestamp": ("properties.creation-time", None),
    "JMSExpiration": ("properties.absolute-expiry-time", None),
    "JMSType": ("properties.subject", None),
    "JMSDestination": ("properties.to", None),
    "JMSReplyTo": ("properties.reply-to", None),
    "JMSXUserID": ("properties.user-id", _user),
    "JMSXGroupID": ("properties.group-id", None),
    "JMSXGroupSeq": ("properties.group-sequence", None),
    "JMSXDeliveryCount": ("header.delivery-count", _delivery_number),
    "amqp.delivery_mode": ("header.durable", _delivery_mode),
    "amqp.redelivered": ("header.delivery-count", _redelivered),
}
_FIELDS: Final[dict[str, tuple[str, Conversion | None]]] = {
    **_JMS,
    **{
        f"{prefix}.{name.replace('-', '_')}": (f"header.{name}", None)
        for prefix in ("amqp", "header")
        for name in SECTION_FIELDS["header"]
    },
    **{
        f"{prefix}.{name.replace('-', '_')}": (f"properties.{name}", _SHOWN.get(name))
        for prefix in ("amqp", "properties")
        for name in SECTION_FIELDS["properties"]
    },
}
