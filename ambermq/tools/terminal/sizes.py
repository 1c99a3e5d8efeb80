"""Sizes in bytes as text: `512MiB`, `2GB`, `4096`."""

import re
from typing import Final

__all__ = ["parse_size", "size_text"]

_SIZE: Final = re.compile(r"([0-9]{1,15})\s*(?:([KMGT])(i?))?B\Z|([0-9]{1,18})\Z", re.IGNORECASE)
_POWERS: Final = {"K": 1, "M": 2, "G": 3, "T": 4}
_UNITS: Final = ("B", "KiB", "MiB", "GiB")


def parse_size(text: str) -> int | None:
    """Return the number of bytes in a text, None if it is not a size; `KB` is 1000, `KiB` is 1024."""
    found = _SIZE.match(text.strip())
    if found is None:
        return None
    if found[4]:
        return int(found[4])
    factor: int = (1024 if found[3] else 1000) ** _POWERS.get((found[2] or "").upper(), 0)
    return int(found[1]) * factor


def size_text(size: int) -> str:
    """Return a number of bytes as text, such as `12.5 MiB`."""
    value, unit = float(size), _UNITS[0]
    for name in _UNITS[1:]:
        if value < 1024:
            break
        value, unit = value / 1024, name
    return f"{size} B" if unit == "B" else f"{value:,.1f} {unit}"
