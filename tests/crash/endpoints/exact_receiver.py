"""A receiver in receiver-settle-mode second that resumes its link: each message is accepted exactly once.

It keeps the tag of a delivery until the broker has settled it. A resumed link gets what it holds again: from the
beginning, from a position, or settled where the outcome is known.
"""

import time
from dataclasses import dataclass
from typing import Any, Final, final

from ambermq.protocol.amqp10.message.message import Data, decode_message
from ambermq.protocol.amqp10.performatives.classes import (
    Accepted,
    Attach,
    DeliveryState,
    Disposition,
    Received,
    Released,
    Source,
    Target,
    Transfer,
)
from ambermq.protocol.amqp10.serial_number import MASK
from tests.crash.endpoints.delivery_ledger import DeliveryLedger
from tests.crash.endpoints.exact_bodies import exact_body
from tests.crash.endpoints.exact_link import ExactLink
from tests.crash.endpoints.link_wire import LinkWire

__all__ = ["ExactReceiver"]

_CREDIT: Final = 40
_RELEASED_SHARE: Final = 0.02
_KEPT_SHARE: Final = 0.03
"""The probability that a delivery gets its outcome after the next attach."""
_DISRUPTION_SHARE: Final = 0.01
_END_SHARE: Final = 0.2
"""The same at the end: another attach brings back what was left for it."""
_INCOMPLETE_SECONDS: Final = 0.3
_BODY_SECTION: Final = b"\x00\x53\x75"
_BODY_SECTION_NUMBER: Final = 2
"""Header and properties go before the body."""


@dataclass(slots=True)
class _Held:
    """A delivery that the broker has not settled, as far as we know."""

    number: int = -1
    """The number of the message; -1 until all of it has come."""
    payload: bytes = b""
    """What has come of it."""
    outcome: DeliveryState | None = None
    """What we have said of it."""

    @property
    def state(self) -> DeliveryState | None:
        """What our unsettled map says."""
        if self.outcome is not None or self.number >= 0:
            return self.outcome
        start = self.payload.find(_BODY_SECTION)
        if start < 0:
            return None
        return Received(section_number=_BODY_SECTION_NUMBER, section_offset=len(self.payload) - start)


