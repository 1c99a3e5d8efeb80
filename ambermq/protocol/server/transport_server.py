"""What one connection's transport needs of the server that accepted it.

Rule 1: a transport knows no more of its server than this, so server.py imports it, and not the other way round.
Rule 2: the protocols are for the type checker alone: attributes are read as they stand, and no call is added.
"""

from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar

from ambermq.protocol.amqp10.connection.sasl import SaslServer
from ambermq.protocol.amqp10.framing.frame_reader import ReadBuffer
from ambermq.protocol.amqp10.limits import ConnectionLimits
from ambermq.protocol.gateway.connection_gateway import Authenticator
from ambermq.protocol.gateway.links.link_peer import LinkPeer
from ambermq.protocol.server.vhost_runner import VhostRunner
from ambermq.protocol.server_limits import ServerLimits

__all__ = ["TransportServer"]

TransportT = TypeVar("TransportT")
"""The transport: a parameter, so that its own file imports this one, and not the other way round."""


class TransportServer(Protocol[TransportT]):
    """The server that accepted a connection."""

    allow_bare: bool
    """A connection without SASL is accepted too."""
    epoch_us: int
    """What the time of day is ahead of the monotonic clock."""

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
    def sasl(self) -> SaslServer:
        """The mechanisms that the server offers."""

    @property
    def authenticate(self) -> Authenticator:
        """What accepts a user or refuses it."""

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
        """What all connections read into."""

    @property
    def is_crowded(self) -> bool:
        """Whether one connection more is one too many."""

    def lost_ms(self, now_ms: int) -> int:
        """Return how long this process has stood still."""

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> None:
        """Call back when so much time has passed."""
