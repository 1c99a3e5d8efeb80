"""Serial numbers (RFC 1982, 32 bits): delivery-ids, transfer-ids and delivery-counts wrap.

Rule 1. A serial number is an int in 0 .. 2**32 - 1. The sum is `(a + n) & MASK`; hot paths write it out.
Rule 2. Only `distance` compares two serial numbers, never `<`; hot paths write it out.
"""

from typing import Final

__all__ = ["HALF", "MASK", "distance"]

MASK: Final = 0xFFFFFFFF
HALF: Final = 0x80000000
"""Half of the circle of serial numbers."""


def distance(start: int, end: int) -> int:
    """Return how far `end` is ahead of `start`, in -2**31 .. 2**31 - 1; negative if it is behind."""
    return ((end - start + HALF) & MASK) - HALF
