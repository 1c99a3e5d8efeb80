r"""Text files that say by their last line whether they are whole.

The last line is `crc32c XXXXXXXX\n`: CRC-32C of every byte before it, in 8 hex digits.
"""

import re
from typing import Final

from log.checksum import crc32c
from log.errors import DamageError

__all__ = ["with_crc_line", "without_crc_line"]

_CRC_LINE: Final = re.compile(rb"crc32c ([0-9a-f]{8})\n\Z")


def with_crc_line(text: bytes) -> bytes:
    """Return a text with the line behind it."""
    return text + b"crc32c %08x\n" % crc32c(text)


def without_crc_line(text: bytes, *, file: str) -> bytes:
    """Return what stands before the line; DamageError naming `file` where it is missing or wrong."""
    line = _CRC_LINE.search(text)
    if line is None:
        raise DamageError(file, len(text), "a last line with a CRC", f"{text[-20:]!r}")
    body = text[: line.start()]
    expected, found = int(line[1], 16), crc32c(body)
    if expected != found:
        raise DamageError(file, line.start(), f"crc32c {expected:08x}", f"{found:08x}")
    return body
