"""A limit of bytes a second and of processor time, for work while a broker runs.

Rule: delays below 5 ms are added up, so that a small read costs no wake-up.
"""

import time
from typing import Final, final

__all__ = ["RateLimit"]

_WAIT_S: Final = 0.005


@final
class RateLimit:
    """Delays work so that it stays below a rate."""

    __slots__ = ("_bytes_per_s", "_processor_share", "_ready", "_used")

    def __init__(self, bytes_per_s: int, *, processor_share: float = 1.0) -> None:
        """Limit to bytes a second, 0 is no limit, and the process to a share of one processor, 1 is no limit."""
        self._bytes_per_s = bytes_per_s
        self._processor_share = processor_share
        self.reset()

    def reset(self) -> None:
        """Drop the delay that is due for the work until now."""
        self._ready = time.monotonic()
        self._used = time.process_time()

    def spend(self, length: int) -> None:
        """Wait until the delay for the work before this piece is over, then add `length` bytes."""
        now, ready = time.monotonic(), self._ready
        if self._processor_share < 1:
            used = time.process_time()
            # The computation itself has passed; the delay for the other share of the processor is due.
            ready = max(now, ready) + (used - self._used) * (1 / self._processor_share - 1)
            self._used = used
        if ready - now > _WAIT_S:
            time.sleep(ready - now)
            now = time.monotonic()
        self._ready = max(now, ready) + (length / self._bytes_per_s if self._bytes_per_s else 0)
