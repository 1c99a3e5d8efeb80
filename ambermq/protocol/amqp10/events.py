"""The events of a connection: the closed list that `Connection.take_events` returns, in order.

Rule 1. An event is a fact. The connection does not wait until an event is read, with two exceptions: a server answers
        Authenticating and Opened by a call. Until then the connection keeps the later input.
Rule 2. The end of a scope is one event of that scope. SessionEnded stands for the end of all links of the session.
        ConnectionClosed stands for the end of everything, and is the last event.
Rule 3. An error of the peer has the event of the scope that it ended, with the error that this end sent. So the event
        is the same as for an end by the peer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from msgspec import Struct

from ambermq.protocol.amqp10.endpoints import LinkEndpoint, ReceiverEndpoint, SessionEndpoint
from ambermq.protocol.amqp10.performatives.classes import DeliveryState, Error, Open, TransactionalState

__all__ = [
    "Authenticating",
    "ConnectionClosed",
    "CreditChanged",
    "Disposed",
    "Event",
    "LinkAttached",
    "LinkDetached",
    "Opened",
    "SessionBegun",
    "SessionEnded",
    "TransferAborted",
    "TransferPiece",
    "TransferRun",
]


class Authenticating(Struct):
    """An init or a response of a client; the server answers by `challenge` or `authenticated`. Server only."""

    mechanism: str
    """The mechanism that the init chose, offered or not."""

    response: bytes | None
    """The initial response, None if the init has none; later the response to a challenge."""


class Opened(Struct):
    """The peer's open. A server answers by `connection.accept` or `connection.refuse`. A client needs no answer."""

    open: Open
    """The peer's open frame: container_id, hostname, properties, offered and desired capabilities, limits."""


class SessionBegun(Struct):
    """A session is mapped: either end began it and the other one answered."""

    session: SessionEndpoint
    """The session."""


class LinkAttached(Struct):
    """The peer's attach. If the peer began the link, it is answered by `link.accept` or `link.refuse`."""

    link: LinkEndpoint
    """A Sender, on which this end sends, or a Receiver; the peer's attach is `link.remote`."""


class TransferRun(Struct):
    """Complete messages of one link with consecutive delivery-ids, alike in all but their payload; n >= 1."""

    link: ReceiverEndpoint
    """The link of the messages."""

    first_id: int
    """The delivery-id of the first message; the others follow in serial-number arithmetic."""

    payloads: list[bytes | memoryview]
    """The messages as sent; a large one may be a view of the read buffer (see `Connection.receive`)."""

    settled: bool
    """Whether the peer sent them settled; then no disposition is needed."""

    message_format: int = 0
    """The message format; a message with another format than 0 is opaque."""

    tag: bytes | None = None
    """The delivery-tag of a message that is reported alone; None if the run was recognised."""

    state: TransactionalState | None = None
    """The transaction of a message that is reported alone; None for none."""

    is_resumed: bool = False
    """Whether the peer resumes the delivery of a message that is reported alone. Its payload may be empty then."""
    before_bytes: int = 0
    """The bytes of a message that is reported alone, as pieces before this event."""


class TransferPiece(Struct):
    """The next bytes of a message that is not complete; TransferRun has the last ones. A receiver asks for pieces."""

    link: ReceiverEndpoint
    """The link of the message."""

    delivery_id: int
    """The delivery-id of the message."""

    payload: bytes
    """The bytes, as many as the receiver asked for."""

    message_format: int
    """The message format; a message with another format than 0 is opaque."""

    is_transactional: bool = False
    """Whether it is posted in a transaction."""


class TransferAborted(Struct):
    """A message of which pieces were reported is aborted. The end of its link has another event."""

    link: ReceiverEndpoint
    """The link of the message."""


class Disposed(Struct):
    """The peer's disposition over deliveries with consecutive ids that were unsettled until now.

    A disposition that does not settle gives one event for each delivery, and only with a terminal state. A repetition
    has no new information, and other states need no answer.
    """

    link: LinkEndpoint
    """The link of the deliveries; a Receiver only if the peer settles them in receiver-settle-mode second."""

    first_id: int
    """The delivery-id of the first delivery."""

    tokens: Sequence[int]
    """The tokens passed to `send_run`, one for each delivery; for a Receiver the delivery-ids."""

    state: DeliveryState | None
    """The outcome that the peer sent; None if it settled without an outcome."""

    settled: bool
    """Whether the peer has settled them, and so has the session; if False, `settle_sent` is needed."""


class CreditChanged(Struct):
    """A flow of the peer for one link, which sets `link.credit` and `link.drain`."""

    link: LinkEndpoint
    """A Sender, whose drain is answered by `drained()`; or a Receiver whose peer answered a drain."""


class LinkDetached(Struct):
    """A link ended: the peer detached it, attached it again, or made an error. A detach of this end has no event."""

    link: LinkEndpoint
    """The link; its unsettled deliveries are forgotten here. The owner may keep them for a resumption."""

    closed: bool
    """Whether the terminus ends too; if False, the peer may attach to it again."""

    error: Error | None
    """The reason; None for a detach without an error."""


class SessionEnded(Struct):
    """A session ended with all its links, by the peer or by an error of the peer. An end of this end has no event."""

    session: SessionEndpoint
    """The session; `session.links()` still returns the links that were attached."""

    error: Error | None
    """The reason; None for an end without an error."""


class ConnectionClosed(Struct):
    """The last event: the connection has ended. Only the rest of `take_output` is still to be sent."""

    error: Error | None
    """The reason; None for a close without an error."""


Event: TypeAlias = (
    Authenticating
    | Opened
    | SessionBegun
    | LinkAttached
    | TransferRun
    | TransferPiece
    | TransferAborted
    | Disposed
    | CreditChanged
    | LinkDetached
    | SessionEnded
    | ConnectionClosed
)
