"""What the transport of a connection needs of the server.

Rule 1. A transport uses only this protocol. So server.py imports it, and not the other way round.
Rule 2. The protocol is for the type checker only; it adds no call.
"""

from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar

from ambermq.protocol.amqp10.framing.frame_reader import ReadBuffer
from ambermq.protocol.amqp10.limits import ConnectionLimits
from ambermq.protocol.auth.exchange import Authenticator
from ambermq.protocol.gateway.links.link_peer import LinkPeer
from ambermq.protocol.server.connections.admission import Admission, AdmittedConnection
from ambermq.protocol.server.connections.memory_guard import MemoryGuard
from ambermq.protocol.server.limited_log import LimitedLog
from ambermq.protocol.server.listeners.transport_layers import TransportLayers
from ambermq.protocol.server.vhosts.runner import VhostRunner
from ambermq.protocol.server_limits import ServerLimits

__all__ = ["TransportServer"]

TransportT = TypeVar("TransportT", bound=AdmittedConnection)
"""The transport. It is a parameter, so that its module imports this one, and not the other way round."""


class TransportServer(Protocol[TransportT]):
    """The server that accepted a connection."""

    epoch_us: int
    """The difference between the time of day and the monotonic clock."""

    @property
    def limits(self) -> ConnectionLimits:
        """The limits of a connection's protocol."""

    @property
    def server_limits(self) -> ServerLimits:
        """The limits of links and connections."""

    @property
    def container_id(self) -> str:
        """The broker's container id."""

    @property
    def authenticator(self) -> Authenticator:
        """What the server offers to a peer, and who the peer is."""

    @property
    def layers(self) -> TransportLayers:
        """The layers below AMQP."""

    @property
    def default(self) -> VhostRunner:
        """The default virtual host."""

    @property
    def hosts(self) -> Mapping[str, VhostRunner]:
        """The virtual hosts, by name."""

    @property
    def sockets(self) -> dict[LinkPeer, TransportT]:
        """The connections of all virtual hosts."""

    @property
    def read_buffer(self) -> ReadBuffer:
        """The read buffer of all connections."""

    @property
    def memory(self) -> MemoryGuard:
        """The guard of the memory that all connections hold."""

    @property
    def admission(self) -> Admission[TransportT]:
        """The count of connections, by what they have proved."""

    @property
    def peer_log(self) -> LimitedLog:
        """The log lines that peers can cause."""

    def next_id(self) -> int:
        """Return the number of a new connection."""

    def now_us(self) -> int:
        """Return the time of day at the start and the time elapsed since."""

    @property
    def is_ending(self) -> bool:
        """Return whether the server stops or has failed."""

    def stall_ms(self, now_ms: int) -> int:
        """Return how long this process has stood still."""

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Schedule a call for the next iteration of the event loop."""

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> None:
        """Schedule a call after a delay."""
