"""The time that a peer has for the answer to our close.

Rule: it is counted from the first look at the clock, since a close has none. A time in which this process stood still
does not count: the answer may lie unread.
"""

__all__ = ["CloseTimer"]


class CloseTimer:
    """The deadline of the peer's close, in milliseconds of the caller's clock."""

    __slots__ = ("_close_ms", "deadline_ms")

    def __init__(self, close_ms: int) -> None:
        self._close_ms = close_ms
        self.deadline_ms: int | None = None
        """When the connection ends without the answer; None before the first look at the clock."""

    def is_overdue(self, now_ms: int) -> bool:
        """Return whether the answer is overdue."""
        if self.deadline_ms is None:
            self.deadline_ms = now_ms + self._close_ms
        return now_ms >= self.deadline_ms

    def extend(self, stall_ms: int) -> None:
        """Extend the deadline by the time in which this process stood still."""
        if self.deadline_ms is not None:
            self.deadline_ms += stall_ms

    def sooner(self, other_ms: int | None) -> int | None:
        """Return the earlier of the deadline and another time; None stands for no time."""
        if other_ms is None or self.deadline_ms is None:
            return self.deadline_ms if other_ms is None else other_ms
        return min(other_ms, self.deadline_ms)
