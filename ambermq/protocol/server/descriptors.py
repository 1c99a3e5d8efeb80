"""The descriptors of the process: how many the connections may use, so that the logs never lack one.

Rule 1. A reserve is for everything else: segments, indexes, snapshots, child processes, listening sockets.
Rule 2. Few descriptors are shared: the connections get at least a quarter of them.
"""

from typing import Final

__all__ = ["connections_for", "reserve_for"]

_RESERVE: Final = 64
_RESERVE_PER_VHOST: Final = 8


def reserve_for(vhosts: int, descriptors_max: int) -> int:
    """Return the descriptors that the connections of a broker with so many virtual hosts leave free."""
    return min(_RESERVE + _RESERVE_PER_VHOST * vhosts, descriptors_max * 3 // 4)


def connections_for(vhosts: int, descriptors_max: int) -> int:
    """Return the most connections of a broker with so many virtual hosts."""
    return descriptors_max - reserve_for(vhosts, descriptors_max)
