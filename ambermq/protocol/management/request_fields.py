"""What a management request must say: names, numbers and yes or no, or one clear refusal.

Rule: Python takes booleans and timestamps for whole numbers, AMQP and we do not.
"""

import sys
from collections.abc import Mapping
from typing import Any, Final

from ambermq.engine.errors import Refused
from ambermq.protocol.amqp10.types.values import Timestamp

__all__ = ["NO_NUMBERS", "asked_flag", "asked_name", "asked_number", "refuse_unknown", "refuse_unsaid"]

NO_NUMBERS: Final = (bool, Timestamp)
"""Subclasses of int that nobody means a number by."""


def asked_name(asked: Mapping[str, Any], noun: str) -> str:
    """Return the name that a request is about; Refused where it has none."""
    name = asked.get("name")
    if not isinstance(name, str) or not name:
        raise Refused("amqp:invalid-field", f"the application property `name` must be the {noun}'s name")
    return str(name)


def asked_number(values: Mapping[str, Any], key: str, default: int) -> int:
    """Return a number from 0 on, `default` where there is none; Refused where it is something else."""
    value = values.get(key, default)
    if not isinstance(value, int) or isinstance(value, NO_NUMBERS) or not 0 <= value <= sys.maxsize:
        raise Refused("amqp:invalid-field", f"{key!r} must be a number from 0 to {sys.maxsize}, found {value!r:.80}")
    return int(value)


def asked_flag(values: Mapping[str, Any], key: str, *, default: bool = False) -> bool:
    """Return true or false, `default` where there is none, or null; Refused where it is something else."""
    value = values.get(key)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise Refused("amqp:invalid-field", f"{key!r} must be true or false, found {value!r:.80}")
    return value


def refuse_unknown(body: Mapping[str, Any], noun: str, *known: str) -> None:
    """Refuse attributes other than those that there are: what is ignored is taken for done."""
    unknown = sorted(str(key) for key in body if key not in known)
    if unknown:
        only = f": only {', '.join(known)}" if known else ""
        raise Refused("amqp:invalid-field", f"a {noun} has no attribute {', '.join(unknown)}{only}")


def refuse_unsaid(body: Mapping[str, Any], noun: str, *known: str) -> None:
    """Refuse attributes that nobody says of a thing, such as its counts, whatever their values are."""
    unsaid = sorted(str(key) for key in body if key not in known)
    if unsaid:
        expected = f"an UPDATE of a {noun} says {', '.join(known)}"
        raise Refused("amqp:invalid-field", f"{expected}, found {', '.join(unsaid)}: leave out what is not to change")
