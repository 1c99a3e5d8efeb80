"""A heap of timers: one time for each key."""

from heapq import heapify, heappop, heappush
from typing import Final, final

from ambermq.engine.loop.schedule import FOREVER_US

__all__ = ["TimerHeap"]

_SPARE_ENTRIES: Final = 1024


@final
class TimerHeap:
    """The times of keys, such as the ids of queues. The heap is at most about twice as long as there are keys."""

    __slots__ = ("_due", "_heap")

    def __init__(self) -> None:
        self._due: dict[int, int] = {}
        """The time by key."""
        self._heap: list[tuple[int, int]] = []
        """Those times with their keys; it may have others, which were removed."""

    def __len__(self) -> int:
        """Return the length of the heap, with removed timers."""
        return len(self._heap)

    def __contains__(self, key: int) -> bool:
        """Return whether a key has a timer."""
        return key in self._due

    @property
    def next_us(self) -> int:
        """The time of the next timer; FOREVER_US without one."""
        heap = self._heap
        while heap and self._due.get(heap[0][1]) != heap[0][0]:
            heappop(heap)
        return heap[0][0] if heap else FOREVER_US

    def add(self, key: int, due_us: int) -> None:
        """Add the timer of a key that has none."""
        self._due[key] = due_us
        heappush(self._heap, (due_us, key))

    def pop_due(self, now_us: int) -> int | None:
        """Remove the next timer if its time has come, and return its key."""
        if self.next_us > now_us:
            return None
        key = heappop(self._heap)[1]
        del self._due[key]
        return key

    def remove(self, key: int) -> None:
        """Remove the timer of a key, if it has one."""
        if self._due.pop(key, None) is not None and len(self._heap) > 2 * len(self._due) + _SPARE_ENTRIES:
            self._heap = [(due_us, one) for one, due_us in self._due.items()]
            heapify(self._heap)

    def clear(self) -> None:
        """Remove all timers."""
        self._due.clear()
        self._heap.clear()
