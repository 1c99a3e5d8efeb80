"""Counters that the controlling process and the load processes share, in one mapped file of u64 slots.

Each slot has one writer; an aligned store of eight bytes is never seen torn, so nobody locks and nobody waits.
"""

import mmap
from enum import IntEnum
from pathlib import Path
from typing import Self

__all__ = ["Board", "Phase", "Slot"]


class Slot(IntEnum):
    """What each slot counts, and who writes it."""

    PHASE = 0
    """A Phase, by the controlling process."""
    SENT = 1
    """Messages handed to the socket, by the sender."""
    SETTLED = 2
    """Messages accepted by the broker, by the sender."""
    RECEIVED = 3
    """Messages read, by the receiver."""


class Phase(IntEnum):
    """What the load processes should be doing."""

    WARM = 0
    """Load runs, latencies are not kept."""
    MEASURE = 1
    """Load runs, latencies are kept."""
    DRAIN = 2
    """The sender has stopped, the receiver empties the queue."""
    PAUSE = 3
    """The sender waits for another phase."""


class Board:
    """A mapped file of counters; `create` makes it, the constructor opens it."""

    __slots__ = ("_map", "path", "slots")

    def __init__(self, path: Path) -> None:
        self.path = path
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), 8 * len(Slot))
        self.slots = memoryview(self._map).cast("Q")

    @classmethod
    def create(cls, path: Path) -> Self:
        """Make a board of zeros at a path and open it."""
        path.write_bytes(bytes(8 * len(Slot)))
        return cls(path)

    def close(self) -> None:
        """Unmap and remove the file."""
        self.slots.release()
        self._map.close()
        self.path.unlink(missing_ok=True)
