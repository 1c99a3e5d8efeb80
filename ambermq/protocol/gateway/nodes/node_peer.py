"""What a node of the broker, such as `$management`, needs of the gateway's side of its connection.

Rule 1: a node knows no more of its connection than this, so both gateways lie above the nodes' room.
"""

from typing import Protocol

from ambermq.protocol.gateway.links.link_peer import LinkGateway, LinkPeer
from ambermq.protocol.management.vhosts import AnswerPort, VhostPort

__all__ = ["NodeGateway", "NodePeer"]


class NodeGateway(LinkGateway, AnswerPort, Protocol):
    """What a node needs of the gateway of its virtual host."""

    @property
    def vhosts(self) -> VhostPort | None:
        """What answers commands about virtual hosts; None where there are none."""


class NodePeer(LinkPeer, Protocol):
    """What a node needs of the gateway's side of its connection."""

    @property
    def gateway(self) -> NodeGateway:
        """The gateway of the virtual host that the connection belongs to."""

    def post(self, address: str, message: bytes) -> bool:
        """Send a message of the broker's own to an address; returns whether the address is one of ours."""
