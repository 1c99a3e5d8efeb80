"""The messages that `ambermq send` reads: a body from a file, or one message a line.

Rule 1. A body of more than `MEMORY_BYTES_MAX` is never in the memory of the process. An unlinked temporary file holds
        its encoded message, and the socket is written from the pages of that file.
Rule 2. A line may be as large as a message, and has a limit. The wait for a line sends heartbeats.
"""

import mmap
import os
import select
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from shutil import copyfileobj
from struct import Struct
from tempfile import TemporaryFile
from typing import IO, Final

from ambermq.protocol.amqp10.limits import UINT_MAX
from ambermq.protocol.amqp10.types.decode import Buffer
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode

__all__ = ["MEMORY_BYTES_MAX", "STANDARD_INPUT", "body_file", "input_lines", "message_with_body"]

STANDARD_INPUT: Final = "-"
"""The name of standard input as a file."""
MEMORY_BYTES_MAX: Final = 1 << 20
"""The size of the largest body that is read whole."""
_LINE_BYTES_MAX: Final = 256 << 20
_READ_BYTES: Final = 64 * 1024
_EMPTY_BODY: Final = b"\x00\x53\x75\xa0\x00"
"""The last section of an encoded message without content: data of 0 bytes (messaging, 3.2.6)."""
_LONG_BODY: Final = Struct(">4sI")
"""Descriptor and constructor of a data section with a size of four bytes, and that size."""


@contextmanager
def body_file(path: str) -> Iterator[IO[bytes]]:
    """Yield a body as a file that can be read again; standard input is copied to a temporary one."""
    if path != STANDARD_INPUT:
        with open(path, "rb") as file:  # noqa: PTH123 - a pipe by name is a file, too
            yield file
        return
    with TemporaryFile() as copy:
        copyfileobj(sys.stdin.buffer, copy)
        yield copy


def message_with_body(start: bytes, body: IO[bytes], *, bytes_max: int) -> Buffer:
    """Return the message of an encoded one without content and a file with the content.

    `bytes_max` is the limit of the broker, 0 for none. Raises ToolError for a message above it.
    """
    assert start.endswith(_EMPTY_BODY), "the draft has an empty body"
    with TemporaryFile() as file:
        file.write(start.removesuffix(_EMPTY_BODY) + _LONG_BODY.pack(b"\x00\x53\x75\xb0", 0))
        head_bytes = file.tell()
        body.seek(0)
        copyfileobj(body, file, MEMORY_BYTES_MAX)
        size = file.tell()
        limit = min(bytes_max or UINT_MAX, UINT_MAX)
        if size > limit:
            where = str(getattr(body, "name", ""))
            raise ToolError(
                "the message is too large",
                where=where if where.isprintable() else "",
                expected=f"at most {limit:,} bytes",
                found=f"{size:,}",
                code=ExitCode.USAGE,
            )
        file.seek(head_bytes - _LONG_BODY.size)
        file.write(_LONG_BODY.pack(b"\x00\x53\x75\xb0", size - head_bytes))
        file.flush()
        return memoryview(mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ))


def input_lines(path: str, wait_readable: Callable[[int], None]) -> Iterator[tuple[str, bytes]]:
    """Yield the lines of a file, `-` for standard input, without their line ends, and the place of each."""
    descriptor = 0 if path == STANDARD_INPUT else os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    name = "standard input" if path == STANDARD_INPUT else path
    try:
        for number, line in enumerate(_lines(descriptor, wait_readable, name), start=1):
            yield f"{name}, line {number}", line
    finally:
        if path != STANDARD_INPUT:
            os.close(descriptor)


def _lines(descriptor: int, wait_readable: Callable[[int], None], name: str) -> Iterator[bytes]:
    # A line may be as large as a message, so its pieces are joined once.
    pieces: list[bytes] = []
    size = 0
    while True:
        wait_readable(descriptor)
        if not select.select([descriptor], [], [], 0)[0]:
            continue
        chunk = os.read(descriptor, _READ_BYTES)
        first, *lines = chunk.split(b"\n")
        pieces.append(first)
        size += len(first)
        if size > _LINE_BYTES_MAX:
            expected = f"at most {_LINE_BYTES_MAX:,} bytes"
            raise ToolError("a line is too long", where=name, expected=expected, code=ExitCode.USAGE)
        if lines:
            yield b"".join(pieces)
            yield from lines[:-1]
            pieces, size = lines[-1:], len(lines[-1])
        if not chunk:
            if size:
                yield b"".join(pieces)
            return
