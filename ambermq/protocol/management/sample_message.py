"""A sample message for ROUTE, made of fields with the names that conditions use.

    colour = "red"              application-properties      header.priority = 9         header
    annotations.x = 1           message-annotations         properties.subject = "eu"   properties

Rule 1. The message is encoded as a client encodes it. So matching gives the result that it gives for a real message.
Rule 2. A field of type timestamp takes a whole number, as commands write it. Otherwise a boolean, a timestamp and a
        number are three types.
"""

from collections.abc import Collection, Mapping
from typing import Any, Final

from ambermq.engine.errors import Refused
from ambermq.protocol.amqp10.errors import LocalError
from ambermq.protocol.amqp10.message.message import Message
from ambermq.protocol.amqp10.performatives.classes import Header, Properties
from ambermq.protocol.amqp10.performatives.fields import FieldType, field_kinds
from ambermq.protocol.amqp10.types.values import Timestamp

__all__ = ["encode_sample_message"]

_SECTIONS: Final[Mapping[str, type[Header | Properties]]] = {"header": Header, "properties": Properties}


def encode_sample_message(fields: Mapping[str, Any]) -> bytes:
    """Return an encoded message that has these fields and an empty body.

    Raises Refused, amqp:invalid-field, for a field that AMQP does not have, or a value that it cannot have.
    """
    sections: dict[str, dict[str, Any]] = {"header": {}, "annotations": {}, "properties": {}, "": {}}
    for name, value in fields.items():
        prefix, dot, rest = name.partition(".")
        if dot and prefix in sections:
            sections[prefix][rest] = value
        else:
            sections[""][name] = value
    try:
        return Message(
            header=_composite("header", sections["header"]),
            message_annotations=sections["annotations"] or None,
            properties=_composite("properties", sections["properties"]),
            application_properties=sections[""] or None,
        ).encode()
    except LocalError as error:
        raise Refused("amqp:invalid-field", f"the message cannot be encoded: {error}") from error


def _composite(section: str, fields: Mapping[str, Any]) -> Any:
    known = {field.name: field for field in _SECTIONS[section].TYPES}
    for name, value in fields.items():
        if name not in known:
            expected = f"expected {', '.join(known)}"
            raise Refused("amqp:invalid-field", f"AMQP has no field {section}.{name}: {expected}")
        _check(f"{section}.{name}", known[name], value)
    return _SECTIONS[section](**{name.replace("-", "_"): one for name, one in fields.items()}) if fields else None


def _check(name: str, field: FieldType, value: Any) -> None:
    """Raise Refused for a value that has the right class in Python but not in AMQP; the encoder refuses the others."""
    kinds = field_kinds(field)
    if value is not None and not _is_of(kinds, value):
        raise Refused("amqp:invalid-field", f"{name!r} must be of type {' or '.join(kinds)}, found {value!r:.80}")


def _is_of(kinds: Collection[str], value: Any) -> bool:
    if isinstance(value, bool):
        return "boolean" in kinds
    if isinstance(value, Timestamp):
        return "timestamp" in kinds
    # No field has the type float, and the encoder's table would find 5 by the key 5.0.
    return "boolean" not in kinds and not isinstance(value, float)
