"""A measured load on one address: a sender and a receiver in one thread, with two latencies for each message.

Rule 1: a message has the id of the run and its number. Other messages at the address are accepted and not counted.
Rule 2: the settle latency ends at the sender's outcome, the delivery latency at the receiver's message.
"""

import os
import time
from dataclasses import dataclass, field
from struct import Struct
from typing import Final

from ambermq.protocol.amqp10.events import Disposed, TransferRun
from ambermq.protocol.amqp10.message.message import Data, Message
from ambermq.protocol.amqp10.performatives.classes import Accepted, Header
from ambermq.tools.client.link_client import LinkClient

__all__ = ["BODY_BYTES_MIN", "Load", "Timings"]

_MARK: Final = Struct(">QQ")
BODY_BYTES_MIN: Final = _MARK.size
"""A body ends with the id of the run and the number of the message."""

_STEP_SECONDS: Final = 1.0


@dataclass(slots=True)
class Timings:
    """The measurements of a run."""

    seconds: float = 0.0
    """From the first message sent to the last one received and settled."""
    settle_ns: list[int] = field(default_factory=list)
    """From send to outcome, one for each message, in the order of the outcomes."""
    delivery_ns: list[int] = field(default_factory=list)
    """From send to receipt, one for each message, in the order of receipt."""
    refused: int = 0
    """Messages with another outcome than accepted; the receiver never gets them."""


class Load:
    """Sends `count` messages to an address and receives them, over two connections."""

    def __init__(
        self,
        outward: LinkClient,
        inward: LinkClient,
        address: str,
        *,
        count: int,
        size: int,
        durable: bool,
        window: int,
    ) -> None:
        """`size`: bytes of a body, at least BODY_BYTES_MIN; `window` bounds unsettled messages and credit."""
        self._outward, self._inward = outward, inward
        self._receiver = inward.attach_receiver(address)
        self._sender = outward.attach_sender(address)
        self._count = count
        self._window = window
        self._run = int.from_bytes(os.urandom(8), "big")
        # The mark is at the end of the body, so that all messages begin with the same bytes.
        whole = Message(header=Header(durable=durable), body=(Data(bytes(size)),)).encode()
        self._start = whole[: len(whole) - _MARK.size]
        self._sent_ns: list[int] = []
        self._unsettled = 0
        self._timings = Timings()

    def run(self, rate: float | None = None) -> Timings:
        """Send and receive all messages, without a limit or at `rate` messages a second; return the measurements."""
        timings, count = self._timings, self._count
        began = time.monotonic()
        self._receiver.grant(self._window)
        while len(timings.settle_ns) < count or len(timings.delivery_ns) + timings.refused < count:
            until = self._send(began, rate)
            for event in self._outward.step(until, watch=self._inward.fileno()):
                if isinstance(event, Disposed):
                    self._settled(event)
            for event in self._inward.step(0.0):
                if isinstance(event, TransferRun):
                    self._received(event)
        timings.seconds = time.monotonic() - began
        self._inward.flush()
        return timings

    def _send(self, began: float, rate: float | None) -> float:
        """Send the messages that are due; return the time of the next call."""
        sent = len(self._sent_ns)
        now = time.monotonic()
        due = self._count if rate is None else min(self._count, int((now - began) * rate) + 1)
        number = max(0, min(due - sent, self._window - self._unsettled, self._sender.sendable))
        if number:
            payloads = [self._start + _MARK.pack(self._run, index) for index in range(sent, sent + number)]
            self._sent_ns += [time.monotonic_ns()] * number
            self._sender.send_run(range(sent, sent + number), payloads)
            self._unsettled += number
        if rate is not None and sent + number < self._count:
            return began + (sent + number) / rate
        return now + _STEP_SECONDS

    def _settled(self, event: Disposed) -> None:
        now_ns = time.monotonic_ns()
        count = len(event.tokens)
        self._timings.settle_ns += [now_ns - self._sent_ns[token] for token in event.tokens]
        self._unsettled -= count
        if not isinstance(event.state, Accepted):
            self._timings.refused += count
        if not event.settled:
            self._sender.settle_sent(event.first_id, count, event.state)

    def _received(self, event: TransferRun) -> None:
        now_ns = time.monotonic_ns()
        for payload in event.payloads:
            if len(payload) >= _MARK.size:
                run, number = _MARK.unpack_from(payload, len(payload) - _MARK.size)
                if run == self._run and number < len(self._sent_ns):
                    self._timings.delivery_ns.append(now_ns - self._sent_ns[number])
        if not event.settled:
            self._receiver.settle(event.first_id, len(event.payloads), Accepted())
        if self._receiver.credit <= self._window // 2:
            self._receiver.grant(self._window)
