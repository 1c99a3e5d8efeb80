"""One sender, one queue, one receiver, on threads that live through every death of the broker.

Ids are SENDER-NUMBER with numbers that only go up; a message whose outcome was cut off by a crash is never sent again,
so what arrives can be held against what was sent, what was accepted, and the order. The body follows from the id, and
is compared byte for byte. Each fault begins with the law that it breaks: lost, invented, order, count, body, outcome.
"""

import threading
import time
from collections.abc import Callable
from itertools import pairwise

from ambermq.log.buffer import Buffer
from ambermq.protocol.amqp10.message.message import Data, Message, decode_message
from ambermq.protocol.amqp10.performatives.classes import Header, Properties
from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.client.link_client import LinkClient
from ambermq.tools.messages.publisher import Publisher
from ambermq.tools.messages.subscriber import Subscriber
from ambermq.tools.terminal.errors import ToolError
from tests.crash.bodies import body_of, wrong_body

__all__ = ["Pair"]

_RETRY_SECONDS = 0.02
_FAULTS_MAX = 3
"""Of each kind: one cause has the same result for many messages."""


class Pair:
    """The traffic of one queue, and the record of it."""

    def __init__(
        self,
        name: str,
        current_url: Callable[[], str],
        *,
        rate: int,
        is_backlog: bool = False,
        counts_may_be_low: bool = False,
    ) -> None:
        """`is_backlog`: nothing is received until `start_receiving`. `counts_may_be_low`: as after a power loss."""
        self.name = name
        self.sent = 0
        """Messages handed to the connection; their numbers are 0 to sent - 1."""
        self.accepted: set[int] = set()
        """Numbers that the broker said accepted of."""
        self.arrivals: list[tuple[int, int]] = []
        """(number, delivery-count) of every delivery, in the order of arrival."""
        self.faults: list[str] = []
        """What must never happen and was seen while it ran."""
        self._current_url = current_url
        self._rate = rate
        self._is_backlog = is_backlog
        self._counts_may_be_low = counts_may_be_low
        self._is_sending = True
        self._is_receiving = True
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._send, self._receive)]

    def start(self) -> None:
        """Begin to send, and to receive unless the messages form a backlog."""
        for thread in self._threads[: 1 if self._is_backlog else 2]:
            thread.start()

    def start_receiving(self) -> None:
        """Begin to receive the backlog."""
        if self._is_backlog:
            self._threads[1].start()

    def stop_sending(self) -> None:
        """Send no more, and return when the sender has ended."""
        self._is_sending = False
        self._join(0)

    def stop_receiving(self) -> None:
        """Receive no more, and return when the receiver has ended."""
        self._is_receiving = False
        self._join(1)

    def missing(self) -> set[int]:
        """Return the numbers that were accepted and have not arrived yet."""
        return self.accepted - {number for number, _ in self.arrivals.copy()}

    def check(self) -> list[str]:
        """Return what is wrong with the record: nothing when every promise was kept."""
        first: dict[int, int] = {}
        for number, count in self.arrivals:
            first.setdefault(number, count)
        numbers = list(first)
        faults = list(self.faults)
        lost = sorted(self.missing())
        if lost:
            faults.append(f"lost: {self.name}: {len(lost)} accepted messages never arrived, the first is {lost[0]}")
        invented = [number for number in numbers if not 0 <= number < self.sent]
        if invented:
            faults.append(f"invented: {self.name}: {invented[0]} arrived and was never sent")
        faults += [
            f"order: {self.name}: {after} arrived for the first time before {before}"
            for after, before in pairwise(numbers)
            if after > before
        ][:_FAULTS_MAX]
        faults += [] if self._counts_may_be_low else self._silent_repetitions()
        return faults

    @property
    def repeated(self) -> int:
        """Deliveries of messages that had arrived before."""
        return len(self.arrivals) - len({number for number, _ in self.arrivals})

    def _silent_repetitions(self) -> list[str]:
        seen: set[int] = set()
        for number, count in self.arrivals:
            if number in seen and count == 0:
                return [f"count: {self.name}: {number} arrived again with delivery-count 0"]
            seen.add(number)
        return []

    def _join(self, number: int) -> None:
        if self._threads[number].ident is not None:
            self._threads[number].join(60)

    def _send(self) -> None:
        while self._is_sending:
            try:
                with LinkClient.connect(BrokerUrl.parse(self._current_url())) as client:
                    self._send_on(client)
            except (ToolError, OSError):
                time.sleep(_RETRY_SECONDS)

    def _send_on(self, client: LinkClient) -> None:
        publisher = Publisher(client, client.attach_sender(self.name), on_outcome=self._settled, window=200)
        began, begun = time.monotonic(), self.sent
        while self._is_sending:
            if self.sent - begun > (time.monotonic() - began) * self._rate:
                publisher.wait_until(time.monotonic() + 0.002)
                continue
            number = self.sent
            self.sent += 1
            message_id = f"{self.name}-{number}"
            message = Message(
                header=Header(durable=True),
                properties=Properties(message_id=message_id),
                body=(Data(body_of(message_id)),),
            )
            publisher.offer(message.encode(), number)
        publisher.finish()

    def _settled(self, number: int, outcome: str) -> None:
        if outcome == "accepted":
            self.accepted.add(number)
        else:
            self._note(f"outcome: {self.name}: {number} was {outcome}")

    def _receive(self) -> None:
        while self._is_receiving:
            try:
                with LinkClient.connect(BrokerUrl.parse(self._current_url())) as client:
                    self._receive_on(client)
            except (ToolError, OSError):
                time.sleep(_RETRY_SECONDS)

    def _receive_on(self, client: LinkClient) -> None:
        subscriber = Subscriber(client, client.attach_receiver(self.name))
        while self._is_receiving:
            for payload in subscriber.payloads(idle_seconds=0.3):
                self._arrived(payload)
                if not self._is_receiving:
                    return

    def _arrived(self, payload: Buffer) -> None:
        message = decode_message(payload)
        message_id = str(message.properties and message.properties.message_id)
        name, _, number = message_id.rpartition("-")
        if name != self.name:
            self._note(f"invented: {self.name}: {message_id} is another queue's message")
            return
        wrong = wrong_body(message, message_id)
        if wrong:
            self._note(f"body: {wrong}")
        count = message.header.delivery_count if message.header else 0
        self.arrivals.append((int(number), count or 0))

    def _note(self, fault: str) -> None:
        kind = fault.partition(":")[0]
        if sum(one.startswith(kind) for one in self.faults) < _FAULTS_MAX:
            self.faults.append(fault)
