"""A target of the fuzzer, and the bounds of one input.

Rule 1. CPU time is measured, not wall time: a busy machine is no finding.
Rule 2. Memory is the growth of the largest resident set of the process. So each growth is charged to the first input
        that needs it, and an input within the memory of earlier ones costs nothing.
"""

import resource
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

__all__ = ["BYTES_MAX", "MEMORY_MAX", "SECONDS_MAX", "BoundExceeded", "Target", "run_input"]

SECONDS_MAX: Final = 1.0
"""The CPU time of one input."""
MEMORY_MAX: Final = 128 << 20
"""The memory of one input."""
BYTES_MAX: Final = 8192
"""The longest input that the fuzzer makes."""


class BoundExceeded(Exception):
    """An input took too much time or memory."""


@dataclass(frozen=True, slots=True)
class Target:
    """One parser with what the fuzzer begins with."""

    run: Callable[[bytes], None]
    """Parses an input; an exception is a finding."""
    seeds: Callable[[], Iterable[bytes]]
    """Returns the first inputs, the same each time."""
    words: tuple[bytes, ...] = ()
    """The dictionary: bytes that the fuzzer inserts."""


def run_input(target: Target, data: bytes, *, slowness: float = 1.0) -> None:
    """Run one input in code that is slower by a factor. Raises what the target raises, and BoundExceeded."""
    peak, began = _peak_bytes(), time.thread_time()
    target.run(data)
    seconds, grown = time.thread_time() - began, _peak_bytes() - peak
    if seconds > SECONDS_MAX * slowness:
        allowed = f"at most {SECONDS_MAX * slowness:g} s are allowed"
        raise BoundExceeded(f"{len(data)} bytes took {seconds:.1f} s of CPU time, {allowed}")
    if grown > MEMORY_MAX:
        raise BoundExceeded(f"{len(data)} bytes took {grown >> 20} MiB, at most {MEMORY_MAX >> 20} MiB are allowed")


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
