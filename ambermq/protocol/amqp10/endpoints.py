"""The endpoints of links and sessions that events name, as the user of a connection sees them (transport, 2.5, 2.6).

Rule 1. Events need only these protocols. So events.py does not import the packages of links and sessions.
Rule 2. The protocols are for the type checker only. The classes are in link/ and session/.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from ambermq.protocol.amqp10.performatives.classes import Attach, Coordinator, DeliveryState, Error, Source, Target
from ambermq.protocol.amqp10.state_tables import LinkState

__all__ = ["LinkEndpoint", "ReceiverEndpoint", "SessionEndpoint"]


class SessionEndpoint(Protocol):
    """A session, as its owner uses it."""

    is_awaited: bool
    """Whether a link waits for room: the session has too many unsettled deliveries."""

    @property
    def is_live(self) -> bool:
        """Whether the session is mapped, as far as this end knows."""

    @property
    def is_full(self) -> bool:
        """Whether no delivery may be sent until the peer settles one."""

    def await_room(self) -> None:
        """Note that a link waits for room, if the session is full."""

    def links(self) -> Sequence[LinkEndpoint]:
        """Return the links that are not detached at both ends; for an ended session the links that it had."""

    def settle(self, first_id: int, count: int, state: DeliveryState | None) -> None:
        """Settle received deliveries with consecutive ids."""

    def settle_sent(self, first_id: int, count: int, state: DeliveryState | None) -> None:
        """Settle sent deliveries, with their final state."""

    def pause(self) -> None:
        """Close the incoming window; transfers in flight still arrive."""

    def resume(self) -> None:
        """Open the incoming window again."""

    def end(self, error: Error | None = None) -> None:
        """End the session from this end."""


class LinkEndpoint(Protocol):
    """A link, as its owner uses it."""

    name: str
    owner: Any
    """For the owner's use."""
    state: LinkState
    remote: Attach | None
    """The peer's attach; None before it arrives."""
    credit: int
    drain: bool
    sender_settle_mode: int
    receiver_settle_mode: int
    is_sender: bool

    @property
    def session(self) -> SessionEndpoint:
        """The session of the link."""

    @property
    def is_live(self) -> bool:
        """Whether the link is attached, as far as this end knows."""

    @property
    def key(self) -> tuple[str, str, bool]:
        """The permanent identity of the link: the peer's container id, the link's name, and whether this end sends."""

    def accept(
        self,
        source: Source | None,
        target: Target | Coordinator | None,
        *,
        sender_settle_mode: int | None = None,
        receiver_settle_mode: int | None = None,
        max_message_size: int | None = None,
        offered_capabilities: Sequence[str] = (),
        desired_capabilities: Sequence[str] = (),
        properties: dict[Any, Any] | None = None,
        unsettled: Mapping[bytes, DeliveryState | None] | None = None,
        unsettled_bytes_max: int = 0,
    ) -> None:
        """Answer the peer's attach with the actual termini, and with our unsettled map."""

    def refuse(self, error: Error) -> None:
        """Answer the peer's attach with a null terminus, then detach."""

    def detach(self, *, closed: bool = True, error: Error | None = None) -> None:
        """Detach the link from this end."""

    def fail(self, condition: str, description: str) -> None:
        """Detach the link because of an error of the peer, and append the event."""

    def settle(self, first_id: int, count: int, state: DeliveryState | None) -> None:
        """Settle received deliveries of this link."""


class ReceiverEndpoint(LinkEndpoint, Protocol):
    """A link on which this end receives."""

    def grant(self, credit: int, *, drain: bool = False) -> None:
        """Set the link's credit: the peer may send `credit` more messages."""
