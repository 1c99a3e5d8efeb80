"""A message of given fields, by the names that conditions have for them: what routing would see of it.

    colour = "red"              application-properties      header.priority = 9         header
    annotations.x = 1           message-annotations         properties.subject = "eu"   properties

Rule 1. It is written as a client would write it, so that what matching makes of it is what it makes of a message.
Rule 2. A whole number is a timestamp where one belongs, as commands write it; else a boolean, a timestamp and a number
        are three types.
"""

from collections.abc import Collection, Mapping
from typing import Any, Final

from ambermq.engine.errors import Refused
from ambermq.protocol.amqp10.errors import LocalError
from ambermq.protocol.amqp10.message.message import Message
from ambermq.protocol.amqp10.performatives.classes import Header, Properties
from ambermq.protocol.amqp10.performatives.fields import FieldType, field_kinds
from ambermq.protocol.amqp10.types.values import Timestamp

__all__ = ["given_message"]

_SECTIONS: Final[Mapping[str, type[Header | Properties]]] = {"header": Header, "properties": Properties}


def given_message(fields: Mapping[str, Any]) -> bytes:
    """Return a message that has these fields, encoded, with an empty body.

    Raises Refused, amqp:invalid-field, where one is not there in AMQP or cannot have its value.
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
        raise Refused("amqp:invalid-field", f"no such message: {error}") from error


def _composite(section: str, fields: Mapping[str, Any]) -> Any:
    known = {field.name: field for field in _SECTIONS[section].TYPES}
    for name, value in fields.items():
        if name not in known:
            raise Refused("amqp:invalid-field", f"{section}.{name} is none of AMQP: there are {', '.join(known)}")
        _check(f"{section}.{name}", known[name], value)
    return _SECTIONS[section](**{name.replace("-", "_"): one for name, one in fields.items()}) if fields else None


def _check(name: str, field: FieldType, value: Any) -> None:
    """Refuse what Python takes for a value of the field's type, and AMQP does not; writing refuses the rest."""
    kinds = field_kinds(field)
    if value is not None and not _is_of(kinds, value):
        raise Refused("amqp:invalid-field", f"{name!r} must be of type {' or '.join(kinds)}, found {value!r:.80}")


def _is_of(kinds: Collection[str], value: Any) -> bool:
    if isinstance(value, bool):
        return "boolean" in kinds
    if isinstance(value, Timestamp):
        return "timestamp" in kinds
    # No field is a number with a fraction, and a dict finds 5 by 5.0.
    return "boolean" not in kinds and not isinstance(value, float)
