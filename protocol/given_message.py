"""A message of given fields, by the names that conditions have for them: what routing would see of it.

    colour = "red"              application-properties      header.priority = 9         header
    annotations.x = 1           message-annotations         properties.subject = "eu"   properties

Rule: it is written as a client would write it, so that what matching makes of it is what it makes of a message.
"""

from collections.abc import Mapping
from typing import Any, Final

from engine.errors import Refused
from protocol.errors import LocalError
from protocol.message import Message
from protocol.performatives import Header, Properties

__all__ = ["given_message"]

_COMPOSITES: Final[Mapping[str, type[Header | Properties]]] = {"header": Header, "properties": Properties}


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
    kind = _COMPOSITES[section]
    names = {attribute.replace("_", "-"): attribute for attribute in kind.FIELDS}
    for name in fields:
        if name not in names:
            known = ", ".join(names)
            raise Refused("amqp:invalid-field", f"{section}.{name} is none of AMQP: there are {known}")
    return kind(**{names[name]: value for name, value in fields.items()}) if fields else None
