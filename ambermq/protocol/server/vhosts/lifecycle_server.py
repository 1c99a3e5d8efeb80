"""What commands about virtual hosts need of the server.

Rule 1. lifecycle.py uses only this protocol. So server.py imports it, and not the other way round.
"""

from collections.abc import Mapping
from typing import Any, Protocol

from ambermq.protocol.amqp10.performatives.classes import Error
from ambermq.protocol.resources.resource_watch import ResourceWatch
from ambermq.protocol.server.limited_log import LimitedLog
from ambermq.protocol.server.vhosts.runner import VhostRunner
from ambermq.protocol.server.vhosts.services import VhostServices
from ambermq.protocol.server_limits import ServerLimits

__all__ = ["LifecycleServer"]


class LifecycleServer(Protocol):
    """The server whose virtual hosts are created and deleted."""

    @property
    def server_limits(self) -> ServerLimits:
        """The limits of links and connections, and of virtual hosts."""

    @property
    def descriptors_max(self) -> int:
        """The process's limit of open files."""

    @property
    def watch(self) -> ResourceWatch:
        """The watch of the process's memory and descriptors."""

    @property
    def sockets(self) -> Mapping[Any, Any]:
        """The connections of all virtual hosts."""

    @property
    def hosts(self) -> Mapping[str, VhostRunner]:
        """The virtual hosts, by name."""

    @property
    def peer_log(self) -> LimitedLog:
        """The log lines that peers can cause."""

    @property
    def default(self) -> VhostRunner:
        """The default virtual host."""

    def add_host(self, name: str, services: VhostServices) -> None:
        """Serve another virtual host."""

    def remove_host(self, name: str, error: Error) -> VhostServices:
        """Stop serving a virtual host and close its connections; returns its services."""
