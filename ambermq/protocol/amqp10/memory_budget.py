"""The memory that peers make a server hold: one budget for all connections, and the account of each.

    partial deliveries, unread input, attached links and what they name           counted as they change
    unsent output, unsettled deliveries, waiting transfers, answers and requests    counted by a survey, once a second
    suspended links with the deliveries and delivery-tags that they keep           the same; they have no account

Rule 1. Whole frames are never counted: they are processed within their read.
Rule 2. At `high_bytes` no new delivery may begin. At `bytes_max` connections are closed, the largest account first.
Rule 3. An account that is closed gives everything back at once, and counts nothing afterwards.
"""

from sys import getsizeof
from typing import Any, Final, final

from ambermq.protocol.amqp10.performatives.base import Composite
from ambermq.protocol.amqp10.types.values import Array, Described, Map

__all__ = ["LINK_BYTES", "UNSETTLED_BYTES", "MemoryAccount", "MemoryBudget", "memory_of", "suspended_bytes"]

LINK_BYTES: Final = 4096
"""An estimate of the memory of a link without its attach: the link, its producer or consumer, their names in maps."""
UNSETTLED_BYTES: Final = 64
"""An estimate of the memory of an unsettled delivery: its token, and its share of a run."""
_SUSPENDED_BYTES: Final = 1024
"""An estimate of the memory of a suspended link: its names in the state, and the timer of its end."""


@final
class MemoryBudget:
    """The sum of all accounts, and its bounds in bytes."""

    __slots__ = ("bytes_max", "completed_bytes", "deliveries_begun", "held_bytes", "high_bytes", "suspended_bytes")

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self.high_bytes = bytes_max * 4 // 5
        """From here on no new delivery may begin."""
        self.held_bytes = 0
        """The sum of all accounts."""
        self.completed_bytes = 0
        """What deliveries gave back when they were complete, since the beginning: the progress of the peers."""
        self.deliveries_begun = 0
        """The number of deliveries of several frames that have begun."""
        self.suspended_bytes = 0
        """The part of `held_bytes` that suspended links hold."""

    def survey_suspended(self, size: int) -> None:
        """Count what suspended links hold now, instead of what the last survey found."""
        self.held_bytes += size - self.suspended_bytes
        self.suspended_bytes = size


@final
class MemoryAccount:
    """What one connection makes the server hold."""

    __slots__ = ("_budget", "_first_begun", "_is_closed", "_surveyed_bytes", "_unfinished", "held_bytes")

    def __init__(self, budget: MemoryBudget) -> None:
        self._budget = budget
        self.held_bytes = 0
        self._surveyed_bytes = 0
        self._unfinished = 0
        self._first_begun = 0
        self._is_closed = False

    def change(self, difference: int) -> None:
        """Count bytes that are held now; bytes that are not held any more if the number is negative."""
        if not self._is_closed:
            self.held_bytes += difference
            self._budget.held_bytes += difference

    def survey(self, size: int) -> None:
        """Count what was found at a survey, instead of what the last one found."""
        self.change(size - self._surveyed_bytes)
        self._surveyed_bytes = size

    def begin_delivery(self) -> None:
        """Count a delivery of several frames that begins."""
        self._budget.deliveries_begun += 1
        if not self._unfinished:
            self._first_begun = self._budget.deliveries_begun
        self._unfinished += 1

    def end_delivery(self, size: int, *, is_complete: bool) -> None:
        """Uncount the bytes of a delivery of several frames that has ended."""
        self._unfinished -= 1
        self.change(-size)
        if is_complete:
            self._budget.completed_bytes += size

    def close(self) -> None:
        """Uncount everything, because the connection has ended."""
        self.change(-self.held_bytes)
        self._is_closed = True

    def rank(self, message_bytes_max: int) -> tuple[int, bool, int, int]:
        """Return a value whose maximum is the account to close first: that of the largest holder.

        Up to the size of one message holders are equal, since honest senders hold that much too: of these the one with
        the oldest unfinished delivery comes first.
        """
        spared = min(message_bytes_max, self._budget.bytes_max // 16)
        return max(self.held_bytes - spared, 0), self._unfinished > 0, -self._first_begun, self.held_bytes


def suspended_bytes(links: int, held: int) -> int:
    """Return the memory of suspended links that keep so many deliveries or delivery-tags, in bytes."""
    return links * _SUSPENDED_BYTES + held * UNSETTLED_BYTES


def memory_of(value: Any) -> int:
    """Return the memory of a decoded AMQP value with all that it contains, in bytes."""
    size, values = 0, [value]
    while values:
        each = values.pop()
        size += getsizeof(each, 0)
        if isinstance(each, dict):
            values += each.keys()
            values += each.values()
        elif isinstance(each, list | tuple):
            values += each
        elif isinstance(each, Composite):
            values += [field for name in each.FIELDS if (field := getattr(each, name)) is not None]
        elif isinstance(each, Map):
            values += each.pairs
        elif isinstance(each, Array):
            values += (*each.items, *each.descriptors)
        elif isinstance(each, Described):
            values += (each.descriptor, each.value)
    return size
