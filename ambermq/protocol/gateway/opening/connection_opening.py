"""The open of one connection: whether it is accepted, and what it is counted for until its end."""

from collections.abc import Iterable
from typing import Protocol, final

from ambermq.protocol.amqp10.connection.connection import Connection
from ambermq.protocol.amqp10.performatives.classes import Error, Open
from ambermq.protocol.auth.access import Access
from ambermq.protocol.auth.identity import Identity
from ambermq.protocol.gateway.opening.container_ids import CLOSED_FOR_ANOTHER, ContainerIds, closes_existing
from ambermq.protocol.gateway.opening.open_checks import (
    OFFERED,
    check_idle_timeout,
    check_rules,
    check_vhost,
    open_properties,
)
from ambermq.protocol.gateway.opening.user_connections import UserConnections

__all__ = ["ConnectionOpening", "OpeningGateway", "OpeningPeer"]


class OpeningGateway(Protocol):
    """What an open needs of the gateway of its virtual host."""

    @property
    def vhost(self) -> str:
        """The name of the virtual host."""

    @property
    def access(self) -> Access:
        """The rules."""

    @property
    def users(self) -> UserConnections:
        """The connections of each user."""

    @property
    def containers(self) -> ContainerIds:
        """The connected container ids."""


class OpenPeer(Protocol):
    """The gateway's side of another connection."""

    container: str
    """The peer's container id; empty before its open and after its end."""
    identity: Identity

    def end_with(self, error: Error) -> None:
        """Detach everything of the connection, and close it."""


class OpeningPeer(OpenPeer, Protocol):
    """What an open needs of the gateway's side of its connection."""

    refusal: Error | None
    """Why the open was refused; None if it was not."""

    @property
    def connection(self) -> Connection:
        """The connection."""

    @property
    def gateway(self) -> OpeningGateway:
        """The gateway of the virtual host that the open names."""

    def others(self) -> Iterable[OpenPeer]:
        """Return the other connections of the virtual host."""


@final
class ConnectionOpening:
    """What one connection is counted for."""

    __slots__ = ("_owner", "_peer", "is_counted")

    def __init__(self, peer: OpeningPeer) -> None:
        self._peer = peer
        self._owner = Identity()
        """The identity by which the container id was counted."""
        self.is_counted = False
        """Whether the connection is counted for its user."""

    def opened(self, remote: Open) -> None:
        """Accept the open of the peer, or refuse it."""
        peer = self._peer
        refusal = self._check(remote)
        if refusal is not None:
            peer.refusal = refusal
            peer.connection.refuse(refusal)
        else:
            peer.connection.accept(properties=open_properties(peer.gateway.vhost), offered_capabilities=OFFERED)

    def log_in(self, identity: Identity) -> Error | None:
        """Set the identity that the first token proves; return an Error if the user may not connect."""
        refusal = self._peer.gateway.users.enter(identity.username)
        if refusal is None:
            self._peer.identity = identity
        return refusal

    def check_rules(self) -> Error | None:
        """Return why the rules do not allow the connection any more; None if they do, and before its open."""
        peer = self._peer
        return check_rules(peer.gateway.access, peer.identity, peer.gateway.vhost) if self.is_counted else None

    def leave(self) -> None:
        """Count the connection out: it has ended."""
        peer = self._peer
        peer.gateway.containers.leave(peer.container, self._owner)
        peer.container = ""
        if self.is_counted:
            self.is_counted = False
            peer.gateway.users.leave(peer.identity.username)

    def release(self) -> None:
        """Free the connection: nothing may follow."""
        del self._peer

    def _check(self, remote: Open) -> Error | None:
        """Return why the open is refused, or count the connection."""
        peer, gateway = self._peer, self._peer.gateway
        refusal = check_vhost(peer.identity, gateway.vhost)
        refusal = refusal or check_rules(gateway.access, peer.identity, gateway.vhost)
        refusal = refusal or check_idle_timeout(remote, peer.connection.limits.idle_timeout_ms_min)
        if refusal is not None:
            return refusal
        if closes_existing(remote):
            self._close_existing(remote.container_id)
        refusal = gateway.containers.enter(remote, peer.identity)
        if refusal is not None:
            return refusal
        self._owner, peer.container = peer.identity, remote.container_id
        refusal = gateway.users.enter(peer.identity.username)
        self.is_counted = refusal is None
        return refusal

    def _close_existing(self, container: str) -> None:
        """Close the other connections of a container, as far as they have the user of this one."""
        peer = self._peer
        if peer.identity.scope is not None or peer.identity.awaits_token:
            return
        for other in peer.others():
            if other.container == container and other.identity == peer.identity:
                other.end_with(CLOSED_FOR_ANOTHER)
