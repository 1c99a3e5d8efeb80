"""The messages that `ambermq send` reads: a body from a file, or one message a line.

Rule 1. A body of more than `MEMORY_BYTES_MAX` is never in the memory of the process (message_file.py).
Rule 2. A line may be as large as a message, and has a limit. The wait for a line sends heartbeats.
"""

import os
import select
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from tempfile import TemporaryFile
from typing import IO, Final

from ambermq.log.storage.disk import DiskFile
from ambermq.log.storage.steady_file import SteadyFile
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode

__all__ = ["MEMORY_BYTES_MAX", "STANDARD_INPUT", "body_file", "input_lines"]

STANDARD_INPUT: Final = "-"
"""The name of standard input as a file."""
MEMORY_BYTES_MAX: Final = 1 << 20
"""The size of the largest body that is read whole."""
_LINE_BYTES_MAX: Final = 256 << 20
_READ_BYTES: Final = 64 * 1024
_COPY_BYTES: Final = 1 << 20


@contextmanager
def body_file(path: str) -> Iterator[IO[bytes]]:
    """Yield a body as a file that can be read again; standard input is copied to a temporary one."""
    if path != STANDARD_INPUT:
        with open(path, "rb") as file:  # noqa: PTH123 - a pipe by name is a file, too
            yield file
        return
    with TemporaryFile() as copy:
        written = SteadyFile(DiskFile(copy.fileno()))
        while piece := sys.stdin.buffer.read(_COPY_BYTES):
            written.write([piece])
        yield copy


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
