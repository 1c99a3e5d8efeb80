"""A receiver of messages on one link, one at a time, which settles each.

Rule 1: the credit is never above the number of messages that are still wanted.
Rule 2: at a timeout the credit is drained: messages in flight are returned, not dropped.
Rule 3: a message that is not written to a file is in memory as a whole, so its size is limited.
Rule 4: messages that return to the queue (released, modified) are settled at the end, or they would come again at once.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from ambermq.protocol.amqp10.events import CreditChanged, Event, TransferAborted, TransferPiece, TransferRun
from ambermq.protocol.amqp10.link.receiver import Receiver
from ambermq.protocol.amqp10.performatives.classes import Accepted, DeliveryState, Modified, Rejected, Released
from ambermq.tools.client.link_client import TIMEOUT_SECONDS, LinkClient
from ambermq.tools.messages.message_file import BodyFile
from ambermq.tools.terminal.errors import ToolError

__all__ = ["OUTCOMES", "Subscriber"]

OUTCOMES: Final = ("accepted", "released", "rejected", "modified")
"""The outcomes of a received message."""

_CREDIT_MAX: Final = 1000
_MESSAGE_BYTES_MAX: Final = 256 << 20
"""The largest message that is in memory as a whole; a line of `send --ndjson` has the same limit."""
_PIECE_BYTES: Final = 1 << 20
"""The bytes of a large message that are written to a file at a time."""


@dataclass(slots=True)
class _Delivery:
    payload: bytes | memoryview
    delivery_id: int
    is_settled: bool


class Subscriber:
    """Receives on one link of a client."""

    def __init__(self, client: LinkClient, link: Receiver, outcome: str = "accepted") -> None:
        """`outcome` is one of OUTCOMES, for every message."""
        self.received = 0
        """The number of messages returned."""
        self._client = client
        self._link = link
        self._state = _STATES[outcome]
        self._is_late = outcome in ("released", "modified")
        self._late: list[int] = []
        self._arrived: deque[_Delivery] = deque()
        self._is_drained = False
        self._arrived_bytes = (0, time.monotonic())
        """The bytes of a large message that had arrived at the last look, and when they had arrived first."""
        self._current: _Delivery | None = None
        """The message that was returned last, until it is settled."""

    def payloads(self, *, count: int | None = None, idle_seconds: float | None = None) -> Iterator[bytes | memoryview]:
        """Yield messages until there were `count`, or none came for `idle_seconds`; None is no limit.

        A message is settled at the request for the next one, so a message whose processing fails stays unsettled.
        """
        self._link.piece_bytes = _MESSAGE_BYTES_MAX
        while count is None or self.received < count:
            delivery = self._next(count, idle_seconds)
            if delivery is None:
                return
            self.received += 1
            self._current = delivery
            yield delivery.payload
            self._settle(delivery)
            self._current = None

    def to_file(self, file: BodyFile, *, idle_seconds: float | None, show: Callable[[int], None]) -> bool:
        """Write the body of one message to a file piece by piece, and settle it; return False if none came in time."""
        self._link.piece_bytes = _PIECE_BYTES
        self._link.grant(1)
        while True:
            for event in self._client.step(None if idle_seconds is None else time.monotonic() + idle_seconds):
                if getattr(event, "link", None) is not self._link:
                    continue
                if isinstance(event, TransferAborted):
                    # A damaged message comes no more, another one may come.
                    file.restart()
                elif isinstance(event, TransferPiece):
                    file.write(event.payload, is_last=False)
                elif isinstance(event, TransferRun):
                    self._current = _Delivery(b"", event.first_id, event.settled)
                    file.write(event.payloads[0], is_last=True)
                    file.keep()
                    self.received += 1
                    self._settle(self._current)
                    self._current = None
                    return True
            if not self._link.credit and self._link.partial is None:
                # The delivery that has used the credit was aborted, perhaps before a piece of it was written.
                self._link.grant(1)
            if self._is_idle(file, idle_seconds):
                return False
            show(file.size)

    def _is_idle(self, file: BodyFile, idle_seconds: float | None) -> bool:
        """Return whether nothing of a message came for a time."""
        now, partial = time.monotonic(), self._link.partial
        arrived = file.size if partial is None else partial.size
        if arrived != self._arrived_bytes[0]:
            self._arrived_bytes = arrived, now
        return idle_seconds is not None and now - self._arrived_bytes[1] >= idle_seconds

    def finish(self) -> None:
        """Settle the messages that return to the queue, and write all output."""
        for delivery_id in self._late:
            self._link.settle(delivery_id, 1, self._state)
        self._late.clear()
        self._client.flush()

    def abandon(self) -> None:
        """Release what has come and was not returned, so that other receivers get it at once; raise ToolError."""
        self._drain()
        for delivery in self._arrived:
            if not delivery.is_settled:
                self._link.settle(delivery.delivery_id, 1, Released())
        self._arrived.clear()
        if self._current is not None and not self._current.is_settled:
            self._link.settle(self._current.delivery_id, 1, Released())
        self.finish()

    def _next(self, count: int | None, idle_seconds: float | None) -> _Delivery | None:
        deadline = None if idle_seconds is None else time.monotonic() + idle_seconds
        while not self._arrived:
            self._grant(count)
            self._take(self._client.step(deadline))
            if deadline is not None and time.monotonic() >= deadline and not self._arrived:
                self._drain()
                break
        return self._arrived.popleft() if self._arrived else None

    def _grant(self, count: int | None) -> None:
        wanted = _CREDIT_MAX if count is None else min(count - self.received, _CREDIT_MAX)
        if self._link.credit < max(wanted // 2, 1):
            self._link.grant(wanted)

    def _drain(self) -> None:
        """Drain the credit: receive the messages in flight and end the credit."""
        self._is_drained = False
        self._link.grant(self._link.credit, drain=True)
        began = time.monotonic()
        deadline = began + TIMEOUT_SECONDS
        while self._link.credit and not self._is_drained:
            if time.monotonic() >= deadline:
                self._client.check_heard(began)
                return
            self._take(self._client.step(deadline))

    def _take(self, events: list[Event]) -> None:
        for event in events:
            if isinstance(event, TransferRun) and event.link is self._link:
                for index, payload in enumerate(event.payloads):
                    self._arrived.append(_Delivery(payload, (event.first_id + index) & 0xFFFFFFFF, event.settled))
            elif isinstance(event, CreditChanged) and event.link is self._link:
                self._is_drained = True
            elif isinstance(event, TransferPiece) and event.link is self._link:
                raise ToolError(
                    "the message is too large to be printed",
                    where=str(self._link.owner),
                    expected=f"at most {_MESSAGE_BYTES_MAX:,} bytes",
                    advice="receive it with --to-file",
                )

    def _settle(self, delivery: _Delivery) -> None:
        if delivery.is_settled:
            return
        if self._is_late:
            self._late.append(delivery.delivery_id)
        else:
            self._link.settle(delivery.delivery_id, 1, self._state)


_STATES: Final[dict[str, DeliveryState]] = {
    "accepted": Accepted(),
    "released": Released(),
    "rejected": Rejected(),
    "modified": Modified(delivery_failed=True, undeliverable_here=False),
}
