"""The guard of the memory budget: it holds senders back while peers hold much, and closes the largest holders.

    held < 80 %        nothing
    80 % of bytes_max  sessions are closed to new deliveries in all virtual hosts; links keep their credit
    ... for stall_ms   without progress: the largest holder is closed, then the next
    100 %              the largest holder is closed at once, then the next

Rule 1. Only senders are held back: settlements, drains, requests and consumers that read go on.
Rule 2. Before a connection is closed all of them are surveyed: output that was read meanwhile does not count.
Rule 3. Progress is a share of the budget that complete deliveries gave back: a small delivery now and then is none.
Rule 4. All suspended links are one holder. If it is the largest, the largest of them end.
Rule 5. Below the bound of the address space the same is done before an allocation fails.
"""

from collections.abc import Callable, Iterable
from typing import Final, Protocol, final

import structlog

from ambermq.protocol.amqp10.memory_budget import MemoryAccount, MemoryBudget
from ambermq.protocol.amqp10.performatives.classes import Error
from ambermq.protocol.amqp10.spec import AmqpCondition
from ambermq.protocol.amqp10.types.values import Symbol
from ambermq.protocol.resources.resource import Resource

__all__ = ["GuardedServer", "GuardedSocket", "MemoryGuard", "SuspendedPort"]

_CHECK_MS: Final = 100
"""The interval of checks while senders are held back."""
_SURVEY_COUNT: Final = 100
"""The connections of a part of a survey, at least: 500 would hold messages for milliseconds."""
_SURVEY_PARTS: Final = 40
_SURVEY_PAUSE_MS: Final = 20
"""The pause after a part."""
_PROGRESS_SHARE: Final = 64
_LOG_MS: Final = 1000
"""At most one line of each kind is logged in this time."""


class GuardedSocket(Protocol):
    """A connection, as the guard uses it."""

    @property
    def memory(self) -> MemoryAccount:
        """What the connection makes the broker hold."""

    @property
    def is_ending(self) -> bool:
        """Whether the broker has closed the connection, or its transport is closing."""

    def survey(self) -> None:
        """Count what is not counted as it changes: output, unsettled deliveries, answers."""

    def end_overdrawn(self, error: Error) -> None:
        """Close the connection, and free what the broker holds for it."""


class GuardedServer(Protocol):
    """What the guard needs of the server."""

    def guarded(self) -> Iterable[GuardedSocket]:
        """Return the connections of all virtual hosts."""

    def set_low(self, resource: Resource, *, is_low: bool) -> None:
        """Hold the producers of all virtual hosts back because of a resource, or end that."""

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> None:
        """Schedule a call after a delay."""

    def now_ms(self) -> int:
        """Return the time of the monotonic clock."""


class SuspendedPort(Protocol):
    """The suspended links of all virtual hosts."""

    def held_bytes(self) -> int:
        """Return an estimate of their memory."""

    def end_largest(self, size: int) -> int:
        """End links that hold this many bytes, or all; return what they held."""


