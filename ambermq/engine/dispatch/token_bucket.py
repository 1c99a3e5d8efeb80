"""The token bucket of a consumer with a rate: how many messages it may get now.

    level      rises by the rate with the time, up to the messages of 50 ms, at least one
    available  the whole messages in it

Rule 1. In any time T a consumer gets at most rate * T messages, and those of 50 ms, or one, beyond.
Rule 2. The time is that of ticks. Between two refills the level only falls.
"""

from typing import Final, final

__all__ = ["RATE_MAX", "RATE_MIN", "TokenBucket"]

RATE_MIN: Final = 0.001
RATE_MAX: Final = 1_000_000
"""The lowest and the highest rate, in messages a second."""
_MESSAGE: Final = 1_000_000_000
"""The level of one message. So a rate in thousandths is the rise in a microsecond, and all levels are whole numbers."""
_BURST_US: Final = 50_000
_BATCH_US: Final = 10_000


@final
class TokenBucket:
    """The bucket of one consumer. It begins full."""

    __slots__ = ("_full", "_level", "_per_us", "_time_us")

    def __init__(self, rate: float, now_us: int) -> None:
        """`rate` is in messages a second, from RATE_MIN to RATE_MAX; `now_us` is the elapsed time."""
        self._per_us = max(round(rate * 1000), 1)
        self._full = max(self._per_us * _BURST_US, _MESSAGE)
        self._level = self._full
        self._time_us = now_us
        """The elapsed time of the last refill."""

    @property
    def available(self) -> int:
        """The messages that the consumer may get now."""
        return self._level // _MESSAGE

    def refill(self, now_us: int) -> None:
        """Raise the level by the time since the last refill."""
        if now_us > self._time_us:
            self._level = min(self._level + (now_us - self._time_us) * self._per_us, self._full)
            self._time_us = now_us

    def take(self, count: int) -> None:
        """Remove messages; a negative count puts messages back that the consumer did not get."""
        self._level = min(self._level - count * _MESSAGE, self._full)

    def due_us(self, count: int) -> int:
        """Return the elapsed time at which messages are available: `count`, or those of 10 ms if they are fewer."""
        wanted = min(count * _MESSAGE, max(self._per_us * _BATCH_US // _MESSAGE, 1) * _MESSAGE)
        return self._time_us + -(min(self._level - wanted, 0) // self._per_us)
