"""Values of a script: patterns, durations, numbers and texts with variables. Pure."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from ambermq.protocol.amqp10.performatives.base import Composite

__all__ = ["duration_s", "field_of", "filled", "is_match", "switch"]

_DURATION: Final = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)(ms|s|min)", re.ASCII)
_SECONDS: Final = {"ms": 0.001, "s": 1.0, "min": 60.0}
_SWITCH: Final = {"true": True, "yes": True, "false": False, "no": False}


def is_match(pattern: str, text: str) -> bool:
    """Return whether a text fits a pattern, in which `*` stands for any characters."""
    return _compiled(pattern).fullmatch(text) is not None


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    # The atomic groups do not go back: a match takes linear time in the text for each star.
    first, *rest = (re.escape(part) for part in pattern.split("*"))
    if not rest:
        return re.compile(first, re.DOTALL)
    middle = "".join(f"(?>.*?{part})" for part in rest[:-1])
    return re.compile(f"{first}{middle}.*{rest[-1]}", re.DOTALL)


def duration_s(text: str) -> float:
    """Return the seconds of `500ms`, `5s` or `2min`; raise ValueError for another text."""
    found = _DURATION.fullmatch(text)
    if found is None:
        raise ValueError(f"expected a duration such as 500ms or 5s, found {text!r}")
    return float(found[1]) * _SECONDS[found[2]]


def switch(text: str) -> bool:
    """Return the value of `true` or `false`; raise ValueError for another text."""
    if text not in _SWITCH:
        raise ValueError(f"expected true or false, found {text!r}")
    return _SWITCH[text]


def filled(text: str, variables: Mapping[str, object]) -> str:
    """Return a text with its variables, such as `{n}`; other braces stay."""
    for name, value in variables.items():
        text = text.replace(f"{{{name}}}", str(value))
    return text


def field_of(composite: Composite, path: str) -> str | None:
    """Return a field as text, by names of the specification with dots: `error.condition`; None if it is not set."""
    value: Any = composite
    for name in path.split("."):
        attribute = name.replace("-", "_")
        if isinstance(value, Composite):
            if attribute not in value.FIELDS:
                raise ValueError(f"{value.TYPE} has no field {name!r}: expected {', '.join(_names(value))}")
            value = getattr(value, attribute)
        elif isinstance(value, dict):
            value = value.get(name)
        else:
            return None
    return _text(value)


def _names(composite: Composite) -> list[str]:
    return [attribute.replace("_", "-") for attribute in composite.FIELDS]


def _text(value: Any) -> str | None:
    match value:
        case None:
            return None
        case bool():
            return str(value).lower()
        case bytes():
            return f"0x{value.hex()}"
        case int():
            return str(int(value))
        case Composite():
            return value.TYPE
        case _:
            return str(value)
