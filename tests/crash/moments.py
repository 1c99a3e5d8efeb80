"""The moment of a kill: a random one, or the next time that a peer reaches a point with a name."""

import threading
from collections.abc import Callable
from typing import final

__all__ = ["Moments"]


@final
class Moments:
    """What the peers of a campaign tell it, so that it kills the broker in the middle of something."""

    def __init__(self, strike: Callable[[], None]) -> None:
        """`strike` kills the broker at once, and may be called by any thread."""
        self._strike = strike
        self._planned = ""
        self._is_struck = threading.Event()

    def plan(self, point: str) -> None:
        """Kill the broker when a peer reaches a point; empty: at none."""
        self._is_struck.clear()
        self._planned = point

    def wait(self, seconds: float) -> bool:
        """Wait until the broker is killed at the point, and not longer; return whether it was."""
        is_struck = self._is_struck.wait(seconds)
        self._planned = ""
        return is_struck

    def reached(self, point: str) -> None:
        """Kill the broker if this is the point."""
        if point == self._planned:
            self._planned = ""
            self._strike()
            self._is_struck.set()
