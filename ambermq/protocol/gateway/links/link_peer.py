"""What a link needs of the gateway's side of its connection, and by way of that of the gateway.

Rule 1: a link knows no more of its connection than this, so both gateways are in layers above the links.
Rule 2: the protocols are for the type checker alone: attributes are read as they stand, and no call is added.
"""

from typing import Any, Protocol, TypeVar

from ambermq.engine.commands import Transaction
from ambermq.engine.effects import ConsumerReady
from ambermq.engine.entries.outcome import Outcome
from ambermq.protocol.amqp10.connection.connection import Connection
from ambermq.protocol.amqp10.endpoints import SessionEndpoint
from ambermq.protocol.amqp10.events import Disposed
from ambermq.protocol.amqp10.link.sender import Sender
from ambermq.protocol.amqp10.performatives.classes import Error
from ambermq.protocol.auth.access import Access
from ambermq.protocol.auth.identity import Identity
from ambermq.protocol.gateway.engine_port import EnginePort
from ambermq.protocol.gateway.large.turn_budget import TurnBudget, Wait
from ambermq.protocol.gateway.large.upload_gate import UploadGate
from ambermq.protocol.gateway.large.upload_windows import UploadWindows
from ambermq.protocol.gateway.links.temporary_owners import TemporaryOwners
from ambermq.protocol.gateway.links.traffic import Traffic
from ambermq.protocol.server_limits import ServerLimits

__all__ = ["ConsumerPeer", "LinkGateway", "LinkPeer", "ProducerPeer", "StreamTurns", "Streaming"]

Consumer_contra = TypeVar("Consumer_contra", contravariant=True)
"""The consumer's link: a parameter, so that its own file imports this one, and not the other way round."""
Producer_contra = TypeVar("Producer_contra", contravariant=True)
"""The producer's link; as above."""


class LinkGateway(Protocol):
    """What a link needs of the gateway of its virtual host."""

    is_credit_stopped: bool
    """Little of a resource is left: no credit is granted."""
    blocked: str
    """Why producers are held back; empty while they are not."""
    queue_full_blocks: int
    """The producers that were told of a full queue, since the server read it last."""
    queue_full_ends: int
    """The producers that were told that this is over, since the server read it last."""
    full_queues: dict[str, dict[Any, None]]
    """The full queues with the policy `block`, by name, each with the credits that wait for room."""

    access: Access
    """The rules of the broker."""
    owners: TemporaryOwners
    """The users of the temporary nodes."""
    vhost: str
    """The name of the virtual host."""

    @property
    def engine(self) -> EnginePort:
        """The engine of the virtual host."""

    @property
    def sources(self) -> "StreamTurns":
        """The turns of large messages."""

    @property
    def uploads(self) -> UploadGate:
        """The large messages that arrive."""

    @property
    def limits(self) -> ServerLimits:
        """The limits of links."""

    @property
    def traffic(self) -> Traffic:
        """The messages that passed the links of the virtual host."""


class LinkPeer(Protocol):
    """What every link needs of the gateway's side of its connection."""

    container: str
    """The peer's container id; empty until its open."""
    identity: Identity
    """The user, and for a process of the broker itself the scope that it is bound to."""
    closed_by: str
    """The user that closes a link or the connection for its client; empty while there is none."""

    @property
    def connection(self) -> Connection:
        """The connection."""

    @property
    def gateway(self) -> LinkGateway:
        """The gateway of the virtual host that the connection belongs to."""

    def lost(self) -> None:
        """Detach everything of this connection from the engine."""

    def relieve(self, session: SessionEndpoint) -> None:
        """Serve the links that waited for room in a session."""


class StreamPeer(LinkPeer, Protocol):
    """What a link that sends a large message needs of the gateway's side of its connection."""

    is_paused: bool
    """Whether no deliveries are wanted: too much output is unsent."""


class Streaming(Protocol):
    """A link that takes turns to send a large message."""

    is_open: bool

    @property
    def peer(self) -> StreamPeer:
        """The gateway's side of its connection."""

    @property
    def link(self) -> Sender:
        """The link."""

    def serve(self, turn: TurnBudget) -> Wait:
        """Send as much as the turn and the link allow, and return what the link waits for."""


class StreamTurns(Protocol):
    """The turns of links that send large messages."""

    def wake_stream(self, link: Streaming) -> None:
        """Schedule a turn of a link: it may have something to send."""


class ConsumerPeer(StreamPeer, Protocol[Consumer_contra]):
    """What a consumer's link needs of the gateway's side of its connection."""

    def consumer_ready(self, consumer_link: Consumer_contra, ready: ConsumerReady) -> None:
        """Answer a consumer's attach."""

    def transaction(self, transaction_id: bytes) -> Transaction | None:
        """Return an open transaction of the connection; None if there is none of that id."""

    def retire(self, consumer_link: Consumer_contra, event: Disposed, outcome: Outcome) -> bool:
        """Keep outcomes that the receiver says in a transaction; return False if there is no such transaction."""

    def consumer_ended(self, consumer_link: Consumer_contra, error: Error) -> None:
        """End a consumer whose queue is gone."""


class ProducerPeer(LinkPeer, Protocol[Producer_contra]):
    """What a producer's link is served by."""

    upload_windows: UploadWindows
    """The windows of the sessions on which large messages arrive."""

    def upload_refusal(self, producer_link: Producer_contra) -> Error | None:
        """Count a large message that begins to arrive; return why it is refused, None if it is not."""

    def upload_ended(self, producer_link: Producer_contra) -> None:
        """Count a large message that has arrived, or that has ended."""

    def transaction(self, transaction_id: bytes) -> Transaction | None:
        """Return an open transaction of the connection; None if there is none of that id."""

    def producer_ended(self, producer_link: Producer_contra, error: Error) -> None:
        """End a producer whose queue or muxer is gone."""

    def producer_failed(self, producer_link: Producer_contra, error: Error) -> None:
        """End a producer whose message is refused, and which cannot learn that by an outcome."""
