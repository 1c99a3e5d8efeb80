"""Log lines that a stranger can cause: for each kind and address the first ten of a minute, then one with the number.

Rule 1. A kind is the text of the line. Lines beyond the first ten are counted, and the count is logged when the minute
        of the kind and the address is over.
Rule 2. The pairs of kind and address are bounded. Above the bound all further addresses of a kind are one pair.
"""

from collections.abc import Callable
from typing import Any, Final, final

import structlog

__all__ = ["LINES_MAX", "MINUTE_MS", "PAIRS_MAX", "LimitedLog"]

LINES_MAX: Final = 10
"""The lines of one kind and address in a minute, before the one with the number of the others."""
MINUTE_MS: Final = 60_000
PAIRS_MAX: Final = 1000
"""The pairs of kind and address that are told apart in a minute."""
_LOCAL: Final = "local"
"""The address of peers of this machine."""
_OTHERS: Final = "others"
"""The address of the lines above `PAIRS_MAX`."""


class _Minute:
    """The lines of one kind and address since their first one."""

    __slots__ = ("count", "end_ms")

    def __init__(self, end_ms: int) -> None:
        self.count = 0
        self.end_ms = end_ms


@final
class LimitedLog:
    """The log lines of one server that peers can cause."""

    __slots__ = ("_clock_ns", "_minutes")

    def __init__(self, clock_ns: Callable[[], int]) -> None:
        """`clock_ns` is a monotonic clock."""
        self._clock_ns = clock_ns
        self._minutes: dict[tuple[str, str], _Minute] = {}

    def warning(self, kind: str, address: str, **values: Any) -> None:
        """Log a line for a peer at an address, or count it."""
        if self._is_due(kind, address):
            structlog.get_logger().warning(kind, address=address or _LOCAL, **values)

    def error(self, kind: str, address: str, **values: Any) -> None:
        """Log a mistake of the broker that a peer can cause again, or count it."""
        if self._is_due(kind, address):
            structlog.get_logger().error(kind, address=address or _LOCAL, **values)

    def sweep(self) -> None:
        """Log the counts of the minutes that are over."""
        now_ms = self._clock_ns() // 1_000_000
        for pair in [pair for pair, minute in self._minutes.items() if minute.end_ms <= now_ms]:
            self._end(pair)

    def close(self) -> None:
        """Log all counts: the server ends."""
        for pair in list(self._minutes):
            self._end(pair)

    def _is_due(self, kind: str, address: str) -> bool:
        pair = kind, address
        minute = self._minutes.get(pair)
        if minute is None:
            if len(self._minutes) >= PAIRS_MAX:
                pair = kind, _OTHERS
            minute = self._minutes.setdefault(pair, _Minute(self._clock_ns() // 1_000_000 + MINUTE_MS))
        minute.count += 1
        return minute.count <= LINES_MAX

    def _end(self, pair: tuple[str, str]) -> None:
        more = self._minutes.pop(pair).count - LINES_MAX
        if more > 0:
            structlog.get_logger().warning(pair[0], address=pair[1] or _LOCAL, more=more, within="a minute")
