"""The file of a recording: written by the proxy, read by the commands `print` and `replay`.

Rule 1. Each record is one write without a buffer, so a killed proxy leaves all records that it has begun to forward.
Rule 2. The file never exceeds its maximum size: room for the last record is kept.
Rule 3. A failed write ends the recording at the last whole record. The relay goes on.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from ambermq.log.errors import DamageError
from ambermq.tools.proxy.recording import (
    HEADER_BYTES,
    RECORD_HEADER_BYTES,
    Kind,
    Record,
    RecordingReader,
    encode_header,
    encode_record,
)
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode

__all__ = ["LEAST_BYTES", "RecordingWriter", "open_recording"]

LEAST_BYTES: Final = HEADER_BYTES + RECORD_HEADER_BYTES
"""The smallest maximum size: the header, and the record that ends the file."""


class RecordingWriter:
    """A new recording."""

    def __init__(self, path: Path, *, bytes_max: int, time_us: int) -> None:
        """Create the file; raise ToolError if there is one."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        try:
            self._fd = os.open(path, flags, 0o600)
        except FileExistsError as error:
            raise ToolError("the file exists", where=str(path), advice="name a new file") from error
        self._path = path
        self._bytes_max = bytes_max
        self._size = 0
        self.is_full = False
        """Whether the maximum size was reached."""
        self.failure: OSError | None = None
        """The error of the write that ended the recording."""
        self._write(encode_header(time_us))
        if self.failure is not None:
            os.close(self._fd)
            raise self.failure

    @property
    def is_recording(self) -> bool:
        """Whether further records are written."""
        return not self.is_full and self.failure is None

    @property
    def size(self) -> int:
        """The size of the file in bytes."""
        return self._size

    def append(self, record: Record) -> bool:
        """Append a record; return False if this call ended the recording."""
        if not self.is_recording:
            return True
        encoded = encode_record(record)
        if self._size + len(encoded) + RECORD_HEADER_BYTES > self._bytes_max:
            self.is_full = True
            self._write(encode_record(Record(record.time_us, 0, Kind.LIMIT, b"")))
            return False
        self._write(encoded)
        return self.failure is None

    def close(self, time_us: int) -> None:
        """Append the last record and close the file."""
        if self.is_recording:
            self._write(encode_record(Record(time_us, 0, Kind.END, b"")))
        os.close(self._fd)

    def _write(self, encoded: bytes) -> None:
        written = 0
        try:
            while written < len(encoded):
                written += os.write(self._fd, encoded[written:])
        except OSError as error:
            error.filename = str(self._path)
            self.failure = error
            # The part of a record would look like a kill; if it stays, the reader ends before it as well.
            with suppress(OSError):
                os.ftruncate(self._fd, self._size)
            return
        self._size += written


@contextmanager
def open_recording(path: Path) -> Iterator[RecordingReader]:
    """Yield the reader of a file; raise its damage as a ToolError."""
    try:
        with path.open("rb") as file:
            yield RecordingReader(file, name=str(path))
    except DamageError as error:
        advice = "the records before that position are sound, and were read"
        raise ToolError(str(error), advice=advice, code=ExitCode.DAMAGED) from error
