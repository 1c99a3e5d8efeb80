"""A message whose body is a file: sent from it and received into it, piece by piece.

Rule 1. No more than a piece is in memory, whatever the size of the file.
Rule 2. A body is data sections of at most `_SECTION_BYTES_MAX`. What is received may be data, a string or a binary.
Rule 3. A received file has its name when it is complete and durable. Before that it is `NAME.part`, and ends with an
        error or an interrupt.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from struct import Struct
from types import TracebackType
from typing import IO, Final, Self, final

from ambermq.log.storage.disk import DiskFile, DiskStorage
from ambermq.log.storage.steady_file import SteadyFile
from ambermq.protocol.amqp10.errors import DecodeError
from ambermq.protocol.amqp10.message.sections import Section, read_descriptor
from ambermq.protocol.amqp10.types.decode import Buffer
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode

__all__ = ["EMPTY_BODY", "BodyFile", "message_size", "pieces_of"]

EMPTY_BODY: Final = b"\x00\x53\x75\xa0\x00"
"""The last section of an encoded message without content: data of 0 bytes (messaging, 3.2.6)."""
_SECTION: Final = Struct(">4sI")
"""Descriptor and constructor of a data section with a size of four bytes, and that size."""
_SECTION_BYTES_MAX: Final = 1 << 30
_FILE_MODE: Final = 0o666
"""Less what the user's mask takes away, as of any file."""
_START_BYTES: Final = 64
"""The most bytes that a descriptor, a constructor and its size take."""
_SIZE_BYTES: Final = {0xA: 1, 0xC: 1, 0xE: 1, 0xB: 4, 0xD: 4, 0xF: 4}
"""The bytes of the size behind a format code, by its upper half."""
_TEXTS: Final = frozenset((0xA0, 0xB0, 0xA1, 0xB1))
"""The format codes of binaries and strings."""


def message_size(start: bytes, size: int) -> int:
    """Return the bytes of the message of an encoded one without content and `size` bytes of content."""
    sections = max(1, -(-size // _SECTION_BYTES_MAX))
    return len(start) - len(EMPTY_BODY) + sections * _SECTION.size + size


def pieces_of(start: bytes, body: IO[bytes], size: int, piece_bytes: int) -> Iterator[tuple[bytes, bool]]:
    """Yield the pieces of a message, each with whether it is the last one.

    `start` is the encoded message without content, and `body` the file with `size` bytes of content. Raises ToolError
    if the file is shorter now.
    """
    assert start.endswith(EMPTY_BODY), "the draft has an empty body"
    body.seek(0)
    head, left = start.removesuffix(EMPTY_BODY), size
    while True:
        section = min(left, _SECTION_BYTES_MAX)
        head += _SECTION.pack(b"\x00\x53\x75\xb0", section)
        while section or head:
            data = body.read(min(section, piece_bytes - len(head)))
            if not data and section:
                raise ToolError("the file became shorter while it was sent", where=str(body.name), code=ExitCode.USAGE)
            section -= len(data)
            left -= len(data)
            yield head + data, not left
            head = b""
        if not left:
            return


@final
class BodyFile:
    """A file that gets the body of one message."""

    def __init__(self, path: str) -> None:
        """Begin with an empty file. Raises OSError, also for what exists and is no file: a name takes its place."""
        # The file that a symbolic link names is replaced, not the link.
        self._path = Path(path).resolve()
        if self._path.exists() and not self._path.is_file():
            raise OSError(errno.EINVAL, "it is not a regular file")
        self._part = self._path.with_name(f"{self._path.name}.part")
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        self._disk = DiskFile(os.open(self._part, flags, _FILE_MODE))
        self._file = SteadyFile(self._disk)
        self._kept = b""
        self._previous = 0
        self._left = 0
        """The bytes of a section that are still to come."""
        self._is_body = False
        self.size = 0
        """The bytes of the body so far."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # What a full disk does not take is removed in any case.
        with suppress(OSError):
            self._disk.close()
        self._part.unlink(missing_ok=True)

    def restart(self) -> None:
        """Begin again: the delivery was aborted. Raises ToolError if the disk did not take what had come."""
        try:
            self._file.restart()
        except OSError as error:
            raise self._failed(error) from error
        self._kept, self._previous, self._left, self.size = b"", 0, 0, 0

    def write(self, piece: Buffer, *, is_last: bool) -> None:
        """Write the part of the body in the next bytes of the message. Raises ToolError if it has another kind."""
        data = memoryview(self._kept + bytes(piece) if self._kept else piece)
        self._kept, position, end = b"", 0, len(data)
        try:
            while position < end:
                if self._left:
                    count = min(self._left, end - position)
                    if self._is_body:
                        self._file.write([data[position : position + count]])
                        self.size += count
                    position, self._left = position + count, self._left - count
                elif end - position < _START_BYTES and not is_last:
                    self._kept = bytes(data[position:])
                    return
                else:
                    position = self._begin_section(data, position, end)
        except (DecodeError, IndexError) as error:
            raise self._unwritable(f"it cannot be decoded ({error})") from error
        except OSError as error:
            raise self._failed(error) from error
        if is_last and self._left:
            raise self._unwritable("it is cut off")

    def keep(self) -> None:
        """Rename the file to its final name: the body is complete. When this returns, the name is durable too."""
        try:
            self._file.sync()
            self._part.replace(self._path)
            DiskStorage().sync_directory(str(self._path.parent))
        except OSError as error:
            raise self._failed(error) from error

    def _begin_section(self, data: memoryview, position: int, end: int) -> int:
        """Read the beginning of a section, and return the position of its contents."""
        code, start = read_descriptor(data, position, end, self._previous)
        form = data[start]
        self._previous, self._is_body = code, code in (Section.DATA, Section.AMQP_VALUE)
        if code == Section.AMQP_SEQUENCE or (code == Section.AMQP_VALUE and form not in _TEXTS):
            raise self._unwritable("its body is neither binary nor text")
        width = _SIZE_BYTES.get(form >> 4, 0)
        self._left = int.from_bytes(data[start + 1 : start + 1 + width]) if width else 0
        return start + 1 + width

    def _failed(self, error: OSError) -> ToolError:
        return ToolError(f"cannot write: {error.strerror}", where=str(self._path))

    def _unwritable(self, why: str) -> ToolError:
        return ToolError("the message cannot be written to a file", where=str(self._path), found=why)
