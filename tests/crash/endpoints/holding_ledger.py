"""Which consumer holds which messages, for the laws of groups and of locks.

Rule 1. Of two deliveries the one on the broker that started later is the newer one: what an older broker has sent means
        nothing any more.
Rule 2. A delivery whose lock has ended may have waited for its consumer while newer ones were noted.
Rule 3. A consumer notes that a message leaves its hands before it tells the broker.
"""

import threading
from collections import Counter
from dataclasses import dataclass, field
from typing import Final, final

__all__ = ["HoldingLedger"]

_LONG_MS: Final = 1e9
"""No lock is as long."""


@dataclass(slots=True)
class _Group:
    """The messages of one group that are out."""

    consumer: str = ""
    life: int = 0
    numbers: dict[int, float] = field(default_factory=dict)
    """The messages that the consumer holds, and until when."""
    newest: int = -1


@final
class HoldingLedger:
    """The holders of messages by group; with locks each message is a group of its own."""

    def __init__(self) -> None:
        self.done: set[int] = set()
        """Messages whose acceptance the broker has confirmed."""
        self.deliveries: Counter[int] = Counter()
        """How often each message has come."""
        self.refused = 0
        """Outcomes that came too late."""
        self._groups: dict[str, _Group] = {}
        self._lives: dict[str, int] = {}
        self._lock = threading.Lock()

    def arrived(
        self, group: str, number: int, consumer: str, url: str, *, count: int, now_s: float, until_s: float
    ) -> str:
        """Note a delivery with a delivery-count, held at most until a time; return what is wrong, empty for nothing."""
        with self._lock:
            life = self._lives.setdefault(url, len(self._lives))
            is_new, fault = not self.deliveries[number], ""
            self.deliveries[number] += 1
            known = self._groups.setdefault(group, _Group())
            if life < known.life:
                return ""
            held = {one: until for one, until in known.numbers.items() if until > now_s}
            if number in self.done:
                fault = f"twice: {number} came after its acceptance was confirmed"
            elif held and known.life == life and known.consumer != consumer:
                left_ms = 1000 * (max(held.values()) - now_s)
                fault = f"holder: {number} came to {consumer} while {known.consumer} holds {min(held)} of {group}"
                fault += f" for {left_ms:.1f} ms more" if left_ms < _LONG_MS else ""
            elif not is_new and not count and until_s > now_s:
                fault = f"count: {number} came again with delivery-count 0"
            elif is_new and number < known.newest:
                fault = f"order: {number} of {group} came for the first time after {known.newest}"
            if known.life != life or known.consumer != consumer:
                known.life, known.consumer, known.numbers = life, consumer, {}
            known.numbers[number] = until_s
            known.newest = max(known.newest, number)
            return fault

    def leaves(self, group: str, number: int, consumer: str) -> None:
        """Note that a consumer gives a message out of its hands."""
        with self._lock:
            known = self._groups.get(group)
            if known is not None and known.consumer == consumer:
                known.numbers.pop(number, None)

    def extend(self, group: str, number: int, consumer: str, until_s: float) -> None:
        """Note that a lock is renewed."""
        with self._lock:
            known = self._groups.get(group)
            if known is not None and known.consumer == consumer and number in known.numbers:
                known.numbers[number] = until_s

    def gone(self, consumer: str) -> None:
        """Note that a consumer goes: all that it holds returns."""
        with self._lock:
            for known in self._groups.values():
                if known.consumer == consumer:
                    known.numbers = {}

    def answered(self, number: int, *, is_accepted: bool) -> None:
        """Note the broker's answer to an acceptance."""
        with self._lock:
            if is_accepted:
                self.done.add(number)
            else:
                self.refused += 1
