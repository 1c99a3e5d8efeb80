"""Settlements that wait for the end of the tick, so that what belongs together leaves as one range.

Rule 1: only consecutive deliveries with the same state, in the same direction, are one range; their order is kept.
"""

from msgspec import Struct

from protocol.performatives import DeliveryState
from protocol.serial import MASK
from protocol.template import write_disposition

__all__ = ["Settlement"]


class Settlement(Struct):
    """A disposition that may still grow."""

    first_id: int
    count: int
    state: DeliveryState | None
    settled: bool
    role: bool
    """As protocol.spec.Role: who says it."""

    def extend(self, first_id: int, count: int, state: DeliveryState | None, *, settled: bool, role: bool) -> bool:
        """Take what follows, when it does follow and is alike."""
        if (
            first_id != (self.first_id + self.count) & MASK
            or settled != self.settled
            or role != self.role
            or (state is not self.state and state != self.state)
        ):
            return False
        self.count += count
        return True

    def write(self, channel: int, frame_bytes_max: int) -> bytes:
        """Write it as a frame, one that the peer takes."""
        last_id = (self.first_id + self.count - 1) & MASK
        return write_disposition(
            channel,
            self.first_id,
            last_id,
            self.state,
            role=self.role,
            settled=self.settled,
            frame_bytes_max=frame_bytes_max,
        )
