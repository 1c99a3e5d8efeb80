"""What these types need of connections and links, and the command that closes one of them."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, final

from ambermq.engine.model.state import State
from ambermq.protocol.auth.identity import Identity

__all__ = ["CloseEndpoint", "ConnectionPort", "LinkRow", "PeerPort", "PeersPort", "SessionPort", "TransportPort"]


@final
@dataclass(frozen=True, slots=True)
class CloseEndpoint:
    """Close a connection, a session or a link from the broker's end."""

    key: Any
    noun: str
    """`connection`, `session` or `link`."""
    name: str
    by: str = ""
    """The user that asks for it; empty if none is known."""


class TransportPort(Protocol):
    """The transport of a connection."""

    id: int
    """The number of the connection: they count from 1 in the order of acceptance."""
    since_us: int
    """The time at which it was accepted."""
    bytes_in: int
    """The bytes that the peer has sent."""

    @property
    def peer_name(self) -> str:
        """The address and port of the peer."""

    @property
    def bytes_out(self) -> int:
        """The bytes that the peer was sent, those in the system's buffer included."""

    @property
    def idle_us(self) -> int:
        """The time since the peer's last bytes."""


class SessionPort(Protocol):
    """A session, as its row needs it."""

    @property
    def channel(self) -> int:
        """The broker's channel."""

    @property
    def is_live(self) -> bool:
        """Whether the session is mapped, as far as this end knows."""

    @property
    def is_full(self) -> bool:
        """Whether no delivery may be sent until the peer settles one."""

    def links(self) -> Sequence[Any]:
        """Return the links."""

    @property
    def unsettled_counts(self) -> tuple[int, int]:
        """The deliveries without an outcome: received from the peer, and sent to it."""


@final
@dataclass(frozen=True, slots=True)
class LinkRow:
    """What the gateway knows of a link."""

    role: str
    """`producer`, `consumer`, `browser`, or `management` for a link of a node of the broker."""
    address: str
    queue: str | None
    unsettled: int
    messages: int
    bytes: int


class ConnectionPort(Protocol):
    """The protocol state of a connection."""

    @property
    def remote_open(self) -> Any:
        """The peer's open; None before it arrives."""

    @property
    def memory(self) -> Any:
        """What the connection makes the broker hold."""

    @property
    def is_closing(self) -> bool:
        """Whether the broker's close was sent."""

    def sessions(self) -> Sequence[SessionPort]:
        """Return the sessions."""


class PeerPort(Protocol):
    """A connection, as its row needs it."""

    container: str
    identity: Identity
    mechanism: str
    """The SASL mechanism; empty without SASL."""
    transport: TransportPort | None
    """None for a connection without a socket, as in tests."""

    @property
    def connection(self) -> ConnectionPort:
        """The protocol state."""

    @property
    def vhost(self) -> str:
        """The name of its virtual host."""

    @property
    def traffic_counts(self) -> tuple[int, int]:
        """The messages that it has sent, and that it was sent."""

    def link_row(self, link: Any, state: State) -> LinkRow:
        """Return what the gateway knows of a link."""


class PeersPort(Protocol):
    """All connections of a broker."""

    def peers(self) -> Collection[PeerPort]:
        """Return them in the order of acceptance."""
