"""A sender in receiver-settle-mode second that resumes its link: each of its messages is stored exactly once.

It keeps the tag of a message until it has settled it. After each attach both unsettled maps say what the broker has.
Its large messages are sent in several frames, and some of them are cut off by a detach.
"""

import time
from collections.abc import Callable
from typing import Any, Final, final

from ambermq.protocol.amqp10.message.message import Message
from ambermq.protocol.amqp10.performatives.base import Composite
from ambermq.protocol.amqp10.performatives.classes import (
    Accepted,
    Attach,
    Disposition,
    Source,
    Target,
    Transfer,
)
from ambermq.protocol.amqp10.serial_number import MASK
from tests.crash.endpoints.delivery_ledger import DeliveryLedger
from tests.crash.endpoints.exact_bodies import exact_message
from tests.crash.endpoints.exact_link import ExactLink
from tests.crash.endpoints.link_wire import LinkWire

__all__ = ["ExactSender"]

_UNSETTLED_MAX: Final = 60
_FRAME_BYTES: Final = 8000
_CUT_SHARE: Final = 0.05
"""The probability that a large message is cut off by a detach, where it is sent for the first time."""
_ADOPTED_SHARE: Final = 0.5
"""The probability that a known outcome is adopted by a settled transfer; otherwise the broker is asked again."""
_EMPTY_SHARE: Final = 0.6
"""The probability that it is asked without the message."""
_DISRUPTION_SHARE: Final = 0.01
"""The probability of a detach, an end, a loss or a takeover after a message."""


