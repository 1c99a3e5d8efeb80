"""The room of queues that open transactions keep for their messages.

A post keeps its room at once. So a full queue refuses the post, and never the commit.
"""

from collections.abc import Iterable
from typing import final

__all__ = ["Reservations"]


@final
class Reservations:
    """Messages and bytes by queue."""

    __slots__ = ("counts", "sizes")

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}
        self.sizes: dict[int, int] = {}

    def __bool__(self) -> bool:
        """Return whether room is kept in any queue."""
        return bool(self.counts)

    def add(self, queues: Iterable[int], count: int, size: int) -> None:
        """Keep room in each of `queues` for messages."""
        for queue in queues:
            self.counts[queue] = self.counts.get(queue, 0) + count
            self.sizes[queue] = self.sizes.get(queue, 0) + size

    def remove(self, queues: Iterable[int], count: int, size: int) -> None:
        """Return the room that `add` kept."""
        for queue in queues:
            left = self.counts[queue] - count
            if left:
                self.counts[queue], self.sizes[queue] = left, self.sizes[queue] - size
            else:
                del self.counts[queue], self.sizes[queue]
