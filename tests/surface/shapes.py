"""Key paths of values and of types: `hops[].muxer` for what a program finds, `horizon.offset` for what a file holds."""

import json
from collections.abc import Iterator
from typing import Any

import msgspec

__all__ = ["keys_in_text", "keys_of_type", "keys_of_value"]


def keys_of_value(value: Any, path: str = "") -> Iterator[str]:
    """Yield the path of each key in a decoded JSON document."""
    if isinstance(value, list):
        for one in value:
            yield from keys_of_value(one, f"{path}[]")
    elif isinstance(value, dict):
        for key, one in value.items():
            below = f"{path}.{key}" if path else key
            yield below
            yield from keys_of_value(one, below)


def keys_in_text(text: str) -> set[str]:
    """Return the paths in one JSON document, or in all lines of NDJSON."""
    try:
        documents = [json.loads(text)]
    except json.JSONDecodeError:
        documents = [json.loads(line) for line in text.splitlines()]
    return {key for document in documents for key in keys_of_value(document)}


def keys_of_type(kind: Any) -> list[str]:
    """Return the paths that JSON of a type has."""
    return sorted(_of(msgspec.inspect.type_info(kind), ""))


def _of(kind: Any, path: str) -> Iterator[str]:
    for one in getattr(kind, "fields", ()):
        below = f"{path}.{one.encode_name}" if path else one.encode_name
        yield below
        yield from _of(one.type, below)
    for inner in _inner(kind):
        yield from _of(inner, path if isinstance(kind, msgspec.inspect.UnionType) else f"{path}[]")


def _inner(kind: Any) -> tuple[Any, ...]:
    match kind:
        case msgspec.inspect.UnionType():
            return kind.types
        case msgspec.inspect.TupleType():
            return kind.item_types
        case msgspec.inspect.VarTupleType() | msgspec.inspect.ListType():
            return (kind.item_type,)
    return ()
