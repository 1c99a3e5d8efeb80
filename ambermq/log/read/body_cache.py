"""The hot cache: the bodies of recently written records, first in, first out.

Its limits are a number of bytes, the overhead of each entry included, of bodies and of runs. Bodies leave a few seconds
after they were written: consumers that keep up have read them by then, and the memory of a burst is given back.
Large bodies leave when they are delivered: a second read is rare, and each keeps the whole read buffer alive of which
it is a view.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import chain, repeat
from typing import Final

from ambermq.log.buffer import Buffer

__all__ = ["AGED_MAX", "BODIES_MAX", "RUNS_MAX", "BodyCache"]

_ENTRY_OVERHEAD_BYTES: Final = 150
BODIES_MAX: Final = 32_768
"""The bodies in the cache. A backlog of small messages is soon longer, and is read from the disk at little cost."""
RUNS_MAX: Final = 4096
AGED_MAX: Final = 4000
"""The old bodies that one call of `age` drops, and the rest of their run: 2 ms. A call of `add` drops some too."""
_OLD_MIN: Final = 256
"""So many old bodies are dropped with a write, since a call for each would cost more than they do."""
_DROPPED_SHARE: Final = 64
"""Over the limit, one in this many runs is dropped in one step."""


class BodyCache:
    """Bodies of recent records, first in, first out."""

    __slots__ = ("_bodies", "_bytes_max", "_marks", "_next_offset", "_runs", "size_bytes")

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._bodies: dict[int, Buffer] = {}
        self._runs: deque[range] = deque()
        self._next_offset = 0
        self._marks = (0, 0)
        """The ends of what was written before the last two calls of `age`, the earlier one first."""
        self.size_bytes = 0
        """The bytes of the cached bodies, with 150 bytes of overhead for each entry."""

    def add(self, first_offset: int, bodies: Sequence[Buffer], *, body_bytes: int) -> None:
        """Add the bodies of consecutive records, `body_bytes` in total. A view keeps its whole buffer alive."""
        count = len(bodies)
        self._bodies.update(enumerate(bodies, first_offset))
        self._next_offset = first_offset + count
        self._runs.append(range(first_offset, self._next_offset))
        self.size_bytes += body_bytes + _ENTRY_OVERHEAD_BYTES * count
        if self._runs[0].start + _OLD_MIN < self._marks[0]:
            self._drop_old(_OLD_MIN + 2 * count)
        while self.size_bytes > self._bytes_max or len(self._bodies) > BODIES_MAX or len(self._runs) > RUNS_MAX:
            self._drop_oldest()

    def forget(self, offsets: Iterable[int]) -> None:
        """Drop bodies that are not needed again. Offsets that are not cached are ignored."""
        cached = self._bodies
        count = len(cached)
        dropped_bytes = sum(map(len, map(cached.pop, offsets, repeat(b""))))
        self.size_bytes -= dropped_bytes + _ENTRY_OVERHEAD_BYTES * (count - len(cached))

    def age(self) -> bool:
        """Drop bodies that were written before the call before the last one; return whether any are left.

        The caller calls it at an interval. A call drops at most about AGED_MAX bodies.
        """
        self._drop_old(AGED_MAX)
        self._marks = self._marks[1], self._next_offset
        return bool(self._bodies)

    def _drop_old(self, left: int) -> None:
        """Drop about `left` of the bodies that were written before the call of `age` before the last one."""
        end, runs, old = self._marks[0], self._runs, list[range]()
        while runs and left > 0 and runs[0].start < end:
            old.append(runs.popleft())
            left -= len(old[-1])
        self.forget(chain.from_iterable(old))

    def _drop_oldest(self) -> None:
        # A part of the runs at a time, so that a new message does not always evict an old one.
        runs = self._runs
        self.forget(chain.from_iterable([runs.popleft() for _ in range(1 + len(runs) // _DROPPED_SHARE)]))

    def get(self, offset: int) -> Buffer | None:
        """Return a body, or None if it is not cached."""
        return self._bodies.get(offset)

    def get_run(self, offsets: Sequence[int]) -> list[Buffer] | None:
        """Return all bodies, or None if at least one is not cached."""
        try:
            return list(map(self._bodies.__getitem__, offsets))
        except KeyError:
            return None

    def __len__(self) -> int:
        return len(self._bodies)
