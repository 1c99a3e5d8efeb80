"""The memory of this process: physical memory, the cgroup's limit, the limit of the address space (`ulimit -v`).

Rule 1. A limit that cannot be read is no limit.
Rule 2. The default of `memory_bytes_max` is a quarter of the least limit. Where little address space is left beside the
        process itself, it is at most half of that.
"""

import os
import resource
from pathlib import Path
from typing import Final

__all__ = ["address_space_left", "default_memory_bytes", "process_memory_max"]

_SHARE: Final = 4
_UNBOUNDED: Final = 1 << 62
_CGROUP_FILES: Final = ("memory.max", "memory.high", "memory/memory.limit_in_bytes")
_BYTES_MIN: Final = 8 << 20
"""The least budget, so that a broker in a small machine accepts some messages."""


def default_memory_bytes() -> int:
    """Return the budget for what peers make the broker hold, by the limits of this process."""
    return max(min(process_memory_max() // _SHARE, address_space_left() // 2), _BYTES_MIN)


def process_memory_max() -> int:
    """Return the memory that this process may use: the least of its limits."""
    return min(_physical_bytes(), _cgroup_bytes(), _address_space_bytes())


def address_space_left() -> int:
    """Return how much more address space this process may use; a very large number without a limit."""
    limit = _address_space_bytes()
    return limit if limit == _UNBOUNDED else limit - _mapped_bytes()


def _physical_bytes() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return _UNBOUNDED


def _address_space_bytes() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return _UNBOUNDED if soft == resource.RLIM_INFINITY else soft


def _mapped_bytes() -> int:
    try:
        return int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def _cgroup_bytes(root: Path = Path("/sys/fs/cgroup"), membership: Path = Path("/proc/self/cgroup")) -> int:
    """Return the least limit of this process' cgroup and of those above it, in both versions of cgroups."""
    places = {root}
    for name in _cgroup_names(membership):
        for place in (root / name, root / "memory" / name):
            places.update(each for each in (place, *place.parents) if each.is_relative_to(root))
    return min(_limit_in(place / file) for place in places for file in _CGROUP_FILES)


def _cgroup_names(membership: Path) -> set[str]:
    try:
        lines = membership.read_text().splitlines()
    except OSError:
        return set()
    return {line.split(":", 2)[2].strip("/") for line in lines if line.count(":") > 1}


def _limit_in(file: Path) -> int:
    try:
        text = file.read_text().strip()
    except OSError:
        return _UNBOUNDED
    # Version 1 writes a very large number for no limit, version 2 the word max.
    return min(int(text), _UNBOUNDED) if text.isdecimal() else _UNBOUNDED
