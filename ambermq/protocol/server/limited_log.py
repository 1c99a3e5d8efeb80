"""Log lines that a stranger can cause: for each kind and address the first ten of a minute, then one with the number.

Rule 1. A kind is the text of the line. Lines beyond the first ten are counted, and the count is logged when the minute
        of the kind and the address is over.
Rule 2. The pairs of kind and address are bounded. Above the bound all further addresses of a kind are one pair.
Rule 3. Text of a peer is logged by `shown`: escaped and cut, so that it can forge no line and no colour.
"""

from collections.abc import Callable
from typing import Any, Final, final

import structlog

__all__ = ["CONNECTION_LINES_MAX", "LINES_MAX", "MINUTE_MS", "PAIRS_MAX", "LimitedLog", "shown"]

LINES_MAX: Final = 10
"""The lines of one kind and address in a minute, before the one with the number of the others."""
CONNECTION_LINES_MAX: Final = 600
"""The lines of one address in a minute about connections of users that have opened or ended."""
MINUTE_MS: Final = 60_000
_SHOWN_MAX: Final = 200
"""The characters of a peer's text in a line."""
PAIRS_MAX: Final = 1000
"""The pairs of kind and address that are told apart in a minute."""
_LOCAL: Final = "local"
"""The address of peers of this machine."""
_OTHERS: Final = "others"
"""The address of the lines above `PAIRS_MAX`."""


class _Minute:
    """The lines of one kind and address since their first one."""

    __slots__ = ("count", "end_ms", "lines_max")

    def __init__(self, end_ms: int, lines_max: int) -> None:
        self.count = 0
        self.end_ms = end_ms
        self.lines_max = lines_max


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

    def info(self, kind: str, address: str, *, is_stranger: bool, **values: Any) -> bool:
        """Log a line about a connection and return True, or count it and return False."""
        is_due = self._is_due(kind, address, LINES_MAX if is_stranger else CONNECTION_LINES_MAX)
        if is_due:
            structlog.get_logger().info(kind, address=address or _LOCAL, **values)
        return is_due

    def sweep(self) -> None:
        """Log the counts of the minutes that are over."""
        now_ms = self._clock_ns() // 1_000_000
        for pair in [pair for pair, minute in self._minutes.items() if minute.end_ms <= now_ms]:
            self._end(pair)

    def close(self) -> None:
        """Log all counts: the server ends."""
        for pair in list(self._minutes):
            self._end(pair)

    def _is_due(self, kind: str, address: str, lines_max: int = LINES_MAX) -> bool:
        pair = kind, address
        minute = self._minutes.get(pair)
        if minute is None:
            if len(self._minutes) >= PAIRS_MAX:
                pair = kind, _OTHERS
            minute = self._minutes.setdefault(pair, _Minute(self._clock_ns() // 1_000_000 + MINUTE_MS, lines_max))
        minute.count += 1
        minute.lines_max = max(minute.lines_max, lines_max)
        return minute.count <= lines_max

    def _end(self, pair: tuple[str, str]) -> None:
        minute = self._minutes.pop(pair)
        more = minute.count - minute.lines_max
        if more > 0:
            structlog.get_logger().warning(pair[0], address=pair[1] or _LOCAL, more=more, within="a minute")


def shown(text: str) -> str:
    """Return the text of a peer as a log line shows it: escaped where it is not printable, and cut."""
    cut = text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}..."
    return cut if cut.isprintable() else cut.encode("unicode_escape").decode("ascii")
