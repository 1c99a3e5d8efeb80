"""Keeping to a rate: work beside a broker leaves it the disk."""

import time
from typing import final

__all__ = ["Pace"]


@final
class Pace:
    """Lets one piece of work after the other take its time."""

    __slots__ = ("_bytes_per_s", "_ready")

    def __init__(self, bytes_per_s: int) -> None:
        """0 is as fast as can be."""
        self._bytes_per_s = bytes_per_s
        self._ready = time.monotonic()

    def spend(self, length: int) -> None:
        """Wait until the pieces before this one have had their time."""
        if not self._bytes_per_s:
            return
        now = time.monotonic()
        if self._ready > now:
            time.sleep(self._ready - now)
        self._ready = max(now, self._ready) + length / self._bytes_per_s
