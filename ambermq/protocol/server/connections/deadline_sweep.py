"""The sweep over the deadlines of all connections, in parts over most of its interval.

Rule 1. Each connection is checked once a sweep. 5,000 at once would hold messages for 10 ms, each second.
Rule 2. After a standstill of the process the deadlines of each connection are extended once, before they are checked.
Rule 3. The connections that a sweep has not reached are the first ones of the next.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol, final

__all__ = ["DeadlineSweep"]

_PARTS: Final = 40
_PART_MIN: Final = 20
"""The connections of a part, at least."""
_SHARE: Final = 0.8
"""The part of the interval in which the connections are checked."""


class SweptConnection(Protocol):
    """What the sweep needs of a connection."""

    peer: Any

    def extend_deadlines(self, stall_ms: int, now_ms: int) -> None:
        """Extend the deadlines by the time in which this process stood still."""

    def check_deadlines(self, now_ms: int) -> None:
        """Send a due heartbeat; drop a peer that is silent."""


@final
class DeadlineSweep:
    """The sweeps of one server."""

    __slots__ = ("_loop", "_part_count", "_pause_s", "_sockets", "_stall_ms", "_stall_of", "_timer", "_unchecked")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        sockets: Mapping[Any, SweptConnection],
        stall_of: Callable[[int], int],
        *,
        interval_ms: int,
    ) -> None:
        """`sockets` are the connections by their peers; `stall_of` returns how late the next sweep is at a time."""
        self._loop = loop
        self._sockets = sockets
        self._stall_of = stall_of
        self._pause_s = _SHARE * interval_ms / 1000 / _PARTS
        self._unchecked: list[SweptConnection] = []
        """The connections that the current sweep has not checked yet; the last one is next."""
        self._stall_ms = 0
        """How long the process had stood still before the current sweep."""
        self._part_count = _PART_MIN
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, now_ms: int) -> None:
        """Begin a sweep; the parts follow by themselves."""
        late = [one for one in self._unchecked if self._sockets.get(one.peer) is one]
        for socket in late if self._stall_ms else ():
            socket.extend_deadlines(self._stall_ms, now_ms)
        known = set(map(id, late))
        self._unchecked = [*(one for one in self._sockets.values() if id(one) not in known), *late]
        self._stall_ms = self._stall_of(now_ms)
        self._part_count = max(-(-len(self._unchecked) // _PARTS), _PART_MIN)
        self._check(now_ms)

    def end(self) -> None:
        """Check no more."""
        self._unchecked = []
        if self._timer is not None:
            self._timer.cancel()

    def _check(self, now_ms: int) -> None:
        """Check a part of the connections, and schedule the next part."""
        if self._timer is not None:
            self._timer.cancel()
        some, self._unchecked = self._unchecked[-self._part_count :], self._unchecked[: -self._part_count]
        for socket in reversed(some):
            if self._sockets.get(socket.peer) is socket:
                socket.extend_deadlines(self._stall_ms, now_ms)
                socket.check_deadlines(now_ms)
        if self._unchecked:
            self._timer = self._loop.call_later(self._pause_s, self._check_part)

    def _check_part(self) -> None:
        # An overdue sweep comes next: it extends the deadlines before they are checked.
        now_ms = time.monotonic_ns() // 1_000_000
        if not self._stall_of(now_ms):
            self._check(now_ms)
