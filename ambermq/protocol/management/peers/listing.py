"""The walk of one QUERY over connections, their sessions or their links.

Rule 1. The walk has a limit of time in each tick. If it is over, a call raises MatchUnfinished, and the same call in
        the next tick goes on. So 100,000 links take several ticks, and other connections are served between them.
Rule 2. A row before or behind the page is counted, and not made. A row of the page is made when the walk is there:
        later its object may be gone.
Rule 3. The walk has a list of connections from its beginning. The sessions and links of a connection are listed when
        the walk comes to it.
"""

from collections.abc import Callable, Iterable
from typing import Any, final

from ambermq.engine.time_budget import TimeBudget

__all__ = ["Listing", "Row"]

Row = Callable[[], dict[str, Any]]
"""A function that makes a row."""


@final
class Listing:
    """The rows of one page, and the count of all."""

    __slots__ = ("_budget", "_end", "_first", "_walk", "rows", "total")

    def __init__(self, rows: Iterable[Row], window: tuple[int, int], budget: TimeBudget) -> None:
        """`window` is the number of the first row, and the most rows."""
        self._first, self._end = window[0], window[0] + window[1]
        self._budget = budget
        self._walk = iter(rows)
        self.rows: list[dict[str, Any]] = []
        """The rows of the page that were made."""
        self.total = 0
        """The objects that were counted."""

    def go_on(self) -> None:
        """Walk to the end. Raises MatchUnfinished if the time is over."""
        for row in self._walk:
            if self._first <= self.total < self._end:
                self.rows.append(row())
            self.total += 1
            self._budget.check()
