"""The deliveries of one link that its peer modified as failed, and that were delivered to it again.

Rule 1. A client that closes its consumer modifies what it holds. If the broker was quicker with the message than the
        client with its detach, the failure counts once: the second delivery does not count as failed.
Rule 2. The number of remembered words is bounded. Beyond it a failure may count twice.
"""

from collections.abc import Iterable
from typing import Final, final

__all__ = ["FailedDeliveries"]

_WORDS_MAX: Final = 1024


@final
class FailedDeliveries:
    """The words of the failed deliveries of one link."""

    __slots__ = ("_words", "again")

    def __init__(self) -> None:
        self._words: set[int] = set()
        """The words that the peer modified as failed; no more are added at _WORDS_MAX."""
        self.again: set[int] = set()
        """Those of them that were delivered to it again, and have no outcome since."""

    def add(self, words: Iterable[int]) -> None:
        """Remember deliveries that the peer modified as failed."""
        if len(self._words) < _WORDS_MAX:
            self._words.update(words)

    def note_sent(self, words: Iterable[int]) -> None:
        """Note deliveries that are sent: some may have failed before."""
        self.again |= self._words.intersection(words)

    def note_outcome(self, words: Iterable[int]) -> None:
        """Note deliveries that have an outcome."""
        self.again.difference_update(words)
