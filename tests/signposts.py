"""The links at the top of the checkout: signposts to the packages, never a second name of their modules."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

__all__ = ["ROOT", "SIGNPOSTS", "modules_by_signpost"]

ROOT: Final = Path(__file__).parent.parent
SIGNPOSTS: Final = ("engine", "log", "protocol", "snapshot", "tools")


def modules_by_signpost(names: Iterable[str]) -> list[str]:
    """Return the names of modules that were imported by a link, not from `ambermq`."""
    return sorted(name for name in names if name.partition(".")[0] in SIGNPOSTS)
