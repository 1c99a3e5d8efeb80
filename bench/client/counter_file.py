"""Counters that the controlling process and the load processes share, in one mapped file of u64 slots.

Each slot has one writer. A store of eight aligned bytes is atomic, so no process needs a lock.
"""

import mmap
from enum import IntEnum
from pathlib import Path
from typing import Self

__all__ = ["CounterFile", "Phase", "Slot"]


class Slot(IntEnum):
    """The meaning and the writer of each slot."""

    PHASE = 0
    """A Phase, by the controlling process."""
    SENT = 1
    """Messages written to the socket, by the sender."""
    SETTLED = 2
    """Messages accepted by the broker, by the sender."""
    RECEIVED = 3
    """Messages read, by the receiver."""


class Phase(IntEnum):
    """The phase of the load."""

    WARM = 0
    """Load runs, latencies are not recorded."""
    MEASURE = 1
    """Load runs, latencies are recorded."""
    DRAIN = 2
    """The sender has stopped, the receiver empties the queue."""
    PAUSE = 3
    """The sender waits for another phase."""


class CounterFile:
    """A mapped file of counters: `create` creates it, the constructor opens it."""

    __slots__ = ("_map", "path", "slots")

    def __init__(self, path: Path) -> None:
        self.path = path
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), 8 * len(Slot))
        self.slots = memoryview(self._map).cast("Q")

    @classmethod
    def create(cls, path: Path) -> Self:
        """Create a counter file of zeros at a path and open it."""
        path.write_bytes(bytes(8 * len(Slot)))
        return cls(path)

    def close(self) -> None:
        """Unmap and remove the file."""
        self.slots.release()
        self._map.close()
        self.path.unlink(missing_ok=True)
