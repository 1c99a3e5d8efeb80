"""How many muxers messages pass one after the other: the longest way from a muxer, in the one direction or the other.

Rule: whoever walks wiring walks it with a list ahead, never by recursion. A log may hold longer ways than attaching
allows today, and still routes.
"""

from collections.abc import Callable, Collection

__all__ = ["chain_length"]


def chain_length(start: int, next_to: Callable[[int], Collection[int]]) -> int:
    """Return the number of muxers on the longest way from `start`, itself counted.

    `next_to` tells which follow a muxer. Each is asked once; they make no circle.
    """
    lengths: dict[int, int] = {}
    ahead: list[tuple[int, Collection[int] | None]] = [(start, None)]
    while ahead:
        muxer, followers = ahead.pop()
        if followers is not None:
            lengths[muxer] = 1 + max([lengths[one] for one in followers], default=0)
        elif muxer not in lengths:
            followers = next_to(muxer)
            ahead.append((muxer, followers))
            ahead += [(one, None) for one in followers if one not in lengths]
    return lengths[start]
