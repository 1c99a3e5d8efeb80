"""What the gateway of a virtual host needs of one connection.

Rule 1: the gateway knows no more of a connection than this, so connection_gateway.py imports it, and not the other way
        round.
"""

from collections.abc import Iterator
from typing import Protocol

from ambermq.protocol.amqp10.connection.connection import Connection
from ambermq.protocol.amqp10.endpoints import LinkEndpoint
from ambermq.protocol.gateway.consumers.consumer_link import ConsumerLink
from ambermq.protocol.gateway.links.link_peer import ConsumerPeer, ProducerPeer
from ambermq.protocol.gateway.producers.producer_link import ProducerLink
from ambermq.protocol.management.peers.ports import PeerPort

__all__ = ["ConnectionPeer"]


class ConnectionPeer(ConsumerPeer[ConsumerLink], ProducerPeer[ProducerLink], PeerPort, Protocol):
    """The gateway's side of one connection, as the gateway of its virtual host uses it."""

    @property
    def connection(self) -> Connection:
        """The connection."""

    def set_low(self, *, is_low: bool) -> None:
        """Close the sessions to transfers while little of a resource is left, or open them again."""

    def tell_blocked(self, reason: str) -> None:
        """Report to the producers of this connection why they are held back; an empty reason says that this is over."""

    def check_access(self) -> Iterator[None]:
        """End the links that the rules do not allow any more, or the connection: a step for each link."""

    def stolen(self, link: LinkEndpoint) -> None:
        """End a link that another connection has attached anew."""
