"""The watch of one log's disk: its free space, and whether its syncs keep up.

Rule 1. The driver of the virtual host polls it once a second, and when a sync shows that little space is left.
Rule 2. A sync that is late is no resource: it stops reading by itself, and producers are only told.
"""

from typing import Protocol, final

import structlog

from ambermq.protocol.resources.resource import Resource
from ambermq.protocol.resources.resource_state import ResourceState
from ambermq.protocol.resources.watermarks import disk_marks
from ambermq.protocol.server_limits import ServerLimits

__all__ = ["DiskWatch", "WatchedGateway", "WatchedLog"]


class WatchedLog(Protocol):
    """What the watch needs of the log."""

    low_bytes: int
    """The free space below which the log reports that little is left."""

    @property
    def disk_bytes(self) -> int:
        """The size of the file system."""

    @property
    def is_congested(self) -> bool:
        """Whether too much of the log is not durable."""

    @property
    def unsynced_bytes(self) -> int:
        """The bytes that are written and not durable."""

    def room_bytes(self) -> int:
        """Return the bytes that publishing may still write."""


class WatchedGateway(Protocol):
    """What the watch needs of the gateway."""

    def set_low(self, resource: Resource, *, is_low: bool) -> None:
        """Hold producers back because of a resource, or end that."""

    def set_unsynced(self, *, is_unsynced: bool) -> None:
        """Report to producers that syncs do not keep up, or that this is over."""


@final
class DiskWatch:
    """The disk of one virtual host."""

    __slots__ = ("_gateway", "_is_unsynced", "_log", "_state", "_vhost", "_was_congested")

    def __init__(self, log: WatchedLog, gateway: WatchedGateway, limits: ServerLimits, *, vhost: str) -> None:
        self._log = log
        self._gateway = gateway
        self._vhost = vhost
        self._was_congested = self._is_unsynced = False
        marks = disk_marks(limits, log.disk_bytes)
        self._state = ResourceState(Resource.DISK, marks, ("room_bytes", "room_low_bytes", "room_resume_bytes"))
        log.low_bytes = marks.begin

    @property
    def is_low(self) -> bool:
        """Whether little space is left."""
        return self._state.is_low

    @property
    def resume_bytes(self) -> int:
        """The free space with which that ends."""
        return self._state.marks.end

    def reconfigure(self, limits: ServerLimits) -> None:
        """Use other marks from the next poll on."""
        self._state.marks = disk_marks(limits, self._log.disk_bytes)
        self._log.low_bytes = self._state.marks.begin

    def poll(self, now_ms: int) -> None:
        """Read the free space and the state of the syncs; hold producers back, or let them continue."""
        log = self._log
        if self._state.read(log.room_bytes(), now_ms, vhost=self._vhost):
            self._gateway.set_low(Resource.DISK, is_low=self._state.is_low)
        was_congested, self._was_congested = self._was_congested, log.is_congested
        is_unsynced = was_congested and log.is_congested
        if is_unsynced is self._is_unsynced:
            return
        self._is_unsynced = is_unsynced
        values = {"reason": "unsynced", "vhost": self._vhost, "unsynced_bytes": log.unsynced_bytes}
        if is_unsynced:
            structlog.get_logger().warning("producers held back", **values)
        else:
            structlog.get_logger().info("producers continue", **values)
        self._gateway.set_unsynced(is_unsynced=is_unsynced)
