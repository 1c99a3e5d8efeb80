"""The messages that their queues give up: those of the running command, and those that are set aside.

Rule 1. A message is given up right after the command that caused it, so no dispatch offers it meanwhile.
Rule 2. Messages that are set aside are tried again after a while, in a tick about as many as one event names. Each try
        goes on behind the last one, so messages whose target is full do not hold back the others.
"""

from collections import Counter, deque
from typing import final

from ambermq.engine.commands import GiveUp
from ambermq.engine.entries.discard_reason import DiscardReason, MoveReason
from ambermq.engine.entries.entry import PLAIN
from ambermq.engine.entries.entry_word import WORD_BYTES, pack_words, unpack_words
from ambermq.engine.loop.schedule import FOREVER_US
from ambermq.engine.model.queue import Queue

__all__ = ["DeadLetters"]


@final
class DeadLetters:
    """The messages that the queues of one virtual host give up."""

    __slots__ = ("_looped", "_positions", "_untried", "due", "next_us")

    def __init__(self) -> None:
        self.due: deque[GiveUp] = deque()
        """What is to be decided now."""
        self._positions: dict[int, int] = {}
        """By queue with set-aside messages: the last word that was tried, -1 for none."""
        self._untried: deque[int] = deque()
        """The queues of the present try that are left."""
        self.next_us = FOREVER_US
        """When set-aside messages are tried again."""
        self._looped: Counter[int] = Counter()
        """By queue: the messages that have ended because they would go round, since the last report."""

    def note_looped(self, queue: int, count: int) -> None:
        """Note that messages of a queue have ended because their dead letters would go round."""
        self._looped[queue] += count

    def take_looped(self) -> dict[int, int]:
        """Return how many messages have ended so since the last call, by queue."""
        looped = dict(self._looped)
        self._looped.clear()
        return looped

    def add(self, queue: int, words: bytes, reason: MoveReason | DiscardReason) -> None:
        """Add messages that a queue gives up now."""
        self.due.append(GiveUp(queue, words, reason))

    def take(self, bytes_max: int) -> GiveUp:
        """Remove and return the next command, with words of at most `bytes_max` bytes."""
        command = self.due[0]
        if len(command.words) <= bytes_max:
            return self.due.popleft()
        first = GiveUp(command.queue, command.words[:bytes_max], command.reason, command.is_again)
        command.words = command.words[bytes_max:]
        return first

    def note_aside(self, queue: int) -> None:
        """Note that a queue has set-aside messages."""
        self._positions.setdefault(queue, -1)
        if self.next_us == FOREVER_US:
            self.next_us = 0

    def forget(self, queue: int) -> None:
        """Forget a queue without set-aside messages."""
        self._positions.pop(queue, None)
        if not self._positions:
            self._untried.clear()
            self.next_us = FOREVER_US

    def next_untried(self, next_us: int) -> int | None:
        """Return the next queue of the present try; None at its end, which sets the time of the next one."""
        if not self._untried:
            self._untried.extend(self._positions)
        if not self._untried:
            return None
        if len(self._untried) == 1:
            self.next_us = next_us
        return self._untried.popleft()

    def try_again(self, queue: Queue, count: int) -> int:
        """Make the next set-aside messages of a queue due, at most `count` of them; return how many."""
        run = queue.aside.run_above(self._positions[queue.id]) or queue.aside.run_above(-1)
        words = unpack_words(run[: count * WORD_BYTES])
        self._positions[queue.id] = words[-1]
        by_reason: dict[MoveReason, list[int]] = {}
        for word in words:
            why = queue.entries.get(word >> 16, PLAIN).set_aside_for
            by_reason.setdefault(MoveReason.REJECTED if why is None else why.reason, []).append(word)
        for reason, some in by_reason.items():
            self.due.append(GiveUp(queue.id, pack_words(some), reason, is_again=True))
        return len(words)