@final
class MemoryGuard:
    """The state of one server's budget."""

    def __init__(
        self,
        server: GuardedServer,
        suspended: SuspendedPort,
        *,
        bytes_max: int,
        message_bytes_max: int,
        stall_ms: int,
    ) -> None:
        self.budget = MemoryBudget(bytes_max)
        self.is_low = False
        """Whether senders are held back."""
        self.closed_count = 0
        """The connections that were closed because of the budget."""
        self._server = server
        self._suspended = suspended
        self._message_bytes_max = message_bytes_max
        self._stall_ms = stall_ms
        self._progress_ms = 0
        self._progress_bytes = 0
        self._unsurveyed: list[GuardedSocket] = []
        self._is_surveying = False
        self._survey_count = _SURVEY_COUNT
        self._is_timed = False
        self._is_tight = False
        self._logged_ms: dict[str, int] = {}

    def survey_soon(self) -> None:
        """Survey all connections, in parts."""
        if not self._is_surveying:
            self._is_surveying, self._unsurveyed = True, list(self._server.guarded())
            self._survey_count = max(len(self._unsurveyed) // _SURVEY_PARTS, _SURVEY_COUNT)
            self._survey_part()

    def set_tight(self, *, is_tight: bool) -> None:
        """Note whether the process is close to the bound of its address space."""
        self._is_tight = is_tight
        self.check()

    def check(self) -> None:
        """Hold senders back, close the largest holders, or end both; called whenever the budget is high."""
        now_ms = self._server.now_ms()
        if self._is_high() is not self.is_low:
            self._survey_all()
        if self._is_high():
            if not self.is_low:
                self._begin(now_ms)
            self._relieve(now_ms)
        elif self.is_low:
            self._end(now_ms)
        if self.is_low and not self._is_timed:
            self._is_timed = True
            self._server.call_later(_CHECK_MS, self._timer_fired)

    def _is_high(self) -> bool:
        return self._is_tight or self.budget.held_bytes >= self.budget.high_bytes

    def _timer_fired(self) -> None:
        self._is_timed = False
        self.check()

    def _begin(self, now_ms: int) -> None:
        self.is_low, self._progress_ms = True, now_ms
        self._progress_bytes = self.budget.completed_bytes
        self._server.set_low(Resource.MEMORY, is_low=True)
        self._log("warning", "producers held back", now_ms)

    def _end(self, now_ms: int) -> None:
        self.is_low = False
        self._server.set_low(Resource.MEMORY, is_low=False)
        self._log("info", "producers continue", now_ms)

    def _relieve(self, now_ms: int) -> None:
        """Close holders while the budget is exceeded, and one if nothing has gone on for stall_ms."""
        budget = self.budget
        if budget.held_bytes >= budget.bytes_max:
            self._survey_all()
        while budget.held_bytes >= budget.bytes_max and self._close_largest("the budget is used up", now_ms):
            pass
        if budget.completed_bytes - self._progress_bytes >= budget.bytes_max // _PROGRESS_SHARE:
            self._progress_ms, self._progress_bytes = now_ms, budget.completed_bytes
        is_stalled = now_ms - self._progress_ms >= self._stall_ms
        if self._is_high() and (is_stalled or self._is_tight):
            self._survey_all()
            why = "the address space is used up" if self._is_tight else f"no delivery ended within {self._stall_ms} ms"
            self._close_largest(why, now_ms)

    def _close_largest(self, why: str, now_ms: int) -> bool:
        """Close the connection that holds most; return False if there is none."""
        sockets = [socket for socket in self._server.guarded() if socket.memory.held_bytes]
        live = [socket for socket in sockets if not socket.is_ending]
        most_bytes = max([socket.memory.held_bytes for socket in sockets], default=0)
        if self.budget.suspended_bytes > most_bytes:
            return self._end_suspended(why, now_ms)
        if not sockets:
            return False
        largest = max(live or sockets, key=lambda socket: socket.memory.rank(self._message_bytes_max))
        held_bytes = largest.memory.held_bytes
        description = f"this connection makes the broker hold {held_bytes} bytes: {why} (memory_bytes_max)"
        largest.end_overdrawn(Error(condition=Symbol(AmqpCondition.RESOURCE_LIMIT_EXCEEDED), description=description))
        self.closed_count += 1
        self._log("warning", "connection closed", now_ms, reason_of_end=why, connection_bytes=held_bytes)
        return largest.memory.held_bytes < held_bytes

    def _end_suspended(self, why: str, now_ms: int) -> bool:
        """End suspended links until the budget is low, or all of them."""
        held_bytes = self.budget.suspended_bytes
        ended_bytes = self._suspended.end_largest(self.budget.held_bytes - self.budget.high_bytes + 1)
        self.budget.survey_suspended(max(held_bytes - ended_bytes, 0))
        self._log("warning", "suspended links ended", now_ms, reason_of_end=why, suspended_bytes=held_bytes)
        return ended_bytes > 0

    def _survey_all(self) -> None:
        self.budget.survey_suspended(self._suspended.held_bytes())
        for socket in self._server.guarded():
            socket.survey()

    def _survey_part(self) -> None:
        count = self._survey_count
        part, self._unsurveyed = self._unsurveyed[:count], self._unsurveyed[count:]
        for socket in part:
            socket.survey()
        if self._unsurveyed:
            self._server.call_later(_SURVEY_PAUSE_MS, self._survey_part)
            return
        self._is_surveying = False
        self.budget.survey_suspended(self._suspended.held_bytes())
        if self._is_high():
            self.check()

    def _log(self, level: str, event: str, now_ms: int, **values: object) -> None:
        """Log a line, at most one of its kind in a second."""
        if now_ms - self._logged_ms.get(event, -_LOG_MS) >= _LOG_MS:
            self._logged_ms[event] = now_ms
            held_bytes, bytes_max = self.budget.held_bytes, self.budget.bytes_max
            line = {"reason": Resource.MEMORY.value, "held_bytes": held_bytes, "memory_bytes_max": bytes_max, **values}
            getattr(structlog.get_logger(), level)(event, **line)
