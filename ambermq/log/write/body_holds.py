"""Holds on bodies that a compaction removes, within the process that has the log open.

A compaction takes effect in two steps: the manifest names its new segments, and then the loop reads from them. Between
the two steps the old files still have every body, the removed ones too. So the second step waits for a link that is
reading the messages of an earlier moment.

Rule 1. A compaction waits for the holds taken before it and for no later hold. A later hold needs only the bodies that
remain.
Rule 2. Compactions take effect in the order in which they were added.
Rule 3. One thread, the loop, calls everything here. The owner of a hold must limit its duration.
"""

from collections import deque
from collections.abc import Callable
from typing import Final, final

from ambermq.log.compaction.adoption import Adoption

__all__ = ["BodyHold", "BodyHolds"]


@final
class BodyHold:
    """A hold: until its release every body that was in the log when it was taken can be read."""

    __slots__ = ("_holds", "_number")

    def __init__(self, holds: "BodyHolds", number: int) -> None:
        self._holds = holds
        self._number = number

    def release(self) -> None:
        """Release the hold. A second call does nothing."""
        self._holds.release(self._number)


@final
class BodyHolds:
    """The holds of one log, and the compactions that wait for them."""

    __slots__ = ("_adoptions", "_next_number", "_numbers", "_switch_reads")

    def __init__(self, switch_reads: Callable[[Adoption], None]) -> None:
        """`switch_reads` makes the loop read from the new segments; then the old files may be deleted."""
        self._switch_reads: Final = switch_reads
        self._next_number = 0
        self._numbers: dict[int, None] = {}
        """The rising numbers of the holds that are not released."""
        self._adoptions: deque[tuple[int, Adoption]] = deque()

    def take(self) -> BodyHold:
        """Return a hold on every body that is in the log now."""
        number = self._next_number
        self._next_number += 1
        self._numbers[number] = None
        return BodyHold(self, number)

    def add(self, adoption: Adoption) -> None:
        """Put a compaction into effect as soon as no hold needs the bodies that it removes."""
        self._adoptions.append((self._next_number, adoption))
        self._apply_ready()

    def release(self, number: int) -> None:
        """Release a hold."""
        self._numbers.pop(number, None)
        self._apply_ready()

    def _apply_ready(self) -> None:
        while self._adoptions and next(iter(self._numbers), self._next_number) >= self._adoptions[0][0]:
            self._switch_reads(self._adoptions.popleft()[1])
