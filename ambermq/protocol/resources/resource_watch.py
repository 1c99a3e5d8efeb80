"""The watch of the resources that all virtual hosts share: the memory of the process, and its descriptors.

Rule 1. The server polls it once a second, and reads no clock for it.
Rule 2. While the memory is low, each poll asks for a release of free memory: else what consumers free would stay with
        the C library, and the state would not end.
Rule 3. A virtual host watches its own disk, and the memory guard what peers hold.
"""

from collections.abc import Callable
from typing import Protocol, final

from ambermq.protocol.resources.process_usage import ProcessUsage, process_usage
from ambermq.protocol.resources.resource import Resource
from ambermq.protocol.resources.resource_state import ResourceState
from ambermq.protocol.resources.watermarks import descriptor_marks, process_memory_marks
from ambermq.protocol.server_limits import ServerLimits

__all__ = ["ResourceWatch", "WatchedServer"]


class WatchedServer(Protocol):
    """What the watch needs of the server."""

    def set_low(self, resource: Resource, *, is_low: bool) -> None:
        """Hold the producers of all virtual hosts back because of a resource, or end that."""

    def release_memory(self) -> None:
        """Return free memory to the system, in the background."""


@final
class ResourceWatch:
    """The process's memory and descriptors."""

    def __init__(
        self,
        server: WatchedServer,
        limits: ServerLimits,
        *,
        memory_max: int,
        descriptors_max: int,
        usage: Callable[[], ProcessUsage] = process_usage,
    ) -> None:
        """Watch a process that may use `memory_max` bytes and `descriptors_max` descriptors."""
        self.usage = ProcessUsage(None, None)
        """The newest readings."""
        self._server = server
        self._read_usage = usage
        self._memory_max = memory_max
        self._descriptors_max = descriptors_max
        self.memory = ResourceState(
            Resource.PROCESS_MEMORY,
            process_memory_marks(limits, memory_max),
            ("process_memory_bytes", "process_memory_high_bytes", "process_memory_low_bytes"),
        )
        """The state of the process's memory."""
        self.descriptors = ResourceState(
            Resource.DESCRIPTORS,
            descriptor_marks(limits, descriptors_max),
            ("descriptors_free", "descriptors_free_low", "descriptors_free_resume"),
        )
        """The state of its descriptors."""

    @property
    def descriptors_free(self) -> int | None:
        """The free descriptors by the newest reading; None if it is not known."""
        used = self.usage.descriptors
        return None if used is None else max(self._descriptors_max - used, 0)

    def reconfigure(self, limits: ServerLimits) -> None:
        """Use other marks from the next poll on."""
        self.memory.marks = process_memory_marks(limits, self._memory_max)
        self.descriptors.marks = descriptor_marks(limits, self._descriptors_max)

    def poll(self, now_ms: int) -> None:
        """Read what the process uses; hold producers back, or let them continue."""
        self.usage = self._read_usage()
        for state, reading in ((self.memory, self.usage.memory_bytes), (self.descriptors, self.descriptors_free)):
            if state.read(reading, now_ms):
                self._server.set_low(state.resource, is_low=state.is_low)
        if self.memory.is_low:
            self._server.release_memory()
