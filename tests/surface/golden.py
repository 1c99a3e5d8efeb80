"""The golden files: one a category, JSON with an item a line."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = ["difference", "golden", "text_of", "write"]

_PLACE = Path(__file__).parent / "golden"


def golden(category: str) -> Any:
    """Return a category as it was written."""
    return json.loads((_PLACE / f"{category}.json").read_text(encoding="utf-8"))


def write(category: str, found: Any) -> None:
    """Write a category's file."""
    _PLACE.mkdir(exist_ok=True)
    (_PLACE / f"{category}.json").write_text(text_of(found), encoding="utf-8")


def text_of(found: Any) -> str:
    """Return a category as its file has it; keys are sorted, lists are as they are."""
    return json.dumps(found, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def difference(category: str, expected: Any, found: Any) -> str:
    """Return what was added and what is gone, an item a line; empty where nothing is."""
    before, after = [*_items(expected)], [*_items(found)]
    gone = [f"  gone:  {one}" for one in before if one not in after]
    added = [f"  added: {one}" for one in after if one not in before]
    order = ["  the order is another"] if before != after and not gone and not added else []
    lines = [*gone, *added, *order]
    return "\n".join([f"{category}:", *lines]) if lines else ""


def _items(value: Any, path: str = "") -> Iterator[str]:
    """Yield each leaf with its path."""
    if isinstance(value, dict):
        for key in sorted(value):
            yield from _items(value[key], f"{path}{key} / ")
    elif isinstance(value, list):
        yield path
        for one in value:
            yield from _items(one, path)
    else:
        yield f"{path}{value}"
