"""The length of the longest chain of muxers from one muxer, upstream or downstream.

Rule: code that walks the wiring uses a stack of its own, never recursion. A log may have longer chains than the present
limit allows, and they still route.
"""

from collections.abc import Callable, Collection

__all__ = ["chain_length"]


def chain_length(start: int, next_to: Callable[[int], Collection[int]]) -> int:
    """Return the number of muxers on the longest chain from `start`, with `start` itself.

    `next_to` returns the muxers that follow a muxer. It is called once for each; the muxers have no cycle.
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
