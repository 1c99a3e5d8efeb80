"""The dynamic nodes of one connection whose link was detached without a close (messaging, 3.5.10).

Rule 1. The policy delete-on-close ends a node with a closing detach, with its session if its terminus expires with that
        (the default), or with its connection. A terminus that expires with the detach ends its node at once.
Rule 2. Until then a link of the same name and direction gets the node again. If it attaches to something else, its
        terminus is another one, and the node ends.
Rule 3. The engine ends a node with the link that created it. For a link that got its node again this module does so.
"""

from dataclasses import dataclass, replace
from typing import final

from ambermq.engine.address import queue_address, topic_address
from ambermq.engine.commands import EndNodes
from ambermq.engine.model.lifetime import Dynamic
from ambermq.protocol.amqp10.endpoints import LinkEndpoint, SessionEndpoint
from ambermq.protocol.amqp10.performatives.classes import Coordinator, Source, Target
from ambermq.protocol.amqp10.spec import TerminusExpiryPolicy
from ambermq.protocol.gateway.links.attach_terms import ConsumingTerms, ProducingTerms
from ambermq.protocol.gateway.links.dynamic_nodes import policy_of
from ambermq.protocol.gateway.links.link_peer import LinkPeer

__all__ = ["DetachedNodes"]


@dataclass(slots=True)
class _Node:
    """A dynamic node that has outlived the link that created it."""

    id: int
    address: str
    dynamic: Dynamic
    session: SessionEndpoint
    expiry_policy: str
    link: LinkEndpoint | None = None
    """The link that got the node again; None while there is none."""


@final
class DetachedNodes:
    """The dynamic nodes of one connection that have outlived the links that created them."""

    __slots__ = ("_nodes", "_peer")

    def __init__(self, peer: LinkPeer) -> None:
        self._peer = peer
        self._nodes: dict[tuple[str, bool], _Node] = {}

    def producing_terms(self, link: LinkEndpoint, terms: ProducingTerms) -> ProducingTerms:
        """Return the terms of a link that sends: to its former node, if it has one."""
        node = self._attach(link, terms.address, terms.dynamic) if self._nodes else None
        if node is None or terms.dynamic is None:
            return terms
        target = replace(terms.target, address=node.address, dynamic_node_properties=policy_of(node.dynamic))
        return replace(terms, address=node.address, target=target, dynamic=None)

    def consuming_terms(self, link: LinkEndpoint, terms: ConsumingTerms) -> ConsumingTerms:
        """Return the terms of a link that receives: from its former node, if it has one."""
        node = self._attach(link, terms.address, terms.dynamic) if self._nodes else None
        if node is None or terms.dynamic is None:
            return terms
        source = replace(terms.source, address=node.address, dynamic_node_properties=policy_of(node.dynamic))
        return replace(terms, address=node.address, source=source, dynamic=None)

    def keep(self, link: LinkEndpoint, dynamic: Dynamic | None, owned: int) -> bool:
        """Keep the node of a link that was detached without a close; return whether the engine must not end it.

        `owned` is the node that the link created, 0 for none.
        """
        if _terminus_of(link).expiry_policy == TerminusExpiryPolicy.LINK_DETACH:
            self.close(link)
            return False
        node = self._nodes.get((link.name, link.is_sender))
        if node is not None and node.link is link:
            node.link, node.session = None, link.session
            return False
        address = self._address(owned)
        if dynamic is None or address is None or len(self._nodes) >= self._peer.connection.limits.links_max:
            return False
        policy = _terminus_of(link).expiry_policy
        self._nodes[link.name, link.is_sender] = _Node(owned, address, dynamic, link.session, policy)
        return True

    def close(self, link: LinkEndpoint) -> None:
        """End the node that a link got again: the link was closed."""
        node = self._nodes.get((link.name, link.is_sender))
        if node is not None and node.link is link:
            self._end((link.name, link.is_sender))

    def end_session(self, session: SessionEndpoint) -> None:
        """End the nodes whose termini expire with a session that has ended."""
        for key, node in list(self._nodes.items()):
            if node.session is session and node.expiry_policy == TerminusExpiryPolicy.SESSION_END:
                self._end(key)

    def end(self) -> None:
        """End all nodes: the connection has ended."""
        for key in list(self._nodes):
            self._end(key)

    def release(self) -> None:
        """Free the connection at once: nothing but `end` may follow."""
        del self._peer

    def _attach(self, link: LinkEndpoint, address: str, dynamic: Dynamic | None) -> _Node | None:
        """Return the node that a link gets again, None for none."""
        key = (link.name, link.is_sender)
        node = self._nodes.get(key)
        if node is None:
            return None
        if (dynamic is None and address != node.address) or self._address(node.id) is None:
            self._end(key)
            return None
        node.link, node.session, node.expiry_policy = link, link.session, _terminus_of(link).expiry_policy
        return node

    def _address(self, node: int) -> str | None:
        """Return the address of a dynamic node, None if there is no such node."""
        state = self._peer.gateway.engine.state
        queue, muxer = state.queues.get(node), state.muxers.get(node)
        if queue is not None:
            return queue_address(queue.name)
        return None if muxer is None else topic_address(muxer.name)

    def _end(self, key: tuple[str, bool]) -> None:
        node = self._nodes.pop(key)
        self._peer.gateway.engine.submit(EndNodes((node.id,), (node.id,), (), ()))


def _terminus_of(link: LinkEndpoint) -> Source | Target:
    """Return the broker's terminus, as the peer requested it."""
    attach = link.remote
    terminus = None if attach is None else attach.source if link.is_sender else attach.target
    return Target() if terminus is None or isinstance(terminus, Coordinator) else terminus
