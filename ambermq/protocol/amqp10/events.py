"""What a connection tells: the closed list of events that `Connection.take_events` hands out, in order.

Rule 1: an event is a fact; nothing waits inside the connection for an event to be read, but for the two questions
        (Authenticating, Opened) that a server answers by a call: until then the input behind them is kept unread.
Rule 2: the end of a scope is told once, by one event of that scope: SessionEnded tells the end of all its links,
        ConnectionClosed the end of everything, and nothing follows it.
Rule 3: a peer's fault is told like a peer's goodbye, by the event of the scope that it ended, with our error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from msgspec import Struct

from ambermq.protocol.amqp10.endpoints import LinkEndpoint, ReceiverEndpoint, SessionEndpoint
from ambermq.protocol.amqp10.performatives.classes import DeliveryState, Error, Open

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
    "TransferRun",
]


class Authenticating(Struct):
    """A client asks to be let in; answered by `connection.authenticated(ok)`. Server only."""

    mechanism: str
    """The chosen mechanism: ANONYMOUS, PLAIN, AMBERMQ-TOKEN, or MSSBCBS, which is ANONYMOUS by another name."""

    username: str | None
    """Who it is; None for the anonymous, and beside a token."""

    password: str | None
    """What proves it, a password or a token; None for the anonymous."""


class Opened(Struct):
    """The peer's open. A server answers by `connection.accept` or `connection.refuse`; a client has its answer."""

    open: Open
    """The peer's own open: container_id, hostname, properties, offered and desired capabilities, limits."""


class SessionBegun(Struct):
    """A session is mapped at both ends: begun by the peer and answered by us, or the other way round."""

    session: SessionEndpoint
    """The session."""


class LinkAttached(Struct):
    """The peer's attach: what the peer began is answered by `link.accept` or `link.refuse`."""

    link: LinkEndpoint
    """A Sender (we send on it) or a Receiver; the peer's performative is `link.remote`."""


class TransferRun(Struct):
    """Complete messages of one link with consecutive delivery-ids, alike in all but their payload; n >= 1."""

    link: ReceiverEndpoint
    """The link they came on."""

    first_id: int
    """The delivery-id of the first; the others follow in serial-number arithmetic."""

    payloads: list[bytes | memoryview]
    """The messages as sent; a large one may be a view of the read buffer (see `Connection.receive`)."""

    settled: bool
    """The peer sent them settled: no disposition is due."""

    message_format: int = 0
    """The message format; anything but 0 is opaque."""


class Disposed(Struct):
    """The peer's disposition over deliveries with consecutive ids that were unsettled until now.

    One that does not settle is told for each delivery once, and only with a terminal state: who repeats it says nothing
    new, and other states ask for nothing.
    """

    link: LinkEndpoint
    """The link they went over; a Receiver only when the peer settles what we have in receiver-settle-mode second."""

    first_id: int
    """The delivery-id of the first."""

    tokens: Sequence[int]
    """The tokens given to `send_run`, one a delivery; for a Receiver the delivery-ids."""

    state: DeliveryState | None
    """What the peer says became of them; None when it says nothing (settled without an outcome)."""

    settled: bool
    """The peer has forgotten them, and so has the session; else `settle_sent` is due."""


class CreditChanged(Struct):
    """A flow of the peer for one link: `link.credit` and `link.drain` are new."""

    link: LinkEndpoint
    """A Sender, whose drain is answered by `drained()`; or a Receiver whose peer answered our drain."""


class LinkDetached(Struct):
    """A link ended: the peer detached, or erred, or attached the same link anew; our own detach is not told."""

    link: LinkEndpoint
    """The link; everything it held is forgotten."""

    closed: bool
    """True when the terminus is to end too, False when the peer may come back for it."""

    error: Error | None
    """Why; None when the peer simply left."""


class SessionEnded(Struct):
    """A session ended with all its links, by the peer or by its fault; our own end is not told."""

    session: SessionEndpoint
    """The session; `session.links()` still names what was attached."""

    error: Error | None
    """Why; None when the peer simply ended it."""


class ConnectionClosed(Struct):
    """The last event: nothing can be received or sent any more, but what `take_output` still hands out."""

    error: Error | None
    """Why; None when the close was clean."""


Event: TypeAlias = (
    Authenticating
    | Opened
    | SessionBegun
    | LinkAttached
    | TransferRun
    | Disposed
    | CreditChanged
    | LinkDetached
    | SessionEnded
    | ConnectionClosed
)
