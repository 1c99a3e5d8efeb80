r"""Text files that say by their last line whether they are whole.

The last line is `crc32c XXXXXXXX\n`: CRC-32C of every byte before it, in 8 hex digits.
"""

import json
import re
from typing import Any, Final

import msgspec

from log.checksum import crc32c
from log.errors import DamageError

__all__ = ["json_with_crc_line", "with_crc_line", "without_crc_line"]

_CRC_LINE: Final = re.compile(rb"crc32c ([0-9a-f]{8})\n\Z")


def json_with_crc_line(value: Any, **instead: Any) -> bytes:
    """Return a dataclass as JSON, a value a line, some fields written otherwise, with the line behind it."""
    # A manifest names every segment and is written at each roll. C lays it out: with `indent` json would, in Python.
    document = msgspec.to_builtins(value, builtin_types=(bytes,)) | instead
    return with_crc_line(msgspec.json.format(json.dumps(document), indent=1).encode() + b"\n")


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
