"""Settlements that wait for the end of the tick, so that what belongs together leaves as one range.

Rule 1: only consecutive deliveries with the same state, in the same direction, are one range; their order is kept.
"""

from protocol.performatives import DeliveryState
from protocol.serial import MASK
from protocol.template import write_disposition

__all__ = ["Settlement"]


class Settlement:
    """A disposition that may still grow."""

    __slots__ = ("_count", "_first_id", "_role", "_settled", "_state")

    def __init__(self, first_id: int, count: int, state: DeliveryState | None, *, settled: bool, role: bool) -> None:
        self._first_id = first_id
        self._count = count
        self._state = state
        self._settled = settled
        self._role = role

    def extend(self, first_id: int, count: int, state: DeliveryState | None, *, settled: bool, role: bool) -> bool:
        """Take what follows, when it does follow and is alike."""
        if (
            first_id != (self._first_id + self._count) & MASK
            or settled != self._settled
            or role != self._role
            or (state is not self._state and state != self._state)
        ):
            return False
        self._count += count
        return True

    def write(self, channel: int) -> bytes:
        """Write it as a frame."""
        last_id = (self._first_id + self._count - 1) & MASK
        return write_disposition(channel, self._first_id, last_id, self._state, role=self._role, settled=self._settled)
