"""The effective configuration as TOML: tables and keys with their values, each with its source in a comment. Pure."""

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

__all__ = ["toml_of"]


def toml_of(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return a TOML text of the rows of `config show`. Templates are in the file alone: a comment has their names."""
    return "\n\n".join("\n".join(_table(name, list(each))) for name, each in groupby(rows, _table_of)) + "\n"


def _table_of(row: Mapping[str, Any]) -> str:
    return str(row["key"]).partition(".")[0]


def _table(name: str, rows: list[Mapping[str, Any]]) -> Iterator[str]:
    if name == "templates":
        yield f"# templates: {_value(rows[0]['value'])}"
        return
    yield f"[{name}]"
    for row in rows:
        key = str(row["key"]).partition(".")[2]
        is_bare = key.isascii() and key.replace("_", "").replace("-", "").isalnum()
        yield f"{key if is_bare else _value(key)} = {_value(row['value'])}  # {_comment(row['source'])}"


def _value(value: Any) -> str:
    """Return a value in TOML: of text, lists, numbers and flags it is the JSON, with DEL escaped."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _comment(text: Any) -> str:
    return _value(str(text))[1:-1]
