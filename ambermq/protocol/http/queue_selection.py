"""The queues that get metrics of their own: the deepest of all virtual hosts. The others are summed.

Rule 1. A state is immutable, so a selection over several turns of the event loop sees one moment of each virtual host.
Rule 2. A temporary queue never has metrics of its own: its name is never used again, and each name is kept for ever by
        the system that reads them.
"""

import heapq
from collections.abc import Iterator, Mapping
from itertools import count, islice
from typing import Final, final

from ambermq.engine.model.lifetime import Lifetime
from ambermq.engine.model.queue import Queue
from ambermq.engine.model.state import State

__all__ = ["QUEUES_PER_TURN", "QUEUE_VALUES", "QueueSelection", "values_of"]

QUEUES_PER_TURN: Final = 1000
"""The queues that one turn of the event loop visits."""
QUEUE_VALUES: Final = 19
"""The numbers of `values_of`."""


def values_of(queue: Queue) -> tuple[int, ...]:
    """Return the numbers of a queue that are summed: in the order of QUEUE_METRICS, without the age."""
    counters = queue.counters
    return (
        queue.available,
        queue.acquired_count,
        queue.size,
        queue.consumers,
        queue.published,
        queue.delivered,
        queue.accepted,
        counters.rejected,
        counters.released,
        counters.failed,
        counters.purged,
        counters.discarded,
        counters.damaged,
        counters.dead_lettered,
        counters.moved,
        counters.duplicates,
        queue.aside.count,
        queue.delayed.count,
        queue.scheduled.count,
    )


@final
class QueueSelection:
    """The deepest queues of some states, and the sums of the others."""

    def __init__(self, states: Mapping[str, State], *, queues_max: int) -> None:
        """Select among the queues of `states`, which are by the name of their virtual host."""
        self._states = states
        self._queues_max = queues_max
        self._heap: list[tuple[int, int, str, Queue]] = []
        self._numbers = count()
        self.sums = {vhost: [0] * QUEUE_VALUES for vhost in states}
        """By virtual host, the sums over the queues that are not selected."""

    def visit(self) -> Iterator[None]:
        """Visit all queues; each step is the work of a turn."""
        for vhost, state in self._states.items():
            queues = iter(state.queues.values())
            while part := list(islice(queues, QUEUES_PER_TURN)):
                for queue in part:
                    self._visit_queue(vhost, queue)
                yield

    def selected(self) -> list[tuple[str, Queue]]:
        """Return the selected queues with their virtual hosts, in the order of names."""
        return sorted(((vhost, queue) for _, _, vhost, queue in self._heap), key=lambda one: (one[0], one[1].name))

    def _visit_queue(self, vhost: str, queue: Queue) -> None:
        if queue.lifetime is not Lifetime.PERMANENT or not self._queues_max:
            self._add(vhost, queue)
            return
        # The negative number keeps the older of two equally deep queues: their choice is stable.
        entry = (queue.depth, -next(self._numbers), vhost, queue)
        if len(self._heap) < self._queues_max:
            heapq.heappush(self._heap, entry)
        else:
            _, _, host, least = heapq.heappushpop(self._heap, entry)
            self._add(host, least)

    def _add(self, vhost: str, queue: Queue) -> None:
        sums = self.sums[vhost]
        for index, value in enumerate(values_of(queue)):
            sums[index] += value
