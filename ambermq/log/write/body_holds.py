"""Who still needs bodies that compactions have let go of, within the process that has the log open.

A compaction is taken over in two steps: the manifest names its new segments, and then the loop reads from them. Between
the two the old files answer for all that the new ones do, and for what is gone. So where somebody reads the messages of
a moment, the second step waits for him.

Rule 1. A compaction waits for the holds that were taken before it, and for no later one: who comes then asks for what
is there.
Rule 2. Compactions are taken over in the order in which they came.
Rule 3. One thread, the loop, calls everything here. How long a hold may last is for its holder to bound.
"""

from collections import deque
from collections.abc import Callable
from typing import Final, final

from ambermq.log.compaction.adoption import Adoption

__all__ = ["BodyHold", "BodyHolds"]


@final
class BodyHold:
    """As long as it is not released, every body that was in the log when it was taken can be read."""

    __slots__ = ("_holds", "_number")

    def __init__(self, holds: "BodyHolds", number: int) -> None:
        self._holds = holds
        self._number = number

    def release(self) -> None:
        """Need them no longer; once more does nothing."""
        self._holds.release(self._number)


@final
class BodyHolds:
    """The holds of one log, and the compactions that wait for them."""

    __slots__ = ("_next_number", "_numbers", "_take_over", "_waiting")

    def __init__(self, take_over: Callable[[Adoption], None]) -> None:
        """`take_over` makes the loop read from the new segments; then the old files may be deleted."""
        self._take_over: Final = take_over
        self._next_number = 0
        self._numbers: dict[int, None] = {}
        """Of the holds that are not released, rising."""
        self._waiting: deque[tuple[int, Adoption]] = deque()

    def take(self) -> BodyHold:
        """Hold what is in the log now."""
        number = self._next_number
        self._next_number += 1
        self._numbers[number] = None
        return BodyHold(self, number)

    def add(self, adoption: Adoption) -> None:
        """Take a compaction over as soon as nobody holds what it lets go of."""
        self._waiting.append((self._next_number, adoption))
        self._go_on()

    def release(self, number: int) -> None:
        """Let go of a hold."""
        self._numbers.pop(number, None)
        self._go_on()

    def _go_on(self) -> None:
        while self._waiting and next(iter(self._numbers), self._next_number) >= self._waiting[0][0]:
            self._take_over(self._waiting.popleft()[1])
