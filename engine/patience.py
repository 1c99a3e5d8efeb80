"""Group commit's patience: whether a tick that could end now had better wait for company.

A tick costs a write, a sync and two wake-ups whatever it holds. Where messages come one by one and their senders do not
wait for the answers, waiting `gather_us` after the last sync began lets several share them: at 1,000 messages a second
that halves the broker's CPU, and adds no more than `gather_us` to an answer.

Rule 1. Only single messages are gathered: a tick with `gather_messages_max` of them, or as many bytes, never waits.
Rule 2. Waiting must pay: it does when a sender sent again while its last message was unanswered. A sender that waits
        for each answer only loses by it. After a wait that did not pay none is tried for 1, 3, 7 ... 63 ticks.
Rule 3. After a pause the first tick never waits.
"""

from typing import Final, final

from engine.config import EngineConfig

__all__ = ["Patience"]

_SKIPPED_MAX: Final = 63


@final
class Patience:
    """What the last waits have taught."""

    __slots__ = ("_bytes_max", "_gather_us", "_last_us", "_messages_max", "_penalty", "_skip", "_until_us", "has_paid")

    def __init__(self, config: EngineConfig) -> None:
        self._gather_us = config.gather_us
        self._messages_max = config.gather_messages_max
        self._bytes_max = config.gather_bytes_max
        self._last_us = 0
        self._until_us = 0
        self._skip = 0
        self._penalty = 0
        self.has_paid = False
        """The last tick had messages of senders that do not wait for answers."""

    def until_us(self, now_us: int, *, count: int, size: int) -> int:
        """Return when a tick of `count` messages, `size` bytes, ought to end; 0 for now."""
        if count > self._messages_max or size > self._bytes_max:
            return 0
        if self._until_us:
            return self._until_us
        until_us = self._last_us + self._gather_us
        if until_us <= now_us:
            return 0
        if self._skip:
            self._skip -= 1
            return 0
        self._until_us = until_us
        return until_us

    def ended(self, now_us: int, *, pipelined: int) -> None:
        """Note that a tick ends; `pipelined` messages came before their sender's last one was answered."""
        self._last_us = now_us
        self.has_paid = pipelined > 0
        if self._until_us:
            self._until_us = 0
            self._penalty = 0 if pipelined else min(2 * self._penalty + 1, _SKIPPED_MAX)
            self._skip = self._penalty
