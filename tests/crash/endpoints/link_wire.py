"""A connection with one session, frame by frame, which is read without a long wait and knows the windows."""

import select
import time
from collections.abc import Iterator
from typing import Any, Final, TypeVar

from ambermq.protocol.amqp10.framing.frames import AMQP_HEADER
from ambermq.protocol.amqp10.performatives.base import Composite
from ambermq.protocol.amqp10.performatives.classes import Attach, Begin, Detach, End, Flow, Open, Transfer
from ambermq.protocol.amqp10.serial_number import MASK
from tests.protocol.peers import FIRST_ID, Wire
from tests.protocol.tcp import TcpWire

__all__ = ["ConnectionLost", "LinkRefused", "LinkWire"]

_ANSWER_SECONDS: Final = 120.0
"""Time for an answer of a broker that lives, on a busy machine."""
_HEARTBEAT_SECONDS: Final = 5.0
_INCOMING_WINDOW: Final = 1 << 30

Kind = TypeVar("Kind", bound=Composite)


class ConnectionLost(Exception):
    """The broker is gone: it was killed."""


class LinkRefused(Exception):
    """The broker ended the link, the session or the connection with an error."""


class LinkWire(TcpWire):
    """One session on channel 0 with one link on handle 0."""

    def __init__(self, url: str) -> None:
        """Connect, and say nothing. Raises ConnectionLost."""
        try:
            super().__init__(url)
        except OSError as error:
            raise ConnectionLost from error
        self.url = url
        self.credit_end = 0
        """The delivery-count up to which the broker has given credit."""
        self.window = 0
        """Transfer frames that the broker's incoming window allows."""
        self.next_id = FIRST_ID
        """The transfer id of our next frame."""
        self.next_delivery_id = FIRST_ID
        """The delivery-id of our next message."""
        self._said_s = time.monotonic()

    @classmethod
    def opened(cls, url: str, container: str) -> "LinkWire":
        """Connect, open and begin."""
        wire = cls(url)
        try:
            wire.give(AMQP_HEADER)
            wire.say(Open(container_id=container))
            wire.begin()
        except BaseException:
            wire.close()
            raise
        return wire

    def begin(self) -> None:
        """Begin the session."""
        self.next_id = self.next_delivery_id = FIRST_ID
        self.say(Wire.begin(incoming_window=_INCOMING_WINDOW))
        self.window = self.answer(Begin).incoming_window

    def end_session(self) -> None:
        """End the session, and begin it again."""
        self.say(End())
        self.answer(End)
        self.begin()

    def give(self, data: bytes) -> None:
        """Send bytes. Raises ConnectionLost."""
        try:
            super().give(data)
        except OSError as error:
            raise ConnectionLost from error
        self._said_s = time.monotonic()

    def attach_link(self, attach: Attach) -> Attach:
        """Attach the link; return the broker's attach."""
        self.credit_end = 0
        self.say(attach)
        return self.answer(Attach)

    def transfer(self, performative: Transfer, payload: bytes) -> None:
        """Send a transfer frame."""
        self.next_id = (self.next_id + 1) & MASK
        self.window -= 1
        self.give(Wire.frame(performative, payload))

    def grant(self, credit: int, count: int) -> None:
        """Grant credit from a delivery-count on."""
        self.flow(handle=0, delivery_count=count & MASK, link_credit=credit, **self._windows())

    def answer(self, kind: type[Kind]) -> Kind:
        """Read on to the next performative of a kind; those before it that are of the link are lost."""
        until = time.monotonic() + _ANSWER_SECONDS
        while time.monotonic() < until:
            for performative, _ in self.arrived(0.1):
                if isinstance(performative, kind):
                    return performative
        raise LinkRefused(f"no {kind.__name__} within {_ANSWER_SECONDS:.0f} s")

    def arrived(self, seconds: float) -> Iterator[tuple[Composite, bytes]]:
        """Yield the frame that comes next within so many seconds, if one does. Raises ConnectionLost, LinkRefused."""
        if time.monotonic() - self._said_s > _HEARTBEAT_SECONDS:
            self.flow(**self._windows())
        if not self._has_frame() and not select.select([self.socket], [], [], seconds)[0]:
            return
        try:
            frame = self.next()
        except OSError as error:
            raise ConnectionLost from error
        if frame is None:
            raise ConnectionLost
        performative, payload = frame
        if performative is None:
            return
        reason = getattr(performative, "error", None)
        if reason is not None:
            raise LinkRefused(f"{type(performative).__name__}: {reason.condition} {reason.description}")
        if isinstance(performative, Flow):
            self._flowed(performative)
        yield performative, payload

    def detach_link(self, *, closed: bool) -> None:
        """Detach the link, and wait for the answer."""
        self.say(Detach(handle=0, closed=closed))
        self.answer(Detach)

    def _has_frame(self) -> bool:
        size = int.from_bytes(self._input[:4], "big")
        return len(self._input) >= 8 and (self._input[:4] == b"AMQP" or len(self._input) >= size)

    def _flowed(self, flow: Flow) -> None:
        seen = FIRST_ID if flow.next_incoming_id is None else flow.next_incoming_id
        self.window = ((seen + flow.incoming_window - self.next_id + (1 << 31)) & MASK) - (1 << 31)
        if flow.handle is not None and flow.link_credit is not None and flow.delivery_count is not None:
            self.credit_end = flow.delivery_count + flow.link_credit

    def _windows(self) -> dict[str, Any]:
        return {"next_incoming_id": 0, "incoming_window": _INCOMING_WINDOW, "next_outgoing_id": self.next_id}
