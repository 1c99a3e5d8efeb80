"""The text form of an attachment's argument. A condition is NAME or NAME=VALUE.

    urgent              the property is present
    size=3              it is the number 3; likewise true, false and null
    region=eu           any other value is text
    code="3"            a value in quotes is text; it may contain JSON's escapes
    "a=b"=3             a name is quoted if it contains = or begins with a quote

Rule: parse_condition(condition_text(x)) is x, and the value keeps its type.
"""

import json
import math
from typing import Final

from ambermq.engine.errors import EngineError
from ambermq.engine.model.attachment import Argument, Condition, Value

__all__ = ["argument_text", "condition_text", "parse_condition"]

_QUOTE: Final = '"'
_DECODER: Final = json.JSONDecoder(parse_constant=lambda name: name)
"""NaN and Infinity are not JSON, so they are text like other words."""


def parse_condition(text: str) -> Condition:
    """Return the condition that a text describes. Raises EngineError if the text names no property."""
    name, rest = _name(text)
    if not name:
        raise EngineError(f"bad condition {text!r:.80}: it names no property; write NAME or NAME=VALUE")
    return Condition(name, True, _value(rest[1:])) if rest else Condition(name)


def condition_text(condition: Condition) -> str:
    """Return the text of a condition. NaN has no text of its own, because nothing equals it."""
    name = condition.name
    if "=" in name or name.startswith(_QUOTE):
        name = json.dumps(name, ensure_ascii=False)
    return f"{name}={_value_text(condition.value)}" if condition.has_value else name


def argument_text(argument: Argument) -> str:
    """Return the text of an argument; the text is empty if there is no argument."""
    if argument is None or isinstance(argument, str):
        return argument or ""
    return " and ".join(map(condition_text, argument))


def _name(text: str) -> tuple[str, str]:
    """Return the name and the rest of the text, which begins with = or is empty."""
    if not text.startswith(_QUOTE):
        name, equals, value = text.partition("=")
        return name, equals + value
    try:
        name, end = _DECODER.raw_decode(text)
    except ValueError as error:
        raise EngineError(f"bad condition {text!r:.80}: the quoted name has no closing quote") from error
    rest = text[end:]
    if rest and not rest.startswith("="):
        raise EngineError(f"bad condition {text!r:.80}: expected = after the quoted name, found {rest!r:.20}")
    return str(name), rest


def _value(text: str) -> Value:
    try:
        value = _DECODER.decode(text)
    except ValueError:
        return text
    # A condition cannot have a list or a map as its value, and white space is part of a text.
    return value if isinstance(value, Value) and text.strip() == text else text


def _value_text(value: Value) -> str:
    if isinstance(value, str):
        return value if _value(value) == value and isinstance(_value(value), str) else json.dumps(value)
    if isinstance(value, float) and math.isinf(value):
        return "1e999" if value > 0 else "-1e999"
    return json.dumps(value)
