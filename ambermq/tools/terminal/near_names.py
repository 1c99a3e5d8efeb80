"""The names that a person may have meant by a name that does not exist."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

__all__ = ["near_advice"]

_COUNT: Final = 3
_CHARACTERS_MAX: Final = 80
"""Of a name in the advice."""


def near_advice(name: str, known: Iterable[str]) -> str:
    """Return a question with the nearest of the known names, empty if none is near."""
    near = get_close_matches(name, known, _COUNT)
    return f"did you mean {' or '.join(f'{one!r:.{_CHARACTERS_MAX}}' for one in near)}?" if near else ""
