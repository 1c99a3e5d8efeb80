"""The type of the bytes that the log writes: `os.pwritev` and the CRC accept them without a copy."""

from typing import TypeAlias

__all__ = ["Buffer"]

Buffer: TypeAlias = bytes | bytearray | memoryview
"""One-dimensional and contiguous; its length is its number of bytes (memoryviews have format "B")."""
