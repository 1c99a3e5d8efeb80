"""TOML as it is written: arrays of tables with plain values, which is all that we write. Pure.

    [[muxers]]
    name = "colours"
    property = ["urgent", "size=3"]

Rule: tomllib reads what was written as it was, types included. Text is a basic string, so that it stays on one line.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

__all__ = ["toml_text"]

_ESCAPES: Final = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}
_DELETE: Final = 0x7F


def toml_text(arrays: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """Return a document of arrays of tables; values are text, whole numbers, floats, booleans, and lists of them.

    An array without tables is left out: TOML has no other way to say it here.
    """
    return "\n".join("\n".join(_table(name, table)) + "\n" for name, tables in arrays.items() for table in tables)


def _table(name: str, table: Mapping[str, Any]) -> Iterator[str]:
    yield f"[[{_key(name)}]]"
    for key, value in table.items():
        yield f"{_key(key)} = {_value(value)}"


def _key(name: str) -> str:
    is_bare = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if is_bare else _quoted(name)


def _value(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return _quoted(value)
        case int():
            return str(int(value))
        case float():
            return _float(value)
        case list() | tuple():
            return f"[{', '.join(map(_value, value))}]"
    raise TypeError(f"TOML is written without {type(value).__name__}")


def _float(value: float) -> str:
    if math.isnan(value) or math.isinf(value):
        return repr(value)
    text = repr(float(value))
    return text if "." in text or "e" in text else f"{text}.0"


def _quoted(text: str) -> str:
    return f'"{"".join(map(_character, text))}"'


def _character(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    code = ord(character)
    return f"\\u{code:04x}" if code < ord(" ") or code == _DELETE else character