@final
class ExactSender(ExactLink):
    """Sends numbered messages to a queue."""

    role = "sender"

    def __init__(
        self, *arguments: Any, ledger: DeliveryLedger, rate: int, message_of: Callable[[int], Message] = exact_message
    ) -> None:
        """`message_of` returns the message with a number, each time the same."""
        super().__init__(*arguments, ledger=ledger)
        self.is_sending = True
        """Whether new messages follow; without them it ends with the last settlement."""
        self._rate, self._message_of = rate, message_of
        self._unsettled: dict[bytes, int] = {}
        """The numbers of messages that we have not settled, by tag."""
        self._known = set[bytes]()
        """Tags whose outcome we know."""
        self._again: list[bytes] = []
        """Tags to send again, on the link of now."""
        self._ids: dict[int, bytes] = {}
        self._count = 0
        self._is_cut_short = False
        """Whether the link is to be attached again at once."""
        self._is_incomplete = False
        """Whether a map was cut: then nothing new may be sent before the next attach."""

    @property
    def is_done(self) -> bool:
        """Whether all is settled."""
        return not self.is_sending and not self._unsettled

    def serve(self, wire: LinkWire) -> None:
        """See Endpoint."""
        self.attach(wire)
        began, before, is_due = time.monotonic(), self._count, True
        while self.is_running:
            for said, _ in wire.arrived(0.0 if is_due else 0.002):
                self._heard(wire, said)
            is_due = self._count - before < (time.monotonic() - began) * self._rate
            is_due = is_due and self._count < wire.credit_end and wire.window > 0 and self._send_next(wire)
            # At the end another attach brings back what was left for it.
            is_left = not self.is_sending and bool(self._unsettled)
            share = _DISRUPTION_SHARE if is_due or is_left else 0.0
            if self._is_cut_short or self.chance.random() < share:
                if self.disrupt(wire):
                    return
                began, before = time.monotonic(), self._count

    def _send_next(self, wire: LinkWire) -> bool:
        """Send one message; return whether there was one."""
        if self._again:
            self._send(wire, self._again.pop(0), is_new=False)
        elif self._is_incomplete:
            # Those that the broker has are sent; the next attach may show the others.
            self._is_cut_short = not self._ids
            return False
        elif self.is_sending and len(self._unsettled) < _UNSETTLED_MAX:
            number = self.ledger.take_number()
            tag = b"%s-%d" % (self.name.encode(), number)
            self._unsettled[tag] = number
            self._send(wire, tag, is_new=True)
        else:
            return False
        return True

    def attach_frame(self) -> Attach:
        """See ExactLink."""
        return Attach(
            name=self.name,
            handle=0,
            role=False,
            source=Source(),
            target=Target(address=self.address, durable=2, expiry_policy="never"),
            initial_delivery_count=0,
            rcv_settle_mode=1,
            unsettled={tag: Accepted() if tag in self._known else None for tag in self._unsettled},
        )

    def attach(self, wire: LinkWire) -> None:
        """See ExactLink."""
        self.moments.reached("sender attaches")
        answer = wire.attach_link(self.attach_frame())
        self.sessions += 1
        self._ids, self._count, self._is_cut_short = {}, 0, False
        theirs = answer.unsettled or {}
        self._again = []
        for tag, number in self._unsettled.items():
            if tag not in theirs and tag in self._known and not answer.incomplete_unsettled:
                self.note(f"tag: {self.name}: {number} is accepted and not settled, and the broker forgot its tag")
            if theirs.get(tag) is not None:
                self._accepted(tag)
            if tag in theirs or not answer.incomplete_unsettled:
                self._again.append(tag)
        self._theirs, self._is_incomplete = set(theirs), bool(answer.incomplete_unsettled)

    def _send(self, wire: LinkWire, tag: bytes, *, is_new: bool) -> None:
        """Send a message, or resume its delivery."""
        number, is_known = self._unsettled[tag], tag in self._known
        delivery_id = wire.next_delivery_id
        wire.next_delivery_id = (delivery_id + 1) & MASK
        self._count += 1
        transfer = Transfer(handle=0, delivery_id=delivery_id, delivery_tag=tag, message_format=0)
        transfer.resume = not is_new and tag in self._theirs
        if transfer.resume:
            self.ledger.resumed += 1
        if is_known and self.chance.random() < _ADOPTED_SHARE:
            transfer.settled, transfer.state = True, Accepted()
            wire.transfer(transfer, b"")
            self._forget(tag)
            return
        self._ids[delivery_id] = tag
        if is_known and self.chance.random() < _EMPTY_SHARE:
            wire.transfer(transfer, b"")
            return
        self._send_frames(wire, transfer, self._message_of(number).encode(), is_new=is_new)
        self.moments.reached("message sent")

    def _send_frames(self, wire: LinkWire, transfer: Transfer, payload: bytes, *, is_new: bool) -> None:
        pieces = [payload[start : start + _FRAME_BYTES] for start in range(0, len(payload), _FRAME_BYTES)]
        if len(pieces) > 1 and is_new and self.chance.random() < _CUT_SHARE:
            pieces = pieces[: self.chance.randrange(1, len(pieces))]
            self._is_cut_short = True
        for index, piece in enumerate(pieces):
            while wire.window <= 0:
                for said, _ in wire.arrived(0.1):
                    self._heard(wire, said)
            transfer.more = self._is_cut_short or index + 1 < len(pieces)
            wire.transfer(transfer, piece)
            transfer = Transfer(handle=0)
            if index:
                self.moments.reached("message half sent")

    def _heard(self, wire: LinkWire, said: Composite) -> None:
        if not isinstance(said, Disposition):
            return
        last = said.first if said.last is None else said.last
        for delivery_id in range(said.first, said.first + (last - said.first & MASK) + 1):
            tag = self._ids.get(delivery_id & MASK)
            if tag is None:
                continue
            if not isinstance(said.state, Accepted):
                self.note(f"outcome: {self.name}: {self._unsettled.get(tag)} was {said.state!r}")
                continue
            self._accepted(tag)
            if self.chance.random() < 0.97:
                self.moments.reached("sender settles")
                wire.say(Disposition(role=False, first=delivery_id & MASK, settled=True, state=Accepted()))
                del self._ids[delivery_id & MASK]
                self._forget(tag)
            # Otherwise the tag is settled after the next attach.

    def _accepted(self, tag: bytes) -> None:
        if tag in self._unsettled:
            self._known.add(tag)
            self.ledger.accept(self._unsettled[tag])

    def _forget(self, tag: bytes) -> None:
        self._unsettled.pop(tag, None)
        self._known.discard(tag)
