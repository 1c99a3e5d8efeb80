"""The broker's own nodes before one connection: `$management` and `$cbs`, each made when the peer first attaches to it.

Rule 1. Both are asked and answered by links of the same kind (request_links.py), so what links tell goes to both.
"""

from typing import final

from ambermq.engine.effects import Answered, RefusedCommand
from ambermq.protocol.amqp10.endpoints import LinkEndpoint, SessionEndpoint
from ambermq.protocol.amqp10.events import Disposed, TransferRun
from ambermq.protocol.amqp10.link.receiver import Receiver
from ambermq.protocol.amqp10.link.sender import Sender
from ambermq.protocol.gateway.nodes import cbs_node as claims
from ambermq.protocol.gateway.nodes import management_node as management
from ambermq.protocol.gateway.nodes.node_peer import NodePeer

__all__ = ["BrokerNodes"]

_Node = management.ManagementNode | claims.CbsNode


@final
class BrokerNodes:
    """Those that one connection has links to, or had."""

    __slots__ = ("_management", "_nodes", "_peer")

    def __init__(self, peer: NodePeer) -> None:
        self._peer = peer
        self._management: management.ManagementNode | None = None
        self._nodes: dict[str, _Node] = {}

    def attach_requests(self, link: Receiver, address: str) -> bool:
        """Accept a link for requests where the address is a node's; tell whether it is."""
        node = self._node(address)
        if node is None:
            return False
        node.links.attach_requests(link)
        return True

    def attach_replies(self, link: Sender, address: str) -> bool:
        """Accept a link for answers where the address is a node's; tell whether it is."""
        node = self._node(address)
        if node is None:
            return False
        node.attach_replies(link)
        return True

    def attach_dynamic(self, link: Sender) -> bool:
        """Accept a dynamic source for answers of the management node, for who asks that; tell whether it does."""
        if self._management is None:
            return False
        self._management.attach_replies(link)
        return True

    def is_asked_in(self, session: SessionEndpoint) -> bool:
        """Tell whether a link for requests is in a session."""
        return any(node.links.is_asked_in(session) for node in self._nodes.values())

    def requested(self, run: TransferRun) -> None:
        """Take what came on a link for requests."""
        for node in self._nodes.values():
            node.requested(run)

    def disposed(self, event: Disposed) -> None:
        """Take what a peer says of an answer."""
        for node in self._nodes.values():
            node.links.disposed(event)

    def flush(self, link: Sender) -> None:
        """Send the answers that waited for a link's credit."""
        for node in self._nodes.values():
            node.links.flush(link)

    def relieve(self, session: SessionEndpoint) -> None:
        """Send the answers that waited for room in a session."""
        for node in self._nodes.values():
            node.links.relieve(session)

    def detached(self, link: LinkEndpoint) -> None:
        """Forget a link."""
        for node in self._nodes.values():
            node.links.detached(link)

    def answered(self, effect: Answered | RefusedCommand) -> None:
        """Answer a request with what became of its command."""
        if self._management is not None:
            self._management.answered(effect)

    def forget(self) -> None:
        """Forget all of it: the connection is gone."""
        self._management = None
        self._nodes.clear()

    def _node(self, address: str) -> _Node | None:
        node = self._nodes.get(address)
        if node is None and address == management.ADDRESS:
            node = self._management = self._nodes[address] = management.ManagementNode(self._peer)
        elif node is None and address == claims.ADDRESS:
            node = self._nodes[address] = claims.CbsNode()
        return node
