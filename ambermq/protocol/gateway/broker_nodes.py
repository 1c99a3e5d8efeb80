"""The broker's own nodes of one connection, each created by the first attach to it.

Rule: all use links of the same kind (nodes/request_response.py). So each event of a link goes to each of them.
"""

from typing import final

from ambermq.engine.effects import Answered, RefusedCommand
from ambermq.protocol.amqp10.endpoints import LinkEndpoint, SessionEndpoint
from ambermq.protocol.amqp10.events import Disposed, TransferRun
from ambermq.protocol.amqp10.link.receiver import Receiver
from ambermq.protocol.amqp10.link.sender import Sender
from ambermq.protocol.gateway.nodes import cbs_node as claims
from ambermq.protocol.gateway.nodes import entity_node as entities
from ambermq.protocol.gateway.nodes import management_node as management
from ambermq.protocol.gateway.nodes.node_peer import NodePeer
from ambermq.protocol.gateway.nodes.read_turns import ReadTurns

__all__ = ["BrokerNodes"]

_Node = management.ManagementNode | claims.CbsNode | entities.EntityNode


@final
class BrokerNodes:
    """The nodes to which one connection has or had links."""

    __slots__ = ("_management", "_nodes", "_peer", "_turns")

    def __init__(self, peer: NodePeer) -> None:
        self._peer = peer
        self._management: management.ManagementNode | None = None
        self._nodes: dict[str, _Node] = {}
        self._turns = ReadTurns()

    def attach_requests(self, link: Receiver, address: str) -> bool:
        """Accept a link for requests if the address is that of a node, and return whether it is. Raises Refusal."""
        node = self._node(address)
        if node is None:
            return False
        node.links.attach_requests(link)
        return True

    def attach_replies(self, link: Sender, address: str) -> bool:
        """Accept a link for answers if the address is that of a node, and return whether it is. Raises Refusal."""
        node = self._node(address)
        if node is None:
            return False
        node.attach_replies(link)
        return True

    def attach_dynamic(self, link: Sender) -> bool:
        """Accept a dynamic source for answers of `$management`; return False if the connection has no link to it."""
        if self._management is None:
            return False
        self._management.attach_replies(link)
        return True

    @property
    def has_claims(self) -> bool:
        """Whether the connection has or had a link to `$cbs`, as clients of Service Bus have."""
        return claims.ADDRESS in self._nodes

    def links(self) -> list[tuple[LinkEndpoint, str]]:
        """Return the links, each with the address of its node."""
        return [(link, address) for address, node in self._nodes.items() for link in node.links.all()]

    def has_request_link(self, session: SessionEndpoint) -> bool:
        """Return whether a session has a link for requests."""
        return any(node.links.has_request_link(session) for node in self._nodes.values())

    def receive_requests(self, run: TransferRun) -> None:
        """Process the requests of a run."""
        for node in self._nodes.values():
            node.receive_requests(run)

    def disposed(self, event: Disposed) -> None:
        """Process the outcomes of answers."""
        for node in self._nodes.values():
            node.links.disposed(event)

    def flush(self, link: Sender) -> None:
        """Send as many answers as the link has credit for."""
        for node in self._nodes.values():
            node.links.flush(link)

    def relieve(self, session: SessionEndpoint) -> None:
        """Send the answers that waited for room in a session."""
        for node in self._nodes.values():
            node.links.relieve(session)

    def detached(self, link: LinkEndpoint) -> None:
        """Forget a link."""
        for address, node in list(self._nodes.items()):
            node.links.detached(link)
            if isinstance(node, entities.EntityNode) and not node.links.all():
                # There may be very many: one for each queue.
                del self._nodes[address]

    def answered(self, effect: Answered | RefusedCommand) -> None:
        """Answer a request with the result of its command."""
        if isinstance(effect.key, entities.EntityRequest):
            effect.key.node.answered(effect)
        elif self._management is not None:
            self._management.answered(effect)

    def surveyed_bytes(self) -> int:
        """Return the memory of the answers and requests that wait."""
        return sum(node.links.waiting_bytes for node in self._nodes.values()) + self._turns.size

    def forget(self) -> None:
        """Forget all nodes: the connection has ended."""
        self._management = None
        self._nodes.clear()
        self._turns.forget()

    def release(self) -> None:
        """Forget all nodes and the connection, which refers to this value. No call but `answered` may follow."""
        self.forget()
        del self._peer

    def _node(self, address: str) -> _Node | None:
        node = self._nodes.get(address)
        if node is None and address == management.ADDRESS:
            node = self._management = self._nodes[address] = management.ManagementNode(self._peer)
        elif node is None and address == claims.ADDRESS:
            node = self._nodes[address] = claims.CbsNode(self._peer.token_check)
        elif entities.is_entity_node(address):
            entities.check_entity(self._peer, address)
            if node is None:
                node = self._nodes[address] = entities.EntityNode(self._peer, address, self._turns)
        return node
