"""Settlements that wait for the end of the tick, so that what belongs together leaves as one range.

    size u32 | 02 00 channel u16 | 00 53 15 c0 size u8 | 06 role 70 | first u32 | 70 last u32 | settled | state | 42

Rule 1: only consecutive deliveries with the same state, in the same direction, are one range; their order is kept.
Rule 2: the frame decodes to what the general encoder would have written at full width; ids always take five bytes.
"""

import struct
from typing import Final

from msgspec import Struct

from protocol.fitting import fitted
from protocol.frames import encode_frame
from protocol.performatives import DeliveryState, Disposition
from protocol.serial import MASK

__all__ = ["Settlement"]

_HEAD: Final = struct.Struct(">IHHIB3sIBIB").pack
_DESCRIBED_LIST8: Final = 0x005315C0
_SENDER: Final = b"\x06\x42\x70"
_RECEIVER: Final = b"\x06\x41\x70"
_TRUE: Final = 0x41
_FALSE: Final = 0x42
_UINT: Final = 0x70
_UNCOUNTED_BYTES: Final = 13
"""What stands in the frame before that which its list counts."""


class Settlement(Struct):
    """A disposition that may still grow."""

    first_id: int
    count: int
    state: DeliveryState | None
    settled: bool
    role: bool
    """As protocol.spec.Role: who says it."""

    def extend(self, behind: "Settlement") -> bool:
        """Take what follows, when it does follow and is alike."""
        state = self.state
        if (
            behind.first_id != (self.first_id + self.count) & MASK
            or behind.settled != self.settled
            or behind.role != self.role
            or (behind.state is not state and behind.state != state)
        ):
            return False
        self.count += behind.count
        return True

    def write(self, channel: int, frame_bytes_max: int) -> bytes:
        """Write it as a frame that the peer takes: what an error says is cut where it would be too long."""
        first_id, state = self.first_id, self.state
        last_id = (first_id + self.count - 1) & MASK
        encoded = b"\x40" if state is None else state.encode()
        list_bytes = 14 + len(encoded)
        if list_bytes > 255:
            said = Disposition(role=self.role, first=first_id, last=last_id, settled=self.settled, state=state)
            return fitted(channel, said, frame_bytes_max) or encode_frame(channel, said)
        head = _HEAD(
            _UNCOUNTED_BYTES + list_bytes, 0x0200, channel, _DESCRIBED_LIST8, list_bytes,
            _RECEIVER if self.role else _SENDER, first_id, _UINT, last_id, _TRUE if self.settled else _FALSE,
        )  # fmt: skip
        return head + encoded + b"\x42"
