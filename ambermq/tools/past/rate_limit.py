"""Keeping to a rate, and to a share of a processor: work beside a broker leaves it the disk and its turns.

Rule 1. Less than 5 ms is not waited for but added up, so that small pieces cost no wake-up each.
"""

import time
from typing import Final, final

__all__ = ["RateLimit"]

_WAIT_S: Final = 0.005


@final
class RateLimit:
    """Lets one piece of work after the other take its time."""

    __slots__ = ("_bytes_per_s", "_processor_share", "_ready", "_used")

    def __init__(self, bytes_per_s: int, *, processor_share: float = 1.0) -> None:
        """Keep to bytes a second, 0 for as fast as can be, and the process to a share of one processor, 1 for all."""
        self._bytes_per_s = bytes_per_s
        self._processor_share = processor_share
        self.begin_anew()

    def begin_anew(self) -> None:
        """Forget what was done until now: it need not be waited for."""
        self._ready = time.monotonic()
        self._used = time.process_time()

    def spend(self, length: int) -> None:
        """Wait until the pieces before this one, and what was computed since, have had their time."""
        now, ready = time.monotonic(), self._ready
        if self._processor_share < 1:
            used = time.process_time()
            # What was computed has taken its own time; the others' share of that is still due.
            ready = max(now, ready) + (used - self._used) * (1 / self._processor_share - 1)
            self._used = used
        if ready - now > _WAIT_S:
            time.sleep(ready - now)
            now = time.monotonic()
        self._ready = max(now, ready) + (length / self._bytes_per_s if self._bytes_per_s else 0)
