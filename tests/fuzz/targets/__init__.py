"""The targets, one a module; each module has a TARGET, and `load_target` finds it by the name of its module."""

from importlib import import_module
from pathlib import Path
from typing import Final

from tests.fuzz.target import Target

__all__ = ["TARGET_NAMES", "load_target"]

TARGET_NAMES: Final = tuple(sorted(path.stem for path in Path(__file__).parent.glob("*.py") if path.stem != "__init__"))
"""The targets in the order in which they run."""


def load_target(name: str) -> Target:
    """Import a target. Its parser is imported with it, so that a fuzzer can instrument both."""
    target = import_module(f"{__name__}.{name}").TARGET
    assert isinstance(target, Target)
    return target
