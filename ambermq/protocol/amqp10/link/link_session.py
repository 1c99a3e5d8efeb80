"""What a link needs of its session, and of the session's connection.

Rule 1. A link uses only these protocols. So the package of sessions imports that of links.
Rule 2. The protocols are for the type checker only; they add no call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

from ambermq.protocol.amqp10.endpoints import SessionEndpoint
from ambermq.protocol.amqp10.events import Event
from ambermq.protocol.amqp10.framing.output_buffer import OutputBuffer
from ambermq.protocol.amqp10.limits import ConnectionLimits
from ambermq.protocol.amqp10.memory_budget import MemoryAccount
from ambermq.protocol.amqp10.performatives.base import Composite
from ambermq.protocol.amqp10.types.decode import Buffer

__all__ = ["LinkConnection", "LinkSession", "LinkWindows", "PendingDispositions", "UnsettledDeliveries"]

Link_contra = TypeVar("Link_contra", contravariant=True)
"""The link. It is a parameter, so that link.py imports this module, and not the other way round."""


class LinkConnection(Protocol):
    """What a link needs of the connection of its session."""

    limits: ConnectionLimits
    remote_frame_bytes_max: int
    """The largest frame that the peer accepts."""
    partial_bytes: int
    """The memory of partial deliveries, over all links, in bytes."""

    @property
    def memory(self) -> MemoryAccount:
        """The memory of the connection."""

    @property
    def events(self) -> list[Event]:
        """The list to which the link appends its events."""

    @property
    def output(self) -> OutputBuffer:
        """The buffer to which the link adds its transfers."""

    @property
    def remote_container_id(self) -> str:
        """The peer's container id; empty before its open."""

    def takes(self, performative: Composite) -> bool:
        """Return whether the peer accepts a frame of this length."""


class LinkWindows(Protocol):
    """What a link needs of the windows of its session."""

    remote: int
    """The frames that we may still send."""
    is_held: bool
    """Whether the owner has closed our window."""

    def sent(self, count: int) -> None:
        """Count sent transfer frames."""


class PendingDispositions(Protocol):
    """What a link needs of the settlements that are delayed to the end of the tick."""

    def flush(self) -> None:
        """Write the pending range."""


class UnsettledDeliveries(Protocol[Link_contra]):
    """What a link needs of the deliveries of its session that are not settled, in one direction."""

    count: int
    """The number of held deliveries."""

    def append(
        self,
        link: Link_contra,
        first_id: int,
        count: int,
        tokens: Sequence[int] | None = None,
        *,
        is_second: bool = False,
    ) -> None:
        """Add `count` deliveries from `first_id`."""

    def take(self, first_id: int, last_id: int) -> object:
        """Remove the held deliveries of a range."""


class LinkSession(SessionEndpoint, Protocol[Link_contra]):
    """What a link needs of its session, beyond what its owner uses."""

    channel: int
    next_sent_id: int
    """The delivery-id of the next transfer."""
    unsettled_max: int
    """How many deliveries may be unsettled, in each direction."""
    has_second: bool
    """Whether a received delivery has receiver-settle-mode second."""

    @property
    def connection(self) -> LinkConnection:
        """The connection of the session."""

    @property
    def windows(self) -> LinkWindows:
        """Its windows."""

    @property
    def settlements(self) -> PendingDispositions:
        """The outgoing dispositions."""

    @property
    def sent(self) -> UnsettledDeliveries[Link_contra]:
        """The sent deliveries that are not settled."""

    @property
    def received(self) -> UnsettledDeliveries[Link_contra]:
        """The received deliveries that are not settled."""

    def begin_delivery(self) -> None:
        """Count a delivery of several frames that begins."""

    def end_delivery(self, size: int, *, is_complete: bool) -> None:
        """Count a delivery of several frames that has ended; it held `size` bytes."""

    def close_window(self) -> None:
        """Close the incoming window at once; transfers in flight still arrive."""

    def open_window(self) -> None:
        """Open the window that `close_window` has closed."""

    def mark_dirty(self) -> None:
        """Ask the connection for a flush when the output is taken."""

    def send(self, performative: Composite) -> None:
        """Write a frame on the session's channel."""

    def send_flow(self, link: Link_contra, *, drain: bool = False, properties: dict[Any, Any] | None = None) -> None:
        """Write a flow with the state of `link`."""

    def send_or_wait(self, link: Link_contra, head: bytes, payload: Buffer) -> None:
        """Write one transfer, now or when the peer's window opens."""

    def release(self, link: Link_contra) -> None:
        """Drop the deliveries of a link that has detached."""
