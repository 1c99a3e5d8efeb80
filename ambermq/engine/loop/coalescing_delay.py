"""Whether a message that comes alone waits for another, so that both share a write, a sync and the answers.

It is tried where messages come one soon after the other, and learned: who sends the next message only when it has heard
of the last one brings no company, and is hardly ever held up.

Rule 1. Nobody waits longer than `gather_us`, and nobody for a third.
Rule 2. A wait in vain doubles how many messages pass until the next wait; one that was not halves it.
Rule 3. Who comes by another link ends the wait, which was in vain all the same: only the next by its own link shows
        that the sender goes on without an answer, and was not held up.
"""

from typing import Any, Final, final

__all__ = ["FOREVER_US", "Company"]

FOREVER_US: Final = 1 << 62
"""A time that never comes."""
_PASSING_MAX: Final = 4096
"""Messages that pass at most until waiting is tried again."""


@final
class Company:
    """What was learned of waiting; times are microseconds of one clock."""

    __slots__ = ("_decided_us", "_gather_us", "_is_met", "_link", "_passing", "_penalty", "by_us", "count")

    def __init__(self, gather_us: int) -> None:
        """Let nobody wait longer than `gather_us`; 0: not at all."""
        self._gather_us = gather_us
        self._decided_us = 0
        self._passing = self._penalty = 0
        self._link: Any = None
        self._is_met = False
        self.count = 0
        """Commands that wait: one or none."""
        self.by_us = FOREVER_US
        """When it waits no longer."""

    def may_wait(self, now_us: int, link: Any) -> bool:
        """Let the message that has come alone by `link` wait, if another is to be expected."""
        if self._passing:
            self._passing -= 1
            return False
        if now_us - self._decided_us >= self._gather_us:
            return False
        self.count, self.by_us, self._link = 1, now_us + self._gather_us, link
        return True

    def meet(self, link: Any) -> None:
        """Learn who came while one waits."""
        if link is self._link:
            self._is_met = True

    def decided(self, now_us: int, count: int) -> None:
        """Learn that `count` commands were decided together, so that nobody waits any more."""
        self._decided_us = now_us
        if not self.count:
            return
        if self._is_met:
            self._penalty //= 2
        elif count > 1 or now_us >= self.by_us:
            self._passing = self._penalty = min(2 * self._penalty + 1, _PASSING_MAX)
        self.count, self.by_us, self._link, self._is_met = 0, FOREVER_US, None, False
