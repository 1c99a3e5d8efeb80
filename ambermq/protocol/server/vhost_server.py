"""What one virtual host needs of the server that serves it, and of the server's sockets.

Rule 1: a virtual host knows no more of its server than this, so server.py imports it, and not the other way round.
Rule 2: the protocols are for the type checker alone: attributes are read as they stand, and no call is added.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Protocol

from ambermq.protocol.gateway.gateway import VhostGateways
from ambermq.protocol.gateway.links.link_peer import LinkPeer
from ambermq.protocol.server_limits import ServerLimits

__all__ = ["VhostServer", "VhostSocket"]


class VhostSocket(Protocol):
    """What a virtual host needs of one of its connections."""

    @property
    def transport(self) -> asyncio.Transport:
        """The transport of the event loop."""

    def resume_reading(self) -> None:
        """Read again, unless so much is unsent that the peer must read first."""

    def flush(self) -> None:
        """Write what the connection has for its peer."""


class VhostServer(Protocol):
    """What a virtual host needs of its server."""

    clock_ns: Callable[[], int]
    """The monotonic clock."""
    epoch_us: int
    """What the time of day is ahead of that clock."""

    @property
    def server_limits(self) -> ServerLimits:
        """The limits of links and connections."""

    @property
    def hosting(self) -> VhostGateways:
        """What answers commands about virtual hosts."""

    @property
    def sockets(self) -> Mapping[LinkPeer, VhostSocket]:
        """The connections of all virtual hosts."""

    def fail(self, failure: Exception) -> None:
        """End the server at once."""
