"""What became of each numbered message of a queue, as its receivers say it: the account of exactly once.

    free -> held -> done          accepted, and the broker has said that it knows
              |
              +---> free          released

Rule. A message that is held never comes as a new delivery, and one that is done never comes again.
"""

import threading
import time
from typing import final

__all__ = ["DeliveryLedger"]


@final
class DeliveryLedger:
    """The messages of one queue, which several threads write down."""

    def __init__(self) -> None:
        self.sent = 0
        """Numbers that were handed out: 0 to sent - 1."""
        self.sent_s: dict[int, float] = {}
        """When each number was handed out, in time.time()."""
        self.accepted: dict[int, float] = {}
        """Numbers of which the broker said that it has stored them, and when it did."""
        self.done: set[int] = set()
        """Numbers whose acceptance the broker has confirmed."""
        self.deliveries = 0
        """New deliveries."""
        self.resumed = 0
        """Deliveries that were resumed, by either side."""
        self._holders: dict[int, str] = {}
        self._lock = threading.Lock()

    def take_number(self) -> int:
        """Return the number of the next message."""
        with self._lock:
            self.sent_s[self.sent] = time.time()
            self.sent += 1
            return self.sent - 1

    def accept(self, number: int) -> None:
        """Note that the broker has stored a message."""
        with self._lock:
            self.accepted.setdefault(number, time.time())

    def arrived(self, number: int, receiver: str) -> str:
        """Note a new delivery; return what is wrong with it, empty for nothing."""
        with self._lock:
            self.deliveries += 1
            holder = self._holders.get(number)
            self._holders[number] = receiver
            if not 0 <= number < self.sent:
                return f"invented: {number} arrived and was never sent"
            if number in self.done:
                return f"twice: {number} arrived after its acceptance was confirmed"
            return "" if holder is None else f"twice: {number} arrived at {receiver}, and {holder} holds it"

    def finished(self, number: int, *, is_accepted: bool) -> None:
        """Note that the broker knows an outcome."""
        with self._lock:
            self._holders.pop(number, None)
            if is_accepted:
                self.done.add(number)

    def returned(self, number: int) -> None:
        """Note that a message goes back, before the broker knows it."""
        with self._lock:
            self._holders.pop(number, None)

    @property
    def left(self) -> set[int]:
        """The numbers that are not done."""
        return set(range(self.sent)) - self.done

    def faults(self, queue: str) -> list[str]:
        """Return what is missing at the end."""
        lost, left = sorted(self.accepted.keys() - self.done), sorted(self.left)
        if lost:
            return [f"lost: {queue}: {len(lost)} accepted messages never arrived, the first is {lost[0]}"]
        return [f"lost: {queue}: {len(left)} messages are not done, the first is {left[0]}"] if left else []
