"""What a link needs of its session, and by way of that of its connection.

Rule 1: a link knows no more of its session than this, so the session's room lies above the links'.
Rule 2: the protocols are for the type checker alone: attributes are read as they stand, and no call is added.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from ambermq.protocol.amqp10.endpoints import SessionEndpoint
from ambermq.protocol.amqp10.events import Event
from ambermq.protocol.amqp10.framing.output_buffer import OutputBuffer
from ambermq.protocol.amqp10.limits import ConnectionLimits
from ambermq.protocol.amqp10.performatives.base import Composite
from ambermq.protocol.amqp10.types.decode import Buffer

__all__ = ["LinkConnection", "LinkSession", "LinkWindows", "PendingDispositions", "UnsettledDeliveries"]

Link_contra = TypeVar("Link_contra", contravariant=True)
"""The link: a parameter, so that the links' own file imports this one, and not the other way round."""


class LinkConnection(Protocol):
    """What a link needs of the connection of its session."""

    limits: ConnectionLimits
    remote_frame_bytes_max: int
    """The largest frame that the peer takes."""
    partial_bytes: int
    """What deliveries that have not arrived whole cost, over all links."""

    @property
    def events(self) -> list[Event]:
        """Where the link appends what happened."""

    @property
    def output(self) -> OutputBuffer:
        """Where the link adds its transfers."""

    @property
    def remote_container_id(self) -> str:
        """The peer's container id; empty until its open."""

    def takes(self, performative: Composite) -> bool:
        """Return whether the peer takes a frame as long as this one."""


class LinkWindows(Protocol):
    """What a link needs of the windows of its session."""

    remote: int
    """Frames that the peer still takes."""

    def sent(self, count: int) -> None:
        """Count transfer frames that leave."""


class PendingDispositions(Protocol):
    """What a link needs of the settlements that wait for the end of the tick."""

    def flush(self) -> None:
        """Write what waits."""


class UnsettledDeliveries(Protocol[Link_contra]):
    """What a link needs of the deliveries of its session that are not settled, in one direction."""

    count: int
    """Deliveries held."""

    def append(
        self,
        link: Link_contra,
        first_id: int,
        count: int,
        tokens: Sequence[int] | None = None,
        *,
        is_second: bool = False,
    ) -> None:
        """Hold `count` deliveries from `first_id`."""


class LinkSession(SessionEndpoint, Protocol[Link_contra]):
    """What a link needs of its session: what its owner uses, and what only links call."""

    channel: int
    next_sent_id: int
    """The delivery-id of the next transfer."""
    unsettled_max: int
    """Deliveries that may be unsettled, in either direction."""
    has_second: bool
    """Some of what was received is in receiver-settle-mode second."""

    @property
    def connection(self) -> LinkConnection:
        """The connection that it belongs to."""

    @property
    def windows(self) -> LinkWindows:
        """Its windows."""

    @property
    def settlements(self) -> PendingDispositions:
        """The dispositions that leave."""

    @property
    def sent(self) -> UnsettledDeliveries[Link_contra]:
        """What we sent and is not settled."""

    @property
    def received(self) -> UnsettledDeliveries[Link_contra]:
        """What we received and is not settled."""

    def mark_dirty(self) -> None:
        """Ask the connection for a flush when the output is taken."""

    def send(self, performative: Composite) -> None:
        """Write a frame on the session's channel."""

    def send_flow(self, link: Link_contra, *, drain: bool = False) -> None:
        """Write a flow with the state of `link`."""

    def send_or_wait(self, link: Link_contra, head: bytes, payload: Buffer) -> None:
        """Write one transfer frame, now or when the window has room for it."""

    def release(self, link: Link_contra) -> None:
        """Forget what a link held, once it can hold nothing more."""
