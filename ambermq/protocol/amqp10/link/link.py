"""A link: one direction of messages between two termini (transport, 2.6).

Rule 1. The owner answers the peer's attach by accept or refuse, at any time. Our own attach needs no such answer.
Rule 2. After our detach the peer's frames are ignored until its detach. After too many of them the link is errant.
Rule 3. A call on a detached link has no effect, since its owner may learn of the end late.

A Sender is a link on which we send, a Receiver one on which we receive, whichever side attached it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ambermq.protocol.amqp10.events import LinkDetached
from ambermq.protocol.amqp10.framing.transfer_recogniser import TransferRecogniser
from ambermq.protocol.amqp10.link.link_session import LinkSession
from ambermq.protocol.amqp10.link.partial_delivery import PartialDelivery
from ambermq.protocol.amqp10.link.resumption import UnsettledMap
from ambermq.protocol.amqp10.memory_budget import LINK_BYTES, memory_of
from ambermq.protocol.amqp10.performatives.classes import (
    Attach,
    Coordinator,
    DeliveryState,
    Detach,
    Error,
    Source,
    Target,
)
from ambermq.protocol.amqp10.spec import AmqpCondition, Role
from ambermq.protocol.amqp10.state_tables import LINK_TABLE, LinkInput, LinkState
from ambermq.protocol.amqp10.types.encode import encode
from ambermq.protocol.amqp10.types.values import Symbol

__all__ = ["ACTIVE", "BLOCKED", "CREATED", "EXISTING", "UNSETTLED_MAP_BYTES", "Link"]

ACTIVE: Final = Symbol("ambermq:active")
"""The property of a link's flow that says whether its receiver is the active consumer of an exclusive queue."""
BLOCKED: Final = Symbol("ambermq:blocked")
"""The property of a link's flow that says why its sender is held back: a symbol, and null when that is over."""
CREATED: Final = Symbol("ambermq:created")
"""The property of an attach answer that names the queue which the attach has created."""
EXISTING: Final = Symbol("ambermq:existing")
"""The capability by which an attach wants only what exists; the answer to it offers the capability."""
UNSETTLED_MAP_BYTES: Final = 32 << 10
"""The default bound of our unsettled maps."""


