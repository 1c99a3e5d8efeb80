"""The receiving end of a link: it grants credit and joins the frames of deliveries.

Rule 1. The first frame of a delivery uses credit, even if the delivery is aborted later.
Rule 2. The deliveries of a link never interleave: all frames belong to one until it is whole or aborted.
Rule 3. An aborted delivery has no effect, except that its delivery-id is used.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from ambermq.protocol.amqp10.errors import LinkFault
from ambermq.protocol.amqp10.events import CreditChanged, TransferAborted, TransferPiece, TransferRun
from ambermq.protocol.amqp10.link.link import BLOCKED, Link
from ambermq.protocol.amqp10.link.link_session import LinkSession
from ambermq.protocol.amqp10.link.partial_delivery import PartialDelivery
from ambermq.protocol.amqp10.performatives.classes import TransactionalState, Transfer
from ambermq.protocol.amqp10.serial_number import MASK, distance
from ambermq.protocol.amqp10.spec import AmqpCondition, LinkCondition, ReceiverSettleMode, SenderSettleMode
from ambermq.protocol.amqp10.state_tables import LinkState
from ambermq.protocol.amqp10.types.decode import Buffer
from ambermq.protocol.amqp10.types.values import Symbol

__all__ = ["ANY_RUN", "Receiver"]

ANY_RUN: Final = 1 << 32
"""More messages than a run can have."""


class Receiver(Link):
    """A link on which we receive."""

    __slots__ = ("cut_tag", "has_settled_tags", "has_tags", "piece_bytes", "resumable", "run_max")

    is_sender = False

    def __init__(self, session: LinkSession[Link], name: str, handle: int) -> None:
        super().__init__(session, name, handle)
        self.has_tags = False
        """For the owner: whether each message is reported alone, with its delivery-tag."""
        self.has_settled_tags = False
        """For the owner: the same for messages that the peer sends settled."""
        self.resumable: Collection[bytes] = ()
        """For the owner: the tags in our unsettled map. The peer may resume their deliveries; others are ignored."""
        self.cut_tag = b""
        """The tag of the delivery that was partial when the link was detached; empty for none."""
        self.piece_bytes = 0
        """For the owner: a larger message is reported in pieces of this size as it arrives; 0: never."""
        self.run_max = ANY_RUN
        """For the owner: the messages of one run. With a limit each of them counts for the turn, as a flow does."""

    def grant(self, credit: int, *, drain: bool = False) -> None:
        """Set the link's credit: the peer may send `credit` more messages. Less than it has changes nothing.

        With `drain` the peer uses the credit up at once or returns it; CreditChanged reports the end of that.
        """
        if self.state not in (LinkState.ATTACHED, LinkState.ATTACH_SENT) or (credit <= self.credit and not drain):
            return
        self.credit = max(credit, self.credit)
        self.drain = drain
        self.session.send_flow(self, drain=drain)

    def tell_blocked(self, reason: str) -> None:
        """Send the peer a flow with the reason for which it is held back; an empty one says that this is over."""
        if self.state is LinkState.ATTACHED:
            self.session.send_flow(self, properties={BLOCKED: Symbol(reason) if reason else None})

    def flow_fields(self) -> tuple[int | None, int, int]:
        """See Link."""
        return (None if self.remote is None else self.delivery_count), self.credit, 0

    def receive_flow(self, count: int | None, credit: int | None, *, drain: bool, echo: bool) -> None:
        """See Link."""
        del credit
        if count is not None:
            skipped = distance(self.delivery_count, count)
            if skipped > 0:
                self.delivery_count = count
                self.credit = max(self.credit - skipped, 0)
        if drain and self.drain and not self.credit:
            self.drain = False
            self.session.connection.events.append(CreditChanged(self))
        if echo and self.state is LinkState.ATTACHED:
            self.session.send_flow(self)

    def receive(self, transfer: Transfer, payload: Buffer) -> bool:
        """Process one frame that the general decoder read; return whether it was a whole delivery.

        Raises LinkFault if the link cannot go on.
        """
        partial = self.partial
        is_first = partial is None
        if partial is None:
            partial = self._begin(transfer)
        else:
            self._check_continuation(partial, transfer)
        if type(transfer.state) is TransactionalState:
            partial.state = transfer.state
        if transfer.aborted:
            self.drop_partial()
            if partial.taken_bytes:
                self.session.connection.events.append(TransferAborted(self))
            self.cut_tag = b""
            return False
        if transfer.settled:
            partial.settled = True
        is_whole = is_first and not transfer.more
        if not is_whole:
            self._keep(partial, payload)
        if partial.size + len(payload) * is_whole > self.session.connection.limits.message_bytes_max:
            raise LinkFault(LinkCondition.MESSAGE_SIZE_EXCEEDED, f"more than {self._size_max} bytes in a message")
        if self.piece_bytes and partial.size - partial.taken_bytes > self.piece_bytes:
            self._report_pieces(partial)
        if transfer.more:
            return False
        self.drop_partial(is_complete=True)
        self._deliver(partial, payload if is_whole else partial.join())
        return is_whole

    def drop_partial(self, *, is_complete: bool = False) -> None:
        """Drop the partial delivery, which is complete, aborted, or ends with the link."""
        partial, self.partial = self.partial, None
        if partial is not None:
            self.cut_tag = b"" if is_complete else bytes(partial.tag or b"")
            self.session.connection.partial_bytes -= partial.cost
            self.session.end_delivery(partial.cost, is_complete=is_complete)

    @property
    def _size_max(self) -> int:
        return self.session.connection.limits.message_bytes_max

    def _begin(self, transfer: Transfer) -> PartialDelivery:
        """Process the first frame of a delivery; the session has checked its id."""
        if self.credit <= 0:
            raise LinkFault(LinkCondition.TRANSFER_LIMIT_EXCEEDED, f"delivery {transfer.delivery_id} without credit")
        if transfer.delivery_id is None or transfer.delivery_tag is None:
            raise LinkFault(AmqpCondition.INVALID_FIELD, "the first transfer of a delivery without its id or tag")
        if len(transfer.delivery_tag) > 32:
            raise LinkFault(
                AmqpCondition.INVALID_FIELD, f"a delivery-tag of {len(transfer.delivery_tag)} bytes, at most 32"
            )
        if self.is_incomplete and not transfer.resume:
            why = "our unsettled map is incomplete: settle, detach and attach before new deliveries"
            raise LinkFault(AmqpCondition.ILLEGAL_STATE, why)
        self.credit -= 1
        self.delivery_count = (self.delivery_count + 1) & MASK
        mode = self.receiver_settle_mode if transfer.rcv_settle_mode is None else transfer.rcv_settle_mode
        is_second = mode == ReceiverSettleMode.SECOND
        partial = PartialDelivery(
            transfer.delivery_id, transfer.delivery_tag, transfer.message_format or 0, is_second=is_second
        )
        partial.is_resumed = transfer.resume
        return partial

    def _check_continuation(self, partial: PartialDelivery, transfer: Transfer) -> None:
        if transfer.delivery_id not in (None, partial.delivery_id) or transfer.delivery_tag not in (None, partial.tag):
            raise LinkFault(
                AmqpCondition.INVALID_FIELD,
                f"delivery {transfer.delivery_id} began before delivery {partial.delivery_id} was whole",
            )
        if transfer.message_format not in (None, partial.message_format):
            raise LinkFault(AmqpCondition.INVALID_FIELD, f"delivery {partial.delivery_id} changed its message format")

    def _keep(self, partial: PartialDelivery, payload: Buffer) -> None:
        """Add the payload of a frame to a partial delivery."""
        connection = self.session.connection
        limits = connection.limits
        if self.partial is None:
            self.session.begin_delivery()
        before = partial.cost
        self.partial = partial
        partial.add(payload, limits.piece_overhead_bytes)
        connection.partial_bytes += partial.cost - before
        connection.memory.change(partial.cost - before)
        if connection.partial_bytes > limits.partial_bytes_max:
            raise LinkFault(
                AmqpCondition.RESOURCE_LIMIT_EXCEEDED,
                f"unfinished deliveries hold more than {limits.partial_bytes_max} bytes",
            )

    def _report_pieces(self, partial: PartialDelivery) -> None:
        """Report the pieces of a partial delivery that have arrived. At least one byte stays for its last frame."""
        connection, before = self.session.connection, partial.cost
        while partial.size - partial.taken_bytes > self.piece_bytes:
            piece = partial.take(self.piece_bytes)
            is_transactional = partial.state is not None
            event = TransferPiece(self, partial.delivery_id, piece, partial.message_format, is_transactional)
            connection.events.append(event)
        connection.partial_bytes += partial.cost - before
        connection.memory.change(partial.cost - before)

    def _deliver(self, partial: PartialDelivery, payload: Buffer) -> None:
        if partial.is_resumed and bytes(partial.tag or b"") not in self.resumable:
            if partial.taken_bytes:
                self.session.connection.events.append(TransferAborted(self))
            return
        mode = self.sender_settle_mode
        if (mode == SenderSettleMode.SETTLED and not partial.settled) or (
            mode == SenderSettleMode.UNSETTLED and partial.settled and not partial.is_resumed
        ):
            raise LinkFault(
                AmqpCondition.INVALID_FIELD, f"settled={partial.settled} on a link with snd-settle-mode {mode}"
            )
        session = self.session
        if not partial.settled:
            # The mode of a settled delivery has no meaning (transport, 2.7.5).
            if partial.is_second and self.receiver_settle_mode != ReceiverSettleMode.SECOND:
                raise LinkFault(AmqpCondition.INVALID_FIELD, "rcv-settle-mode second on a link where first was agreed")
            session.received.append(self, partial.delivery_id, 1, is_second=partial.is_second)
            session.has_second = session.has_second or partial.is_second
        message = bytes(payload) if isinstance(payload, bytearray) else payload
        run = TransferRun(
            self,
            partial.delivery_id,
            [message],
            partial.settled,
            partial.message_format,
            partial.tag,
            partial.state,
            partial.is_resumed,
            partial.taken_bytes,
        )
        session.connection.events.append(run)
