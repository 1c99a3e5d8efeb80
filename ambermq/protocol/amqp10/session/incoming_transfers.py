"""Transfers that come in, of all links of one session (transport, 2.5.6 and 2.6.14).

Rule 1. Transfers like the last one of their link are taken in runs: window, credit and ids are counted once a run.
Rule 2. The window counts every frame, and so does the delivery-id, even if the frame ends its link. So the fault of one
        link leaves the ids of the others in sequence.
Rule 3. A fault of the link ends the link here; any other fault is raised.
"""

from __future__ import annotations

from ambermq.protocol.amqp10.errors import LinkFault, SessionFault
from ambermq.protocol.amqp10.events import TransferRun
from ambermq.protocol.amqp10.framing.frames import decode_frame_body
from ambermq.protocol.amqp10.framing.transfer_recogniser import learn, plain_handle
from ambermq.protocol.amqp10.link.link import Link
from ambermq.protocol.amqp10.link.receiver import ANY_RUN, Receiver
from ambermq.protocol.amqp10.performatives.classes import TransactionalState, Transfer
from ambermq.protocol.amqp10.serial_number import MASK
from ambermq.protocol.amqp10.session.link_registry import LinkRegistry
from ambermq.protocol.amqp10.session.parent_session import ParentSession
from ambermq.protocol.amqp10.spec import AmqpCondition, ReceiverSettleMode, SessionCondition
from ambermq.protocol.amqp10.state_tables import LinkState
from ambermq.protocol.amqp10.types.decode import Buffer

__all__ = ["IncomingTransfers"]


class IncomingTransfers:
    """The receiving half of one session."""

    __slots__ = ("_latest", "_links", "_next_id", "_session")

    def __init__(self, session: ParentSession, links: LinkRegistry) -> None:
        self._session = session
        self._links = links
        self._next_id = -1
        """The next delivery-id; -1 before the first transfer."""
        self._latest: Receiver | None = None
        """The link of the last transfer, which the recogniser compares with the next."""

    def receive(self, data: Buffer, position: int, body: int, frame_end: int, end: int) -> int:
        """Process the transfer at `position` and the frames like it up to `end`; return the position after them.

        Raises SessionFault or DecodeError if the session or the connection cannot go on.
        """
        session = self._session
        link = self._links.by_handle.get(plain_handle(data, body, frame_end))
        if type(link) is Receiver:
            self._latest, session.connection.recogniser = link, self
            after = self.take_alike(data, position, end)
            if after != position:
                return after
        transfer, payload_start = decode_frame_body(data, body, frame_end)
        assert type(transfer) is Transfer
        link = self._links.by_handle.get(transfer.handle)
        if session.windows.left <= 0:
            raise SessionFault(SessionCondition.WINDOW_VIOLATION, "a transfer beyond the incoming window")
        if link is None:
            why = f"transfer for handle {transfer.handle}, which has no link"
            raise SessionFault(SessionCondition.UNATTACHED_HANDLE, why)
        if session.windows.received(1):
            session.mark_dirty()
        self._count_delivery(link, transfer.delivery_id, is_resumed=transfer.resume)
        try:
            self._receive_one(link, transfer, data, position, payload_start, frame_end)
        except LinkFault as fault:
            link.fail(fault.condition, fault.description)
        return frame_end

    def take_alike(self, data: Buffer, position: int, end: int) -> int:
        """Process whole transfers like the last one; return the position after them, `position` to decline."""
        link, session, first_id = self._latest, self._session, self._next_id
        if link is None or link.shape is None or link.partial is not None:
            return position
        shape, windows = link.shape, session.windows
        payloads, after = shape.match(data, position, end, first_id, min(link.credit, windows.left, link.run_max))
        count = len(payloads)
        if not count:
            return position
        self._next_id = (first_id + count) & MASK
        link.credit -= count
        link.delivery_count = (link.delivery_count + count) & MASK
        if link.run_max < ANY_RUN:
            session.connection.turn_cost += count
        if windows.received(count):
            session.mark_dirty()
        if not shape.settled:
            is_second = link.receiver_settle_mode == ReceiverSettleMode.SECOND
            if is_second:
                session.has_second = True
            session.received.append(link, first_id, count, is_second=is_second)
        session.connection.events.append(TransferRun(link, first_id, payloads, shape.settled, state=shape.state))
        return after

    def _count_delivery(self, link: Link, delivery_id: int | None, *, is_resumed: bool) -> None:
        """Check that the delivery-ids are consecutive, and count one."""
        if delivery_id is None or (link.partial is not None and delivery_id == link.partial.delivery_id):
            return
        expected = self._next_id
        if link.state is LinkState.DETACH_SENT and delivery_id != expected:
            return  # The frame may continue a delivery that was dropped with the link.
        if expected >= 0 and delivery_id != expected:
            if is_resumed and not self._session.received.find(delivery_id, delivery_id):
                return  # It has the id that it had in this session before its link was detached.
            raise SessionFault(AmqpCondition.INVALID_FIELD, f"delivery-id {delivery_id}, expected {expected}")
        self._next_id = (delivery_id + 1) & MASK

    def _receive_one(
        self, link: Link, transfer: Transfer, data: Buffer, position: int, payload_start: int, frame_end: int
    ) -> None:
        limits = self._session.connection.limits
        if link.state is LinkState.DETACH_SENT:
            if link.is_errant(limits.window_frames):
                raise SessionFault(SessionCondition.ERRANT_LINK, f"link {link.name!r} sends frames after its detach")
            return
        if not isinstance(link, Receiver):
            raise LinkFault(AmqpCondition.NOT_ALLOWED, "a transfer to the sender of the link")
        if link.run_max < ANY_RUN:
            self._session.connection.turn_cost += 1
        is_whole = link.receive(transfer, data[payload_start:frame_end])
        state = transfer.state if type(transfer.state) is TransactionalState else None
        is_plain = not transfer.message_format and transfer.state is state and transfer.rcv_settle_mode is None
        is_plain = is_plain and not transfer.resume
        # A run of recognised transfers has no tags.
        is_tagged = link.has_tags or (link.has_settled_tags and transfer.settled)
        if is_whole and is_plain and not is_tagged and bytes(data[position + 8 : position + 11]) == b"\0S\x14":
            size_max = min(limits.frame_bytes_max, limits.message_bytes_max)
            link.shape = learn(data, position, payload_start, size_max + 1, settled=bool(transfer.settled), state=state)
