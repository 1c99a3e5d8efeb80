"""The hot cache: bodies as they were written, first in, first out.

It is bounded by bytes, with the overhead of each entry counted, and by the number of runs. Bodies that were delivered
leave early: hardly anybody asks twice, and large ones keep alive the chunk that they were read into.
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
"""One in so many runs goes at once when there is too much."""


class BodyCache:
    """Bodies of recent records, first in, first out."""

    __slots__ = ("_bodies", "_bytes_max", "_runs", "size_bytes")

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._bodies: dict[int, Buffer] = {}
        self._runs: deque[range] = deque()
        self.size_bytes = 0
        """What is held, with 150 bytes of overhead an entry."""

    def keep(self, first_offset: int, bodies: Sequence[Buffer], *, body_bytes: int) -> None:
        """Take the bodies of consecutive records, `body_bytes` in all. A view keeps alive all of its buffer."""
        count = len(bodies)
        self._bodies.update(enumerate(bodies, first_offset))
        self._runs.append(range(first_offset, first_offset + count))
        self.size_bytes += body_bytes + _ENTRY_OVERHEAD_BYTES * count
        while self.size_bytes > self._bytes_max or len(self._runs) > RUNS_MAX:
            self._drop_oldest()

    def forget(self, offsets: Iterable[int]) -> None:
        """Drop bodies that nobody will ask for again; offsets that are not held are passed over."""
        held = self._bodies
        count = len(held)
        gone_bytes = sum(map(len, map(held.pop, offsets, repeat(b""))))
        self.size_bytes -= gone_bytes + _ENTRY_OVERHEAD_BYTES * (count - len(held))

    def _drop_oldest(self) -> None:
        # A share of them at a time, so that not each message that comes alone has to push out another.
        runs = self._runs
        self.forget(chain.from_iterable([runs.popleft() for _ in range(1 + len(runs) // _DROPPED_SHARE)]))

    def get(self, offset: int) -> Buffer | None:
        """Return a body, None where it is not held."""
        return self._bodies.get(offset)

    def get_run(self, offsets: Sequence[int]) -> list[Buffer] | None:
        """Return all bodies, None where at least one is not held."""
        try:
            return list(map(self._bodies.__getitem__, offsets))
        except KeyError:
            return None

    @property
    def run_count(self) -> int:
        """Runs that it knows, those that have left by themselves included."""
        return len(self._runs)

    def __len__(self) -> int:
        return len(self._bodies)
