"""What an update has changed of a queue or muxer, as text. Pure."""

from collections.abc import Mapping
from typing import Any

__all__ = ["differing", "values_text"]


def differing(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return the values that are not what they were, by name: before and after."""
    return {name: (old, after[name]) for name, old in before.items() if after[name] != old}


def values_text(values: Mapping[str, tuple[Any, Any]]) -> str:
    """Return values before and after on one line, such as `probability 0.9 -> 0.5, seed 0 -> 7`."""
    return ", ".join(f"{name} {old} -> {new}" for name, (old, new) in values.items())
