"""Entries that leave the tables of a state, by name or by key."""

from collections.abc import Iterable
from typing import Any

from ambermq.snapshot.persistent_map import PersistentMap

__all__ = ["without_keys", "without_name"]


def without_name(names: "PersistentMap[Any, int]", name: object, one: int) -> "PersistentMap[Any, int]":
    """Return names without `name` if it still belongs to the object `one`; another object may have the name now."""
    return names.delete(name) if names.get(name) == one else names


def without_keys(table: "PersistentMap[int, Any]", keys: Iterable[int]) -> "PersistentMap[int, Any]":
    """Return a table without those of `keys` that it has."""
    for key in keys:
        if key in table:
            table = table.delete(key)
    return table
