"""The timers of all queues of one kind, and which of them are due first."""

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import final

from ambermq.engine.loop.schedule import FOREVER_US
from ambermq.engine.loop.timers.block_timers import NEVER, SHIFT, SPARE, BlockTimers
from ambermq.engine.model.queue import Queue
from ambermq.snapshot.persistent_column import PersistentColumn

__all__ = ["TimerHeads"]

Taken = tuple[list[int], int]
"""Numbers or entries of messages, and how many messages taking them counts for."""


@final
class TimerHeads:
    """The timers of queues, by queue. All times are elapsed times in microseconds."""

    __slots__ = ("_column_of", "_heads", "queues")

    def __init__(self, column_of: Callable[[Queue], PersistentColumn]) -> None:
        """Begin without any; `column_of` gives the times of a queue."""
        self._column_of = column_of
        self.queues: dict[int, BlockTimers] = {}
        self._heads: list[tuple[int, int]] = []
        """A heap of the first times, each with its queue; it may have others."""

    def next_us(self, tick_us: int) -> int:
        """Return the time of the first timer, as a multiple of `tick_us`; FOREVER_US without one."""
        time_us = self._first_us()
        return time_us if time_us == FOREVER_US else -(-time_us // tick_us) * tick_us

    def _first_us(self) -> int:
        heads, queues = self._heads, self.queues
        while heads:
            time_us, queue = heads[0]
            timers = queues.get(queue)
            if timers is not None and timers.first >> SHIFT == time_us:
                return time_us
            heappop(heads)
        return FOREVER_US

    def set(self, queue: int, timers: BlockTimers) -> None:
        """Set the timers of a queue."""
        self.queues[queue] = timers
        self.note(queue, timers)

    def forget(self, queue: int) -> None:
        """Forget the timers of a queue that is gone."""
        self.queues.pop(queue, None)

    def note(self, queue: int, timers: BlockTimers) -> None:
        """Note that a queue has another first timer."""
        heappush(self._heads, (timers.first >> SHIFT, queue))
        if len(self._heads) > 2 * len(self.queues) + SPARE:
            self._heads = [(one.first >> SHIFT, queue) for queue, one in self.queues.items()]
            heapify(self._heads)

    def take(
        self,
        now_us: int,
        find: Callable[[int], Queue | None],
        take: Callable[[int, BlockTimers, PersistentColumn], Taken],
    ) -> tuple[Queue | None, list[int], int] | None:
        """Return the queue with the first timer, what `take` takes of it, and how many messages that counts for.

        `take` gets the id of the queue, its timers and its times.
        Return None if no timer is due. The queue is None if it was deleted.
        """
        if self._first_us() > now_us:
            return None
        queue_id = self._heads[0][1]
        queue, timers = find(queue_id), self.queues[queue_id]
        numbers, spent = ([], 1) if queue is None else take(queue_id, timers, self._column_of(queue))
        if queue is None or timers.first == NEVER:
            del self.queues[queue_id]
        else:
            self.note(queue_id, timers)
        return queue, numbers, spent
