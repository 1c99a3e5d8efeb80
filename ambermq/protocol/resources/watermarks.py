"""The watermarks of the resources: the reading that begins the low state, and the reading that ends it.

    resource         reading                      low from                        not low any more
    disk             free bytes for publishing    below room_low_bytes            room_resume_bytes or more
    process-memory   bytes of the process         process_memory_high_bytes       below process_memory_low_bytes
    descriptors      free descriptors             below descriptors_free_low      descriptors_free_resume or more

Rule 1. Between its marks a resource stays as it is.
Rule 2. The default of the second mark is relative to the first one, so that one key is enough.
Rule 3. What peers hold has one mark: its memory comes back at once (server/connections/memory_guard.py).
Rule 4. A second mark on the wrong side of the first one counts as the first one: the state ends where it begins.
"""

from dataclasses import dataclass
from typing import Final

from ambermq.protocol.server_limits import ServerLimits, room_low_bytes

__all__ = ["Watermarks", "descriptor_marks", "disk_marks", "process_memory_marks"]

_RESUME_DIVISOR: Final = 4
"""By default a resource of which little is free ends to be low at a quarter more than its first mark."""
_DESCRIPTORS_DIVISOR: Final = 16
"""The mark of descriptors is at most this part of the limit of open files."""


@dataclass(frozen=True, slots=True)
class Watermarks:
    """The two marks of one resource."""

    begin: int
    """The mark that begins the low state."""
    end: int
    """The mark that ends it."""
    is_usage: bool = False
    """Whether readings say how much is used, and not how much is free."""

    def is_low(self, reading: int, *, was_low: bool) -> bool:
        """Return whether a resource with this reading is low; `was_low` says whether it was until now."""
        mark = self.end if was_low else self.begin
        return reading >= mark if self.is_usage else reading < mark


def disk_marks(limits: ServerLimits, disk_bytes: int) -> Watermarks:
    """Return the marks of free space, for a file system of `disk_bytes`."""
    return _free_marks(room_low_bytes(limits, disk_bytes), limits.room_resume_bytes)


def process_memory_marks(limits: ServerLimits, memory_max: int) -> Watermarks:
    """Return the marks of the process's memory; it may use `memory_max` bytes."""
    high_bytes = limits.process_memory_high_bytes or memory_max * 3 // 4
    low_bytes = limits.process_memory_low_bytes or high_bytes * 9 // 10
    return Watermarks(high_bytes, min(high_bytes, low_bytes), is_usage=True)


def descriptor_marks(limits: ServerLimits, descriptors_max: int) -> Watermarks:
    """Return the marks of free descriptors, for a limit of `descriptors_max` open files."""
    low = limits.descriptors_free_low
    if low == ServerLimits().descriptors_free_low:
        low = min(low, descriptors_max // _DESCRIPTORS_DIVISOR)
    return _free_marks(low, limits.descriptors_free_resume)


def _free_marks(low: int, resume: int) -> Watermarks:
    return Watermarks(low, max(low, resume or low + low // _RESUME_DIVISOR))
