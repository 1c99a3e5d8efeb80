"""A consumer that accepts what comes and notes when it came: the campaign judges it at the end."""

import threading
import time
from collections import Counter
from typing import Any, Final, NamedTuple, final

from ambermq.protocol.amqp10.message.message import Data, Message
from ambermq.protocol.amqp10.performatives.classes import Accepted, DeliveryState
from tests.crash.endpoints.plain_consumer import Came, PlainConsumer

__all__ = ["Arrival", "ArrivalLedger", "NotingConsumer"]

_HOLDS_S: Final = (0.0, 0.0, 0.02, 0.2)


class Arrival(NamedTuple):
    """A delivery."""

    number: int
    at_s: float
    """In time.time()."""
    ttl_ms: int | None
    """The time to live that it says is left."""


@final
class ArrivalLedger:
    """The deliveries of one queue, from all of its consumers."""

    def __init__(self) -> None:
        self.arrivals: list[Arrival] = []
        self.counts: Counter[int] = Counter()
        """How often each message came."""
        self.done: set[int] = set()
        """Messages whose acceptance the broker has confirmed."""
        self.again: list[int] = []
        """Messages that came after that."""
        self._lock = threading.Lock()

    def note(self, arrival: Arrival) -> None:
        """Note a delivery."""
        with self._lock:
            self.arrivals.append(arrival)
            self.counts[arrival.number] += 1
            if arrival.number in self.done:
                self.again.append(arrival.number)


@final
class NotingConsumer(PlainConsumer):
    """Accepts each message after a moment."""

    credit = 10

    def __init__(self, *arguments: Any, ledger: ArrivalLedger) -> None:
        super().__init__(*arguments)
        self.ledger = ledger

    def number_of(self, message: Message) -> int:
        """See PlainConsumer: its body, since several messages may have one message-id."""
        (section,) = message.body
        assert isinstance(section, Data)
        return int(bytes(section.value))

    def came(self, one: Came) -> None:
        """See PlainConsumer."""
        header = one.message.header
        self.ledger.note(Arrival(one.number, time.time(), None if header is None else header.ttl))
        one.until_s = time.monotonic() + self.chance.choice(_HOLDS_S)

    def saying(self, one: Came) -> None:
        """See PlainConsumer."""

    def said(self, one: Came, state: DeliveryState | None) -> None:
        """See PlainConsumer."""
        if not isinstance(state, Accepted):
            self.note(f"outcome: {one.number} was accepted, and answered {state!r}")
        self.ledger.done.add(one.number)
