"""What an event names: the endpoints of links and sessions, as their owner uses them (transport, 2.5 and 2.6).

Rule 1: an event needs no more than these protocols, so events.py lies below the rooms of links and sessions.
Rule 2: they are protocols for the type checker alone: the objects are those of link/ and session/.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from ambermq.protocol.amqp10.performatives.classes import Attach, Coordinator, DeliveryState, Error, Source, Target
from ambermq.protocol.amqp10.state_tables import LinkState

__all__ = ["LinkEndpoint", "ReceiverEndpoint", "SessionEndpoint"]


class SessionEndpoint(Protocol):
    """A session, as its owner uses it."""

    is_awaited: bool
    """A link of it waits for room: too much is unsettled."""

    @property
    def is_live(self) -> bool:
        """Whether it is mapped at both ends, as far as we know."""

    @property
    def is_full(self) -> bool:
        """Whether nothing more may leave until the peer settles something."""

    def await_room(self) -> None:
        """Note that a link waits for room, where the session is full."""

    def links(self) -> Sequence[LinkEndpoint]:
        """Return the links that are not detached at both ends; of an ended session those that it had."""

    def settle(self, first_id: int, count: int, state: DeliveryState | None) -> None:
        """Settle received deliveries with consecutive ids."""

    def settle_sent(self, first_id: int, count: int, state: DeliveryState | None) -> None:
        """Settle deliveries that we sent, with their final state."""

    def pause(self) -> None:
        """Close the incoming window; what is in flight still comes."""

    def resume(self) -> None:
        """Open the incoming window again."""

    def end(self, error: Error | None = None) -> None:
        """End the session from our side."""


class LinkEndpoint(Protocol):
    """A link, as its owner uses it."""

    name: str
    owner: Any
    """For the owner's use."""
    state: LinkState
    remote: Attach | None
    """The peer's attach, once it came."""
    credit: int
    drain: bool
    sender_settle_mode: int
    receiver_settle_mode: int
    is_sender: bool

    @property
    def session(self) -> SessionEndpoint:
        """The session that it belongs to."""

    @property
    def is_live(self) -> bool:
        """Whether it is attached at both ends, as far as we know."""

    @property
    def key(self) -> tuple[str, str, bool]:
        """What names the link for ever: the peer's container id, the link's name, and whether we send."""

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
    ) -> None:
        """Answer the peer's attach with the termini as they are."""

    def refuse(self, error: Error) -> None:
        """Answer the peer's attach with a null terminus, then detach."""

    def detach(self, *, closed: bool = True, error: Error | None = None) -> None:
        """End the link from our side."""

    def fail(self, condition: str, description: str) -> None:
        """Detach for the peer's fault, and append the event."""

    def settle(self, first_id: int, count: int, state: DeliveryState | None) -> None:
        """Settle received deliveries of this link."""


class ReceiverEndpoint(LinkEndpoint, Protocol):
    """A link on which we receive."""

    def grant(self, credit: int, *, drain: bool = False) -> None:
        """Allow the peer to send until `credit` messages more have come."""
