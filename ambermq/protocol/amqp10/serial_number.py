"""Serial numbers (RFC 1982, 32 bits): delivery-ids, transfer-ids and delivery-counts wrap.

Rule 1: a serial number is a plain int in 0 .. 2**32 - 1; adding is `(a + n) & MASK`, written out on hot paths.
Rule 2: which of two comes first is asked by `distance` alone, never by `<`.
"""

from typing import Final

__all__ = ["MASK", "distance"]

MASK: Final = 0xFFFFFFFF


def distance(start: int, end: int) -> int:
    """How far `end` lies ahead of `start`: negative when it lies behind, in -2**31 .. 2**31 - 1."""
    return ((end - start + 0x80000000) & MASK) - 0x80000000
