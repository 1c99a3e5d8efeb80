"""What a virtual host needs of its server, and of the server's connections.

Rule 1. A virtual host uses only these protocols. So server.py imports it, and not the other way round.
Rule 2. The protocols are for the type checker only; they add no call.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Protocol

from ambermq.protocol.gateway.gateway import VhostGateways
from ambermq.protocol.gateway.links.link_peer import LinkPeer
from ambermq.protocol.gateway.opening.user_connections import UserConnections
from ambermq.protocol.server.limited_log import LimitedLog
from ambermq.protocol.server_limits import ServerLimits

__all__ = ["RunnerServer", "RunnerSocket"]


class RunnerSocket(Protocol):
    """What a virtual host needs of one of its connections."""

    @property
    def transport(self) -> asyncio.Transport:
        """The transport of the event loop."""

    @property
    def address(self) -> str:
        """The address of the peer."""

    def resume_reading(self) -> None:
        """Resume reading, unless the peer must read its output first."""

    def flush(self) -> None:
        """Write the output of the connection."""


class RunnerServer(Protocol):
    """What a virtual host needs of its server."""

    clock_ns: Callable[[], int]
    """The monotonic clock."""
    epoch_us: int
    """The difference between the time of day and that clock."""

    @property
    def server_limits(self) -> ServerLimits:
        """The limits of links and connections."""

    @property
    def lifecycle(self) -> VhostGateways:
        """The component that answers commands about virtual hosts."""

    @property
    def sockets(self) -> Mapping[LinkPeer, RunnerSocket]:
        """The connections of all virtual hosts."""

    @property
    def users(self) -> UserConnections:
        """The connections of each user, in all virtual hosts."""

    @property
    def peer_log(self) -> LimitedLog:
        """The log lines that peers can cause."""

    def fail(self, failure: Exception) -> None:
        """End the server at once."""
