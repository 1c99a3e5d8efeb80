"""The interpreter of a run: builds of the same version differ in speed by a fifth and more."""

import platform
import time
from typing import Final

__all__ = ["describe_interpreter"]

_STEPS: Final = 100_000
_TRIES: Final = 5


def describe_interpreter() -> str:
    """Return its kind, version and compiler, and the time for a step of a plain loop, the best of five tries."""
    best = min(_loop_seconds() for _ in range(_TRIES))
    kind, version = platform.python_implementation(), platform.python_version()
    return f"{kind} {version}, {platform.python_compiler()}, {best / _STEPS * 1e9:.0f} ns a step of a loop"


def _loop_seconds() -> float:
    began = time.perf_counter()
    counts: dict[int, int] = {}
    for step in range(_STEPS):
        counts[step & 1023] = step + 1
    return time.perf_counter() - began
