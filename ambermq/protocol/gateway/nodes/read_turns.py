"""The turns of requests for whole messages: one request of a connection at a time has their bytes in memory."""

from collections import deque
from collections.abc import Callable
from typing import Final, Protocol, final

from ambermq.engine.errors import Refused
from ambermq.protocol.amqp10.spec import AmqpCondition

__all__ = ["ReadTurns"]

_WAITING_MAX: Final = 100


class _Sized(Protocol):
    @property
    def size(self) -> int: ...


@final
class ReadTurns:
    """The turns of one connection."""

    __slots__ = ("_holder", "_waiting")

    def __init__(self) -> None:
        self._holder: _Sized | None = None
        self._waiting: deque[tuple[_Sized, Callable[[], None]]] = deque()

    @property
    def size(self) -> int:
        """The bytes of the request that has the turn."""
        return 0 if self._holder is None else self._holder.size

    def enter(self, request: _Sized, begin: Callable[[], None]) -> None:
        """Call `begin` now or when the turn is free. Raises Refused if too many requests wait."""
        if self._holder is None:
            self._holder = request
            begin()
        elif len(self._waiting) < _WAITING_MAX:
            self._waiting.append((request, begin))
        else:
            why = f"{_WAITING_MAX} requests of the connection for messages wait already"
            raise Refused(AmqpCondition.RESOURCE_LIMIT_EXCEEDED, why)

    def leave(self, request: _Sized) -> None:
        """End the turn of a request, if it has it, and begin the next one."""
        if self._holder is not request:
            return
        self._holder = None
        if self._waiting:
            request, begin = self._waiting.popleft()
            self._holder = request
            begin()

    def forget(self) -> None:
        """Drop the requests that wait: the connection has ended."""
        self._waiting.clear()
