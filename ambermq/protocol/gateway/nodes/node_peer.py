"""The peer of a node such as `$management`: what the node needs of its connection's gateway.

Rule: a node uses nothing else of its connection. So this package does not import the gateways.
"""

from collections.abc import Callable
from typing import Protocol

from ambermq.engine.commands import Command
from ambermq.protocol.auth.audit import AuditTrail
from ambermq.protocol.auth.peer import Peer
from ambermq.protocol.gateway.links.link_peer import LinkGateway, LinkPeer
from ambermq.protocol.management.access.rules import RulePort
from ambermq.protocol.management.access.users import UserPort
from ambermq.protocol.management.administration.configuration import ConfigPort
from ambermq.protocol.management.sorted_ids import SortedIds
from ambermq.protocol.management.vhosts import AnswerPort, VhostPort

__all__ = ["CommandOrder", "NodeGateway", "NodePeer", "PutToken"]

PutToken = Callable[[str, str], tuple[int, str]]
"""Checks a token for an audience; returns the status of the answer and its description."""


class CommandOrder(Protocol):
    """The order of commands and of the detachments of lost links."""

    def submit(self, command: Command) -> None:
        """Submit a command after the detachments of the links that are lost."""


class NodeGateway(LinkGateway, AnswerPort, Protocol):
    """The gateway of a virtual host, as a node uses it."""

    @property
    def orders(self) -> SortedIds:
        """The sorted ids that listings page through."""

    @property
    def rules(self) -> RulePort | None:
        """The part of the broker that changes rules; None without one."""

    @property
    def vhosts(self) -> VhostPort | None:
        """The part of the server that carries out commands about virtual hosts; None without virtual hosts."""

    @property
    def accounts(self) -> UserPort | None:
        """The part of the broker that carries out commands about users; None without users."""

    @property
    def configuration(self) -> ConfigPort | None:
        """The part of the broker that carries out commands about its configuration; None without one."""

    @property
    def audit(self) -> AuditTrail:
        """The audit log."""

    @property
    def lost_links(self) -> CommandOrder:
        """The lost links, which no request overtakes."""


class NodePeer(LinkPeer, Protocol):
    """A connection's gateway, as a node uses it."""

    @property
    def gateway(self) -> NodeGateway:
        """The gateway of the virtual host that the connection belongs to."""

    @property
    def peer_info(self) -> Peer:
        """Where the connection comes from."""

    @property
    def token_check(self) -> PutToken | None:
        """Checks the tokens of a connection that logs in by them; None for another one."""

    @property
    def consumers(self) -> frozenset[int]:
        """The engine's ids of the consumers of the connection."""

    def consumer_of(self, queue: int, link: str) -> int:
        """Return the engine's id of a consumer of a queue: that of the named link, else any; 0 without one."""

    def post(self, address: str, message: bytes) -> bool:
        """Send a message of the broker to an address, and return whether the address exists here."""