@final
class ExactReceiver(ExactLink):
    """Receives the numbered messages of a queue."""

    role = "receiver"

    def __init__(self, *arguments: Any, ledger: DeliveryLedger) -> None:
        super().__init__(*arguments, ledger=ledger)
        self._held: dict[bytes, _Held] = {}
        self._ids: dict[int, bytes] = {}
        self._current: tuple[bytes, Transfer] | None = None
        """The delivery whose frames are coming, and its first frame."""
        self._count = 0
        self._incomplete = False
        """Whether a map was cut: then the link gets only what it has, and attaches again after that."""
        self._attached_s = 0.0
        self.is_ending = False
        """Whether nothing new is sent."""

    def serve(self, wire: LinkWire) -> None:
        """See Endpoint."""
        self.attach(wire)
        granted = 0
        while self.is_running:
            if granted - self._count < _CREDIT // 2:
                granted = self._count + _CREDIT
                wire.grant(_CREDIT, self._count)
            for said, payload in wire.arrived(0.05):
                if isinstance(said, Transfer):
                    self._transferred(wire, said, payload)
                elif isinstance(said, Disposition):
                    self._disposed(said)
            is_over = self._incomplete and time.monotonic() > self._attached_s + _INCOMPLETE_SECONDS
            if is_over or self.chance.random() < (_END_SHARE if self.is_ending and self._held else _DISRUPTION_SHARE):
                if self.disrupt(wire, by_detach=self._incomplete):
                    return
                granted = 0

    @property
    def held(self) -> int:
        """The deliveries that are not settled."""
        return len(self._held)

    def attach_frame(self) -> Attach:
        """See ExactLink."""
        return Attach(
            name=self.name,
            handle=0,
            role=True,
            source=Source(address=self.address, durable=2, expiry_policy="never"),
            target=Target(),
            rcv_settle_mode=1,
            unsettled={tag: held.state for tag, held in self._held.items()},
        )

    def attach(self, wire: LinkWire) -> None:
        """See ExactLink."""
        self.moments.reached("receiver attaches")
        answer = wire.attach_link(self.attach_frame())
        self.sessions += 1
        self._ids, self._count, self._current = {}, 0, None
        self._incomplete, self._attached_s = bool(answer.incomplete_unsettled), time.monotonic()
        if self._incomplete:
            return
        theirs = answer.unsettled or {}
        for tag, held in list(self._held.items()):
            if tag in theirs:
                continue
            if held.outcome is None:
                self.note(f"kept: {self.name}: the broker has given up {held.number}, which this link held")
                self.ledger.returned(held.number)
                del self._held[tag]
            else:
                self._settled(tag)

    def _transferred(self, wire: LinkWire, said: Transfer, payload: bytes) -> None:
        if self._current is None:
            if not self._begun(said):
                self._count += 1
                return
            payload = self._kept_part(said) + payload
        assert self._current is not None
        tag, first = self._current
        held = self._held[tag]
        held.payload += payload
        if said.aborted:
            self.note(f"aborted: {self.name}: a delivery was aborted")
        if said.more:
            self.moments.reached("message half received")
            return
        self._current = None
        self._count += 1
        self._complete(tag, held, is_resumed=first.resume)
        if self.chance.random() >= _KEPT_SHARE:
            self._decide(wire, tag, first.delivery_id or 0)

    def _begun(self, said: Transfer) -> bool:
        """Begin a delivery; return whether a message comes with it."""
        tag = bytes(said.delivery_tag or b"")
        self._ids[said.delivery_id or 0] = tag
        held = self._held.get(tag)
        if said.resume:
            self.ledger.resumed += 1
            if held is None:
                self.note(f"tag: {self.name}: a delivery is resumed that this link does not have")
                self._held[tag] = _Held()
            elif said.settled:
                if held.outcome is None:
                    self.note(f"kept: {self.name}: {held.number} is settled without an outcome")
                self._settled(tag)
                return False
            elif held.outcome is not None:
                self.note(f"kept: {self.name}: {held.number} is sent again after {held.outcome!r}")
        elif held is not None:
            self.note(f"tag: {self.name}: the tag of {held.number} comes again as a new one after {held.outcome!r}")
            self._held[tag] = _Held()
        else:
            self._held[tag] = _Held()
        self._current = tag, said
        return True

    def _kept_part(self, said: Transfer) -> bytes:
        """Return what is kept of a delivery that begins; its payload is that from now on without it."""
        assert self._current is not None
        held = self._held[self._current[0]]
        kept, held.payload = held.payload, b""
        if not said.resume or not isinstance(said.state, Received):
            return b""
        start = kept.find(_BODY_SECTION)
        position = start + int(said.state.section_offset)
        if start < 0 or said.state.section_number != _BODY_SECTION_NUMBER or position > len(kept):
            self.note(f"position: {self.name}: {said.state!r} of {len(kept)} bytes")
        return kept[:position]

    def _complete(self, tag: bytes, held: _Held, *, is_resumed: bool) -> None:
        message = decode_message(held.payload)
        number = int(str(message.properties and message.properties.message_id))
        (section,) = message.body
        if not isinstance(section, Data) or bytes(section.value) != exact_body(number):
            self.note(f"body: {self.name}: {number} arrived with another body")
        count = message.header.delivery_count if message.header else 0
        if count:
            self.note(f"count: {self.name}: {number} has the delivery-count {count}, and never failed")
        is_known = is_resumed and held.number >= 0
        if is_known and held.number != number:
            self.note(f"tag: {self.name}: the tag of {held.number} has become that of {number}")
        held.payload = b""
        if held.number < 0:
            held.number = number
            fault = self.ledger.arrived(number, self.name)
            if fault:
                self.note(fault)

    def _decide(self, wire: LinkWire, tag: bytes, delivery_id: int) -> None:
        held = self._held[tag]
        held.outcome = Released() if self.chance.random() < _RELEASED_SHARE else Accepted()
        if isinstance(held.outcome, Released):
            self.ledger.returned(held.number)
        wire.say(Disposition(role=True, first=delivery_id, settled=False, state=held.outcome))
        self.moments.reached("outcome said")

    def _disposed(self, said: Disposition) -> None:
        last = said.first if said.last is None else said.last
        for offset in range((last - said.first & MASK) + 1):
            tag = self._ids.pop((said.first + offset) & MASK, None)
            held = None if tag is None else self._held.get(tag)
            if tag is None or held is None or not said.settled:
                continue
            if type(said.state) is not type(held.outcome):
                self.note(f"outcome: {self.name}: {held.number} was settled {said.state!r} after {held.outcome!r}")
            self._settled(tag)
            self.moments.reached("outcome settled")

    def _settled(self, tag: bytes) -> None:
        """Forget a delivery: the broker knows its outcome."""
        held = self._held.pop(tag)
        if isinstance(held.outcome, Accepted):
            self.ledger.finished(held.number, is_accepted=True)
