"""The fields of management requests: a name, a number, a flag, or a refusal that says what was expected.

Rule: in Python booleans and timestamps are whole numbers. Here they are not, as in AMQP.
"""

import sys
from collections.abc import Mapping
from typing import Any, Final

from ambermq.engine.errors import Refused
from ambermq.protocol.amqp10.types.values import Timestamp

__all__ = [
    "NO_NUMBERS",
    "flag_field",
    "is_number",
    "name_property",
    "number_field",
    "refuse_read_only",
    "refuse_unknown",
    "user_of",
]

NO_NUMBERS: Final = (bool, Timestamp)
"""Subclasses of int that are not numbers in AMQP."""


def name_property(properties: Mapping[str, Any], noun: str) -> str:
    """Return the property `name` of a request. Raises Refused if it has none."""
    name = properties.get("name")
    if not isinstance(name, str) or not name:
        raise Refused("amqp:invalid-field", f"the application property `name` must be the name of the {noun}")
    return str(name)


def is_number(value: object) -> bool:
    """Return whether a value is a whole number of AMQP."""
    return isinstance(value, int) and not isinstance(value, NO_NUMBERS)


def number_field(values: Mapping[str, Any], key: str, default: int) -> int:
    """Return a whole number of at least 0; `default` if the field is missing. Raises Refused for another value."""
    value = values.get(key, default)
    if not is_number(value) or not 0 <= value <= sys.maxsize:
        raise Refused("amqp:invalid-field", f"{key!r} must be a number from 0 to {sys.maxsize}, found {value!r:.80}")
    return int(value)


def flag_field(values: Mapping[str, Any], key: str, *, default: bool = False) -> bool:
    """Return a flag; `default` if the field is missing or null. Raises Refused for another value."""
    value = values.get(key)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise Refused("amqp:invalid-field", f"{key!r} must be true or false, found {value!r:.80}")
    return value


def refuse_unknown(body: Mapping[str, Any], noun: str, *known: str) -> None:
    """Raise Refused for an unknown attribute: a client would believe that the broker has set it."""
    unknown = sorted(str(key) for key in body if key not in known)
    if unknown:
        expected = f": expected {', '.join(known)}" if known else ""
        raise Refused("amqp:invalid-field", f"a {noun} has no attribute {', '.join(unknown)}{expected}")


def refuse_read_only(body: Mapping[str, Any], noun: str, *known: str) -> None:
    """Raise Refused for an attribute that UPDATE cannot set, such as a count, whatever its value is."""
    read_only = sorted(str(key) for key in body if key not in known)
    if read_only:
        found = ", ".join(read_only)
        expected = f"UPDATE of a {noun} sets {', '.join(known)}"
        raise Refused("amqp:invalid-field", f"{expected}, found {found}: leave out what does not change")


def user_of(request: Any) -> str:
    """Return the user of a request's connection; empty without a user name."""
    username: str | None = request.peer.identity.username
    return username or ""
