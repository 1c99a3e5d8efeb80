"""The sending side of a link: credit, drain, transfers.

Rule 1. No delivery is sent without credit. The owner checks `sendable` first; LocalError for more is our own fault.
Rule 2. A delivery too large for the peer's frames is cut. Frames without a window wait in the session, and until they
        are sent nothing else is sendable there.
Rule 3. The delivery-tag is the prefix and the token, 16 bytes; tags are not stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ambermq.protocol.amqp10.errors import LocalError
from ambermq.protocol.amqp10.events import CreditChanged
from ambermq.protocol.amqp10.framing.frame_templates import TransferTemplate
from ambermq.protocol.amqp10.framing.frames import encode_frame
from ambermq.protocol.amqp10.framing.output_buffer import LARGE_BYTES
from ambermq.protocol.amqp10.link.link import ACTIVE, Link
from ambermq.protocol.amqp10.link.link_session import LinkSession
from ambermq.protocol.amqp10.performatives.classes import DeliveryState, Transfer
from ambermq.protocol.amqp10.serial_number import HALF, MASK
from ambermq.protocol.amqp10.spec import SenderSettleMode
from ambermq.protocol.amqp10.state_tables import LinkState
from ambermq.protocol.amqp10.types.decode import Buffer

__all__ = ["Sender"]

_CREDIT_MAX: Final = 0x7FFFFFFF
# Module names, since the access to an enumeration member costs as much as a call.
_ATTACHED: Final = LinkState.ATTACHED


class Sender(Link):
    """A link on which we send."""

    __slots__ = ("_large_bytes", "_template", "_template_key", "available", "tag_prefix")

    is_sender = True

    def __init__(self, session: LinkSession[Link], name: str, handle: int, initial_count: int = 0) -> None:
        super().__init__(session, name, handle)
        self.delivery_count = initial_count
        self._initial_count = initial_count
        self.available = 0
        """For the owner: how many messages wait, as flows report it."""
        self.tag_prefix = bytes(8)
        """The first eight bytes of delivery-tags, which `use_tag_prefix` changes."""
        self._template: TransferTemplate
        self._template_key: tuple[int, bool] | None = None
        """The message format, and whether transfers are settled; None without a template."""
        self._large_bytes = 0
        """The size from which payloads are not joined with their frames, or do not fit into one."""

    @property
    def sendable(self) -> int:
        """How many messages may be sent now: limited by credit, window and our limit of unsettled deliveries."""
        if self.state is not _ATTACHED:
            return 0
        # An attached link has a mapped session; while frames wait there, the peer's window is 0.
        session = self.session
        return min(self.credit, session.windows.remote, session.unsettled_max - session.sent.count)

    def send_run(
        self, tokens: Sequence[int], payloads: Sequence[Buffer], settled: bool = False, message_format: int = 0
    ) -> int:
        """Send whole messages with one token (u64) each; return the delivery-id of the first. The ids are consecutive.

        Raises LocalError for more messages than `sendable`, or if `settled` contradicts the settle mode.
        """
        first_id = self.session.next_sent_id
        if not self.offer_run(tokens, payloads, settled, message_format):
            raise LocalError(f"{len(payloads)} messages where {self.sendable} are sendable")
        return first_id

    def offer_run(
        self, tokens: Sequence[int], payloads: Sequence[Buffer], settled: bool = False, message_format: int = 0
    ) -> bool:
        """Send whole messages as `send_run` does, if all of them are `sendable`; return whether they were sent."""
        count = len(payloads)
        if count > self.sendable:
            return False
        if self._template_key != (message_format, settled):
            self._learn_template(message_format, settled=settled)
        session = self.session
        first_id = session.next_sent_id
        if max(map(len, payloads), default=0) < self._large_bytes:
            session.connection.output.add(self._template.join(first_id, tokens, payloads))
            session.windows.sent(count)
        else:
            self._send_large(first_id, tokens, payloads)
        self.credit -= count
        self.delivery_count = (self.delivery_count + count) & MASK
        session.next_sent_id = (first_id + count) & MASK
        if not settled and count:
            session.sent.append(self, first_id, count, tokens)
        return True

    def begin_parts(self, token: int, settled: bool = False) -> int:
        """Begin a delivery of message format 0 that is sent part by part, if one is `sendable`; return its id.

        Until its last part is sent nothing else may be sent on the link.
        """
        if self.sendable < 1 or self.is_sending:
            raise LocalError("a message in parts where none is sendable")
        if self._template_key != (0, settled):
            self._learn_template(0, settled=settled)
        session = self.session
        delivery_id = session.next_sent_id
        self.credit -= 1
        self.delivery_count = (self.delivery_count + 1) & MASK
        session.next_sent_id = (delivery_id + 1) & MASK
        if not settled:
            session.sent.append(self, delivery_id, 1, (token,))
        self.is_sending = True
        return delivery_id

    def resume_parts(self, token: int, state: DeliveryState | None = None) -> int:
        """Resume a delivery of this token that is sent part by part, if one is `sendable`; return its id.

        `state` is where its parts begin. The frame of the resumption has no bytes, so no part is the first one.
        """
        delivery_id = self.begin_parts(token)
        transfer = Transfer(
            handle=self.handle,
            delivery_id=delivery_id,
            delivery_tag=self.tag_of(token),
            message_format=0,
            more=True,
            state=state,
            resume=True,
        )
        self.session.send_or_wait(self, encode_frame(self.session.channel, transfer), b"")
        return delivery_id

    def send_part(self, delivery_id: int, token: int, part: memoryview, *, is_first: bool, is_last: bool) -> int:
        """Send a part of a message, as far as the peer's window allows; return how many bytes were sent.

        The next call sends the rest. `is_first` and `is_last` are about the bytes of this call, at least one.
        """
        session, template, start = self.session, self._template, 0
        frame_bytes_max = session.connection.remote_frame_bytes_max - template.head_bytes
        while start < len(part) and session.windows.remote > 0 and self.state is _ATTACHED:
            piece = part[start : start + frame_bytes_max]
            end = start + len(piece)
            more = not (is_last and end == len(part))
            head = template.part(delivery_id, token, len(piece), is_first=is_first and not start, more=more)
            session.send_or_wait(self, head, piece)
            self.is_sending = more
            start = end
        return start

    def abort_parts(self, delivery_id: int) -> None:
        """Abort a delivery that was begun and is not complete; it is settled."""
        if self.is_sending and self.state is _ATTACHED:
            self.session.send_or_wait(self, self._template.abort(), b"")
            self.session.sent.take(delivery_id, delivery_id)
        self.is_sending = False

    def use_tag_prefix(self, prefix: bytes) -> None:
        """Set the first eight bytes of the delivery-tags of later messages."""
        if prefix != self.tag_prefix:
            self.tag_prefix, self._template_key = prefix, None

    def resume_delivery(
        self, token: int, payload: Buffer, *, state: DeliveryState | None = None, settled: bool = False
    ) -> bool:
        """Resume a delivery of this token with the rest of its message; return whether one was `sendable`.

        `state` is where the payload begins, or with `settled` the outcome.
        """
        if self.sendable < 1:
            return False
        session, delivery_id = self.session, self.session.next_sent_id
        view = memoryview(payload)
        transfer = Transfer(
            handle=self.handle,
            delivery_id=delivery_id,
            delivery_tag=self.tag_of(token),
            message_format=0,
            settled=settled,
            state=state,
            resume=True,
        )
        while True:
            room = session.connection.remote_frame_bytes_max - len(encode_frame(session.channel, transfer))
            piece, view = view[: max(room, 1)], view[max(room, 1) :]
            transfer.more = bool(view)
            session.send_or_wait(self, encode_frame(session.channel, transfer, piece), b"")
            if not view:
                break
            transfer = Transfer(handle=self.handle, settled=settled, resume=True)
        self.credit -= 1
        self.delivery_count = (self.delivery_count + 1) & MASK
        session.next_sent_id = (delivery_id + 1) & MASK
        if not settled:
            session.sent.append(self, delivery_id, 1, (token,))
        return True

    def tag_of(self, token: int) -> bytes:
        """Return the delivery-tag of a token."""
        return self.tag_prefix + token.to_bytes(8, "big")

    def drained(self) -> None:
        """Answer a drain, when no message is left to send: the rest of the credit is returned."""
        if self.state is _ATTACHED and self.drain:
            self.delivery_count = (self.delivery_count + self.credit) & MASK
            self.credit = 0
            self.session.send_flow(self, drain=True)
            self.drain = False

    def tell_active(self, *, is_active: bool) -> None:
        """Send the peer a flow that says whether it is the active consumer of an exclusive queue."""
        if self.state is _ATTACHED:
            self.session.send_flow(self, properties={ACTIVE: is_active})

    def end_drain(self, *, has_more: bool) -> None:
        """Answer a drain that brings no further message: all are sent, no credit is left, or the session is full."""
        if self.drain and (not self.credit or self.session.is_full or (not has_more and self.sendable)):
            self.drained()

    def settle_sent(self, first_id: int, count: int, state: DeliveryState | None) -> None:
        """Settle sent deliveries, as receiver-settle-mode second requires."""
        self.session.settle_sent(first_id, count, state)

    def flow_fields(self) -> tuple[int | None, int, int]:
        """See Link."""
        return self.delivery_count, self.credit, self.available

    def receive_flow(self, count: int | None, credit: int | None, *, drain: bool, echo: bool) -> None:
        """See Link."""
        # Before our attach arrives, a receiver does not know the delivery-count, and counts from the initial one.
        seen = self._initial_count if count is None else count
        if credit is not None:
            ahead = ((seen - self.delivery_count + HALF) & MASK) - HALF
            self.credit = min(max(ahead + credit, 0), _CREDIT_MAX)
        self.drain = drain
        self.session.connection.events.append(CreditChanged(self))
        # `drained` answers a drain: an answer here would look like its end.
        if echo and not drain and self.state is _ATTACHED:
            self.session.send_flow(self)

    def _learn_template(self, message_format: int, *, settled: bool) -> None:
        forbidden = SenderSettleMode.UNSETTLED if settled else SenderSettleMode.SETTLED
        if self.sender_settle_mode == forbidden:
            raise LocalError(f"settled={settled} on a link with snd-settle-mode {self.sender_settle_mode}")
        if len(self.tag_prefix) != 8:
            raise LocalError(f"a tag prefix of {len(self.tag_prefix)} bytes, expected 8")
        channel = self.session.channel
        template = TransferTemplate(channel, self.handle, self.tag_prefix, message_format, settled=settled)
        self._template, self._template_key = template, (message_format, settled)
        self._large_bytes = min(LARGE_BYTES, self.session.connection.remote_frame_bytes_max - template.head_bytes + 1)

    def _send_large(self, first_id: int, tokens: Sequence[int], payloads: Sequence[Buffer]) -> None:
        """Send messages of which one is too large to be joined with its frame, or to fit into one."""
        session, template = self.session, self._template
        frame_bytes_max = session.connection.remote_frame_bytes_max
        if template.head_bytes + max(map(len, payloads)) <= frame_bytes_max:
            output = session.connection.output
            for piece in template.pieces(first_id, tokens, payloads):
                output.add(piece)
            session.windows.sent(len(payloads))
            return
        ids = range(first_id, first_id + len(payloads))
        for unmasked_id, token, payload in zip(ids, tokens, payloads, strict=True):
            delivery_id = unmasked_id & MASK
            if template.head_bytes + len(payload) <= frame_bytes_max:
                head = template.frame(delivery_id, token, len(payload))
                session.send_or_wait(self, head, payload)
                continue
            for head, piece in template.cut(delivery_id, token, payload, frame_bytes_max):
                session.send_or_wait(self, head, piece)