class Link:
    """The common part of senders and receivers."""

    __slots__ = (
        "_ignored_frames",
        "_initial_count",
        "blocked",
        "credit",
        "delivery_count",
        "drain",
        "handle",
        "is_incomplete",
        "is_sending",
        "memory_bytes",
        "name",
        "owner",
        "partial",
        "receiver_settle_mode",
        "remote",
        "sender_settle_mode",
        "session",
        "shape",
        "state",
    )

    is_sender: bool

    def __init__(self, session: LinkSession[Link], name: str, handle: int) -> None:
        self.session = session
        self.name = name
        self.handle = handle
        """Our handle of the link; the peer chooses its own."""
        self.state = LinkState.DETACHED
        self.remote: Attach | None = None
        """The peer's attach; None before it arrives."""
        self.credit = 0
        """How many messages may still be sent, as far as we know."""
        self.blocked = ""
        """Why the receiver holds this link back, as its last flow with the property `ambermq:blocked` said."""
        self.drain = False
        """Whether the receiver wants the credit used up."""
        self.delivery_count = 0
        self._initial_count = 0
        self.sender_settle_mode = 2
        self.receiver_settle_mode = 0
        self.memory_bytes = 0
        """The memory of the link, as the account of its connection counts it."""
        self.owner: Any = None
        """For the owner's use."""
        self.is_sending = False
        """Whether a delivery that we send piece by piece is not complete."""
        self.partial: PartialDelivery | None = None
        self.shape: TransferRecogniser | None = None
        """The shape of the next transfer; None if it is unknown, or if the link is not attached."""
        self._ignored_frames = 0
        self.is_incomplete = False
        """Whether our unsettled map was cut: then only deliveries that are resumed are transferred."""

    @property
    def is_live(self) -> bool:
        """Return whether the link is attached at both ends, as far as we know."""
        return self.state is LinkState.ATTACHED

    @property
    def key(self) -> tuple[str, str, bool]:
        """The permanent identity of the link: the peer's container id, the link's name, and whether we send."""
        return (self.session.connection.remote_container_id, self.name, self.is_sender)

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
        unsettled: UnsettledMap | None = None,
        unsettled_bytes_max: int = UNSETTLED_MAP_BYTES,
        unsettled_spare: int = 0,
    ) -> None:
        """Answer the peer's attach with the actual termini. Settle modes default to the peer's.

        `unsettled` is our unsettled map; what exceeds `unsettled_bytes_max` or the frame is left out. So many of its
        last deliveries, which the peer does not have, may be left out without making the map incomplete.
        """
        if self.state is not LinkState.ATTACH_RECEIVED or self.remote is None:
            return
        self.sender_settle_mode = self.remote.snd_settle_mode if sender_settle_mode is None else sender_settle_mode
        self.receiver_settle_mode = (
            self.remote.rcv_settle_mode if receiver_settle_mode is None else receiver_settle_mode
        )
        is_whole = self.send_attach(
            source,
            target,
            max_message_size=max_message_size,
            offered_capabilities=offered_capabilities,
            desired_capabilities=desired_capabilities,
            properties=properties,
            unsettled=unsettled,
            unsettled_bytes_max=unsettled_bytes_max,
            unsettled_spare=unsettled_spare,
        )
        if not is_whole:
            self.fail(AmqpCondition.FRAME_SIZE_TOO_SMALL, "the answer to the attach is longer than your max-frame-size")

    def refuse(self, error: Error) -> None:
        """Answer the peer's attach with a null terminus, then detach."""
        if self.state is LinkState.ATTACH_RECEIVED:
            self._attach_null()
            self.detach(closed=True, error=error)

    def detach(self, *, closed: bool = True, error: Error | None = None) -> None:
        """Detach the link from our end; the peer's answer appends no event."""
        if self.state is LinkState.ATTACH_RECEIVED:
            self._attach_null()
        state = LINK_TABLE.get((self.state, LinkInput.SEND_DETACH))
        if state is not LinkState.DETACH_SENT:
            return
        self.state = state
        self.session.settlements.flush()
        self.session.send(Detach(handle=self.handle, closed=closed, error=error))
        self.session.release(self)

    def fail(self, condition: str, description: str) -> None:
        """Detach because of the peer's fault, and append LinkDetached."""
        error = Error(condition=condition, description=description)
        self.detach(closed=True, error=error)
        self.session.connection.events.append(LinkDetached(self, closed=True, error=error))

    def settle(self, first_id: int, count: int, state: DeliveryState | None) -> None:
        """Settle received deliveries of this link; see `Session.settle`."""
        self.session.settle(first_id, count, state)

    def send_attach(
        self,
        source: Source | None,
        target: Target | Coordinator | None,
        *,
        max_message_size: int | None = None,
        offered_capabilities: Sequence[str] = (),
        desired_capabilities: Sequence[str] = (),
        properties: dict[Any, Any] | None = None,
        unsettled: UnsettledMap | None = None,
        unsettled_bytes_max: int = UNSETTLED_MAP_BYTES,
        unsettled_spare: int = 0,
    ) -> bool:
        """Write our attach; owners do not call it.

        Return False if the answer was too long for the peer: then it was written without termini.
        """
        self.state = LINK_TABLE[self.state, LinkInput.SEND_ATTACH]
        size_max = self.session.connection.limits.message_bytes_max
        attach = Attach(
            name=self.name,
            handle=self.handle,
            role=Role.SENDER if self.is_sender else Role.RECEIVER,
            snd_settle_mode=self.sender_settle_mode,
            rcv_settle_mode=self.receiver_settle_mode,
            source=source,
            target=target,
            initial_delivery_count=self.delivery_count if self.is_sender else None,
            max_message_size=size_max if max_message_size is None else max_message_size,
            offered_capabilities=tuple(offered_capabilities),
            desired_capabilities=tuple(desired_capabilities),
            properties=properties,
        )
        if unsettled is not None:
            self._set_unsettled(attach, unsettled, unsettled_bytes_max, unsettled_spare)
        is_whole = self.state is not LinkState.ATTACHED or self.session.connection.takes(attach)
        if not is_whole:
            count = attach.initial_delivery_count
            attach = Attach(name=self.name, handle=self.handle, role=attach.role, initial_delivery_count=count)
        self.session.send(attach)
        return is_whole

    def _set_unsettled(self, attach: Attach, unsettled: UnsettledMap, bytes_max: int, spare: int) -> None:
        """Set as much of our unsettled map as fits into the frame and into `bytes_max`."""
        attach.unsettled = dict(unsettled)
        tags = list(unsettled)
        needed = len(tags) - spare
        while tags and not (len(encode(attach.unsettled)) <= bytes_max and self.session.connection.takes(attach)):
            # The size falls with each turn, so this is as much work as a few encodings.
            del tags[needed if len(tags) > needed else len(tags) * 3 // 4 :]
            attach.unsettled = {tag: unsettled[tag] for tag in tags}
        attach.incomplete_unsettled = self.is_incomplete = len(tags) < needed

    def receive_attach(self, attach: Attach) -> None:
        """Process the peer's attach; owners do not call it."""
        self.state = LINK_TABLE[self.state, LinkInput.RECEIVE_ATTACH]
        self.remote = attach
        self.memory_bytes = LINK_BYTES + memory_of(attach)
        self.session.connection.memory.change(self.memory_bytes)
        if not self.is_sender:
            self.delivery_count = attach.initial_delivery_count or 0
        if self.state is LinkState.ATTACHED:
            self.sender_settle_mode = attach.snd_settle_mode
            self.receiver_settle_mode = attach.rcv_settle_mode

    def answer_detach(self, *, closed: bool) -> None:
        """Answer the peer's detach; owners do not call it."""
        if self.state is LinkState.ATTACH_RECEIVED:
            self._attach_null()
        self.state = LINK_TABLE[self.state, LinkInput.RECEIVE_DETACH]
        self.session.settlements.flush()
        self.session.send(Detach(handle=self.handle, closed=closed))
        self.state = LINK_TABLE[self.state, LinkInput.SEND_DETACH]

    def receive_flow(self, count: int | None, credit: int | None, *, drain: bool, echo: bool) -> None:
        """Process the peer's flow for this link; owners do not call it."""
        raise NotImplementedError

    def flow_fields(self) -> tuple[int | None, int, int]:
        """Return delivery-count, link-credit and available for our flow; owners do not call it."""
        return self.delivery_count, self.credit, 0

    def drop_partial(self, *, is_complete: bool = False) -> None:
        """Drop the partial delivery; owners do not call it."""

    def is_errant(self, frames_max: int) -> bool:
        """Count a frame after our detach; return whether there were too many."""
        self._ignored_frames += 1
        return self._ignored_frames > frames_max

    def _attach_null(self) -> None:
        """Answer the peer's attach with a null terminus at our end."""
        remote = self.remote
        assert remote is not None
        if self.is_sender:
            self.send_attach(None, remote.target)
        else:
            self.send_attach(remote.source, None)
