"""The log lines of one connection: opened, closed, a refused login, a fault of the peer, a missed deadline.

Rule: texts of a client are escaped and cut. A connection has a line for its end if it had one for its open.
"""

from typing import Protocol

from ambermq.protocol.amqp10.performatives.classes import Error
from ambermq.protocol.auth.exchange import Failure
from ambermq.protocol.auth.peer import Peer
from ambermq.protocol.gateway.connection_gateway import ConnectionGateway
from ambermq.protocol.server.limited_log import LimitedLog, shown

__all__ = ["LoggedConnection", "log_closed", "log_dropped", "log_fault", "log_opened", "log_refusal"]


class LoggedConnection(Protocol):
    """What the lines need of a connection."""

    address: str
    peer: ConnectionGateway
    peer_info: Peer
    id: int
    since_us: int
    bytes_in: int

    @property
    def bytes_out(self) -> int:
        """The bytes that the peer was sent."""


def log_opened(log: LimitedLog, connection: LoggedConnection) -> bool:
    """Log that a connection has opened; return whether the line was written."""
    is_stranger = connection.peer.identity.username is None
    return log.info(
        "connection opened", connection.address, is_stranger=is_stranger, connection=connection.id, **_names(connection)
    )


def log_closed(log: LimitedLog, connection: LoggedConnection, reason: str, now_us: int) -> None:
    """Log that a connection has ended, with its traffic."""
    messages_in, messages_out = connection.peer.traffic_counts
    log.info(
        "connection closed",
        connection.address,
        is_stranger=connection.peer.identity.username is None,
        connection=connection.id,
        **_names(connection),
        reason=shown(reason),
        seconds=round((now_us - connection.since_us) / 1_000_000, 3),
        bytes_in=connection.bytes_in,
        bytes_out=connection.bytes_out,
        messages_in=messages_in,
        messages_out=messages_out,
    )


def log_refusal(log: LimitedLog, connection: LoggedConnection, failure: Failure) -> None:
    """Log a login that failed."""
    log.warning(  # noqa: PLE1205 - a structured log
        "login refused",
        connection.address,
        peer=connection.peer_info.name,
        user=shown(failure.user or "-"),
        mechanism=shown(connection.peer.mechanism),
        reason=shown(failure.reason),
    )


def log_fault(log: LimitedLog, connection: LoggedConnection, fault: Error) -> None:
    """Log a fault of the peer that ended its connection."""
    log.warning(  # noqa: PLE1205 - as above
        "connection failed",
        connection.address,
        container=shown(connection.peer.connection.remote_container_id),
        condition=str(fault.condition),
        reason=shown(str(fault.description)),
    )


def log_dropped(log: LimitedLog, connection: LoggedConnection, reason: str, unsent_bytes: int) -> None:
    """Log a peer that was dropped because it missed a deadline."""
    log.warning(  # noqa: PLE1205 - as above
        "peer dropped",
        connection.address,
        container=shown(connection.peer.container),
        reason=reason,
        unsent_bytes=unsent_bytes,
    )


def _names(connection: LoggedConnection) -> dict[str, str]:
    """Return who the peer is."""
    peer = connection.peer
    return {
        "peer": connection.peer_info.name,
        "user": shown(peer.identity.username or "-"),
        "mechanism": shown(peer.mechanism or "-"),
        "vhost": peer.gateway.vhost,
        "container": shown(peer.connection.remote_container_id),
    }
