"""A listener: an address, its bound sockets, and what it says about a peer that it accepts."""

import socket
import struct
from dataclasses import dataclass, field
from typing import Any, Final, final

from ambermq.protocol.auth.peer import Peer
from ambermq.protocol.server.listeners.listener_address import ListenerAddress
from ambermq.protocol.server.listeners.peer_address import LOCAL, address_of

__all__ = ["Listener", "credentials_of", "shown_name"]

_CREDENTIALS: Final = struct.Struct("iII")
"""The process, user and group of SO_PEERCRED."""


@final
@dataclass(slots=True, eq=False)
class Listener:
    """One address of a server, with its sockets."""

    address: ListenerAddress
    """The address, with the port that the system has chosen."""
    sockets: list[socket.socket] = field(default_factory=list)
    """The bound sockets: one for each address of the host."""
    owners_only: frozenset[int] | None = None
    """The user ids that may connect to a unix socket; None: every one."""

    @property
    def has_layers(self) -> bool:
        """Whether TLS or WebSocket is between the socket and AMQP."""
        return self.address.is_secure or self.address.is_websocket

    def peer_of(self, stream: socket.socket, name: Any) -> Peer | None:
        """Return the other end of an accepted connection, None for a user id that may not connect; raise OSError."""
        if stream.family != socket.AF_UNIX:
            address = address_of(name)
            return Peer(address=address, name=shown_name(name), is_local=address == LOCAL)
        pid, uid = credentials_of(stream)
        if self.owners_only is not None and uid not in self.owners_only:
            return None
        return Peer(address=LOCAL, name=f"unix pid={pid} uid={uid}", is_encrypted=True, uid=uid)


def credentials_of(stream: socket.socket) -> tuple[int, int]:
    """Return the process id and the user id of the other end of a unix socket. Raises OSError."""
    pid, uid, _ = _CREDENTIALS.unpack(stream.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    return pid, uid


def shown_name(name: Any) -> str:
    """Return the address and port of a peer."""
    host, port = str(name[0]), name[1]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
