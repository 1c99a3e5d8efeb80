"""The hot cache: the bodies of recently written records, first in, first out.

Its limits are a number of bytes, the overhead of each entry included, and a number of runs. Delivered bodies leave
early: a second read is rare, and a large body keeps the whole read buffer alive of which it is a view.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import chain, repeat
from typing import Final

from ambermq.log.buffer import Buffer

__all__ = ["RUNS_MAX", "BodyCache"]

_ENTRY_OVERHEAD_BYTES: Final = 150
RUNS_MAX: Final = 4096
_DROPPED_SHARE: Final = 64
"""Over the limit, one in this many runs is dropped in one step."""


class BodyCache:
    """Bodies of recent records, first in, first out."""

    __slots__ = ("_bodies", "_bytes_max", "_runs", "size_bytes")

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._bodies: dict[int, Buffer] = {}
        self._runs: deque[range] = deque()
        self.size_bytes = 0
        """The bytes of the cached bodies, with 150 bytes of overhead for each entry."""

    def add(self, first_offset: int, bodies: Sequence[Buffer], *, body_bytes: int) -> None:
        """Add the bodies of consecutive records, `body_bytes` in total. A view keeps its whole buffer alive."""
        count = len(bodies)
        self._bodies.update(enumerate(bodies, first_offset))
        self._runs.append(range(first_offset, first_offset + count))
        self.size_bytes += body_bytes + _ENTRY_OVERHEAD_BYTES * count
        while self.size_bytes > self._bytes_max or len(self._runs) > RUNS_MAX:
            self._drop_oldest()

    def forget(self, offsets: Iterable[int]) -> None:
        """Drop bodies that are not needed again. Offsets that are not cached are ignored."""
        cached = self._bodies
        count = len(cached)
        dropped_bytes = sum(map(len, map(cached.pop, offsets, repeat(b""))))
        self.size_bytes -= dropped_bytes + _ENTRY_OVERHEAD_BYTES * (count - len(cached))

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
