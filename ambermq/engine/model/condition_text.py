"""Arguments of attachments as people write them. Conditions are NAME, or NAME=VALUE.

    urgent              the property is there
    size=3              it is the number 3; likewise true, false and null
    region=eu           anything else is text
    code="3"            so is what stands in quotes, which JSON's escapes may go into
    "a=b"=3             a name in quotes, where it holds = or begins with a quote

Rule: parse_condition(condition_text(x)) is x, the type of its value included.
"""

import json
import math
from typing import Final

from ambermq.engine.errors import EngineError
from ambermq.engine.model.attachment import Argument, Condition, Value

__all__ = ["argument_text", "condition_text", "parse_condition"]

_QUOTE: Final = '"'
_DECODER: Final = json.JSONDecoder(parse_constant=lambda name: name)
"""NaN and Infinity are no JSON: they are text like other words."""


def parse_condition(text: str) -> Condition:
    """Return the condition that a text stands for; EngineError where it names no property."""
    name, rest = _name(text)
    if not name:
        raise EngineError(f"no condition: {text!r:.80} names no property; write NAME or NAME=VALUE")
    return Condition(name, True, _value(rest[1:])) if rest else Condition(name)


def condition_text(condition: Condition) -> str:
    """Return the text that stands for a condition; NaN, which nothing equals, has none of its own."""
    name = condition.name
    if "=" in name or name.startswith(_QUOTE):
        name = json.dumps(name, ensure_ascii=False)
    return f"{name}={_value_text(condition.value)}" if condition.has_value else name


def argument_text(argument: Argument) -> str:
    """Return an argument as people write it, empty where there is none."""
    if argument is None or isinstance(argument, str):
        return argument or ""
    return " and ".join(map(condition_text, argument))


def _name(text: str) -> tuple[str, str]:
    """Return the name, and the rest from its = on."""
    if not text.startswith(_QUOTE):
        name, equals, value = text.partition("=")
        return name, equals + value
    try:
        name, end = _DECODER.raw_decode(text)
    except ValueError as error:
        raise EngineError(f"no condition: the quoted name in {text!r:.80} has no end") from error
    rest = text[end:]
    if rest and not rest.startswith("="):
        raise EngineError(f"no condition: {text!r:.80} goes on with {rest!r:.20} behind its name; write = and a value")
    return str(name), rest


def _value(text: str) -> Value:
    try:
        value = _DECODER.decode(text)
    except ValueError:
        return text
    # Lists and maps are no values of conditions, and white space is text.
    return value if isinstance(value, Value) and text.strip() == text else text


def _value_text(value: Value) -> str:
    if isinstance(value, str):
        return value if _value(value) == value and isinstance(_value(value), str) else json.dumps(value)
    if isinstance(value, float) and math.isinf(value):
        return "1e999" if value > 0 else "-1e999"
    return json.dumps(value)
