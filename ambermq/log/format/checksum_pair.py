"""CRC-32C by two implementations that share no code: the package in use (checksum.py) and crcmod-plus.

Rule 1. Where bytes are checked for a person, both compute the CRC. A fault of one package then is taken neither for
damage nor for health: it is a ChecksumError.
Rule 2. crcmod-plus computes 0.35 GB/s where crc32c computes 25, so it computes samples: each 16th batch of a segment,
and of a snapshot each short part and each 16th long one. The first is always among them.
"""

from collections.abc import Callable
from functools import cache
from typing import Final

from ambermq.log.buffer import Buffer
from ambermq.log.errors import ChecksumError
from ambermq.log.format.checksum import crc32c, crc32c_of_crcmod

__all__ = ["SAMPLE_INTERVAL", "SampledChecksum", "crc32c_by_both"]

SAMPLE_INTERVAL: Final = 16
"""Of so many batches or long buffers, the first is a sample."""

_SHORT_BYTES_MAX: Final = 4096


class SampledChecksum:
    """A checksum that short buffers and samples of the long ones get from both implementations, the others from one."""

    __slots__ = ("_long_count",)

    def __init__(self) -> None:
        self._long_count = 0

    def __call__(self, buffer: Buffer, crc: int = 0, /) -> int:
        """Return the CRC of `buffer`, continued from `crc`; raise ChecksumError if the implementations disagree."""
        is_long = len(buffer) > _SHORT_BYTES_MAX
        is_sample = not is_long or self._long_count % SAMPLE_INTERVAL == 0
        self._long_count += is_long
        return crc32c_by_both(buffer, crc) if is_sample else crc32c(buffer, crc)


def crc32c_by_both(buffer: Buffer, crc: int = 0, /) -> int:
    """Return the CRC of `buffer`, continued from `crc`; raise ChecksumError if the implementations disagree."""
    first, second = crc32c(buffer, crc), _second()(buffer, crc)
    if first != second:
        raise ChecksumError(
            f"the CRC-32C of {len(buffer)} bytes is {first:#010x} by crc32c and {second:#010x} by crcmod-plus: "
            "one of these packages is at fault, or this machine"
        )
    return first


@cache
def _second() -> Callable[[Buffer, int], int]:
    return crc32c_of_crcmod()[0]
