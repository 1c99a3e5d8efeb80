"""The other end of an accepted connection, as the listener saw it before the first byte."""

from dataclasses import dataclass

__all__ = ["LOCAL_PEER", "Peer"]


@dataclass(frozen=True, slots=True)
class Peer:
    """Where a connection comes from, and what its transport has proved."""

    address: str = ""
    """The address as limits count it (protocol/server/listeners); empty for a peer of this machine."""
    name: str = "local"
    """The address and port, or the unix socket, as log lines and listings show it."""
    is_local: bool = True
    """Whether it comes over the loopback interface or a unix socket. A proxy reports the address of its client."""
    is_encrypted: bool = False
    """Whether the transport hides the bytes from others: TLS, or a unix socket."""
    uid: int | None = None
    """The user id of the process at the other end of a unix socket (SO_PEERCRED)."""
    certificate_user: str | None = None
    """The user that a verified client certificate names."""


LOCAL_PEER = Peer()
"""A peer of this machine over the loopback interface."""
