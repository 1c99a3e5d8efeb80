"""The settings of a queue or muxer that an update can change: their values by name, and changes as text. Pure."""

from collections.abc import Mapping
from typing import Any

from ambermq.engine.model.muxer import Muxer
from ambermq.engine.model.queue import Queue
from ambermq.engine.settings.setting_table import value_text, values_of_settings

__all__ = ["differing", "values_of", "values_text"]


def values_of(one: Queue | Muxer) -> dict[str, Any]:
    """Return the values that an update can change, by name."""
    if isinstance(one, Queue):
        return values_of_settings(one.settings)
    return {"probability": one.options.probability, "seed": one.options.seed}


def differing(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return the values that differ, by name: before and after."""
    return {name: (old, after[name]) for name, old in before.items() if after[name] != old}


def values_text(values: Mapping[str, tuple[Any, Any]]) -> str:
    """Return values before and after on one line, such as `probability 0.9 -> 0.5, seed 0 -> 7`."""
    return ", ".join(f"{name} {value_text(old)} -> {value_text(new)}" for name, (old, new) in values.items())
