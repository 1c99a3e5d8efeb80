"""A consumer that keeps nothing over a connection: base of those that watch locks and groups.

It is in receiver-settle-mode second, so it knows which of its outcomes the broker has applied.
"""

import time
from dataclasses import dataclass
from typing import Final

from ambermq.protocol.amqp10.message.message import Message, decode_message
from ambermq.protocol.amqp10.performatives.classes import (
    Accepted,
    Attach,
    DeliveryState,
    Disposition,
    Source,
    Target,
    Transfer,
)
from ambermq.protocol.amqp10.serial_number import MASK
from tests.crash.endpoints.endpoint import Endpoint
from tests.crash.endpoints.link_wire import LinkWire

__all__ = ["Came", "PlainConsumer"]

_DISRUPTION_SHARE: Final = 0.002


@dataclass(slots=True)
class Came:
    """A delivery that this consumer has not settled."""

    number: int
    message: Message
    tag: bytes
    delivery_id: int
    until_s: float = 0.0
    """When its outcome is said, in time.monotonic()."""


class PlainConsumer(Endpoint):
    """Receives numbered messages; a subclass says what each means."""

    credit = 5

    def number_of(self, message: Message) -> int:
        """Return the number of a message: its message-id."""
        return int(str(message.properties and message.properties.message_id))

    def came(self, one: Came) -> None:
        """Note a delivery, and set when its outcome is said."""
        raise NotImplementedError

    def saying(self, one: Came) -> None:
        """Note that the outcome of a delivery is about to be said."""
        raise NotImplementedError

    def said(self, one: Came, state: DeliveryState | None) -> None:
        """Note the broker's answer to an outcome."""
        raise NotImplementedError

    def serve(self, wire: LinkWire) -> None:
        """See Endpoint."""
        self.url = wire.url
        count = self._attach(wire)
        while self.is_running:
            if self._granted - count < max(self.credit // 2, 1):
                self._granted = count + self.credit
                wire.grant(self.credit, count)
            for performative, payload in wire.arrived(0.005):
                if isinstance(performative, Transfer):
                    count += self._transferred(performative, payload)
                elif isinstance(performative, Disposition):
                    self._answered(performative)
            self._say_due(wire)
            if self.chance.random() < _DISRUPTION_SHARE:
                self.moments.reached("consumer goes")
                self.lost()
                if self.chance.random() < 0.5:
                    return
                wire.detach_link(closed=True)
                count = self._attach(wire)

    def _attach(self, wire: LinkWire) -> int:
        wire.attach_link(
            Attach(
                name=self.name,
                handle=0,
                role=True,
                source=Source(address=self.address),
                target=Target(),
                rcv_settle_mode=1,
            )
        )
        self.sessions += 1
        self._granted = 0
        self._held: dict[int, Came] = {}
        self._parts: tuple[Transfer, bytes] | None = None
        return 0

    def _transferred(self, transfer: Transfer, payload: bytes) -> int:
        """Process a frame; return how many messages are complete."""
        first, before = self._parts or (transfer, b"")
        self._parts = (first, before + payload) if transfer.more else None
        if transfer.more:
            return 0
        message = decode_message(before + payload)
        one = Came(self.number_of(message), message, bytes(first.delivery_tag or b""), first.delivery_id or 0)
        self._held[one.delivery_id] = one
        self.came(one)
        self.moments.reached("message held")
        return 1

    def _say_due(self, wire: LinkWire) -> None:
        now_s = time.monotonic()
        for one in [one for one in self._held.values() if 0.0 < one.until_s <= now_s]:
            one.until_s = 0.0
            self.saying(one)
            wire.say(Disposition(role=True, first=one.delivery_id, settled=False, state=Accepted()))
            self.moments.reached("outcome said")

    def _answered(self, answer: Disposition) -> None:
        last = answer.first if answer.last is None else answer.last
        for offset in range((last - answer.first & MASK) + 1):
            one = self._held.pop((answer.first + offset) & MASK, None)
            if one is not None and answer.settled:
                self.said(one, answer.state)
