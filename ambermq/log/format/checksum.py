"""CRC-32C (Castagnoli), by the fastest implementation that is installed.

Package `crc32c` uses the processor's instruction (80 ns a call, 25 GB/s). `crcmod-plus` is the fallback: 0.43 GB/s with
its C extension, 14 MB/s without it. It is also the second implementation of checks for people (checksum_pair.py).
`IS_FAST` is public because the broker logs a warning at start if it is false.
"""

from collections.abc import Callable

from ambermq.log.buffer import Buffer

__all__ = ["IS_FAST", "crc32c", "crc32c_of_crcmod"]


def crc32c_of_crcmod() -> tuple[Callable[..., int], bool]:
    """Return the implementation of crcmod-plus, with the arguments of `crc32c`, and whether it is compiled."""
    import crcmod  # noqa: PLC0415 - needed if `crc32c` is missing, or as the second implementation
    import crcmod.predefined  # noqa: PLC0415

    update = crcmod.predefined.mkPredefinedCrcFun("crc-32c")

    def crc32c_by_crcmod(buffer: Buffer, crc: int = 0, /) -> int:
        return int(update(buffer, crc))

    return crc32c_by_crcmod, bool(crcmod.crcmod._usingExtension)  # noqa: SLF001 - crcmod has no public name for it


crc32c: Callable[..., int]
"""crc32c(buffer, crc=0) -> int: the CRC of `buffer`, continued from `crc`; positional arguments only."""

IS_FAST: bool
"""Whether the implementation in use is compiled."""

try:
    from crc32c import crc32c as _crc32c_of_package

    crc32c, IS_FAST = _crc32c_of_package, True
except ImportError:  # pragma: no cover - the property test calls the fallback directly
    crc32c, IS_FAST = crc32c_of_crcmod()
