"""Write a backup to one file or to a directory, under a temporary name until it is whole.

Rule 1. The export writes to `PATH.partial`, and renames it to PATH when all of it is synced. So PATH is whole, or does
not exist. A later export to the same path empties `PATH.partial` and uses it again.
Rule 2. One of two exports to the same path fails. The export that has locked `PATH.partial`, and still finds its lock
there, may write to it; it then checks again that PATH is free.
Rule 3. Bulk writes slow down the syncs of a broker on the same disk. So the writer syncs every 8 MiB, drops its pages
from the page cache, and limits its rate.
"""

import os
import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import zstandard

from ambermq.log.buffer import Buffer
from ambermq.log.format.checksum import crc32c
from ambermq.log.storage.disk import DiskFile, DiskFileLock, DiskStorage
from ambermq.log.storage.steady_file import SteadyFile
from ambermq.tools.backup.format import (
    FRAME_BYTES_MAX,
    PARTS_MAX,
    TABLE_NAME,
    BackupPart,
    Head,
    SegmentPart,
    Table,
    encode_frame,
    encode_header,
    encode_table,
    encode_trailer,
    part_bytes_max,
)
from ambermq.tools.past.rate_limit import RateLimit
from ambermq.tools.terminal.errors import ToolError

__all__ = ["BackupWriter"]

_LEVEL: Final = 3
_ENDING: Final = ".part"
_TRIES: Final = 8
"""The maximum number of tries: each fails only if another export begins or ends at the same moment."""


class BackupWriter:
    """A backup during its export; as a context it removes an unfinished backup at the end."""

    def __init__(self, path: str, *, as_directory: bool, head: Head, bytes_per_s: int) -> None:
        """Lock the temporary file. Raises ToolError if `path` exists, or if another export writes to it."""
        self._target = _named_target(path)
        self._temporary = self._target.with_name(self._target.name + ".partial")
        self._is_directory = as_directory
        self._rate_limit = RateLimit(bytes_per_s)
        self._compressor = zstandard.ZstdCompressor(level=_LEVEL)
        self._parts: list[BackupPart] = []
        self._part: _OpenPart | None = None
        self._head = head
        self._output: _Output | None = None
        _refuse_target(self._target, as_directory=as_directory)
        self._lock: DiskFileLock | None = _locked_temporary(self._temporary, as_directory=as_directory)
        try:
            # Another export may have renamed its backup to the target, and so released the lock, just before.
            _refuse_target(self._target, as_directory=as_directory)
        except BaseException:
            _remove(self._temporary)
            self._release()
            raise

    def begin(self, name: str) -> None:
        """Begin a part; `write` adds to it until `end`."""
        assert self._part is None
        if self._is_directory:
            self._output = _Output(self._temporary / (name + _ENDING), self._rate_limit)
        elif self._output is None:
            self._output = _Output(self._temporary, self._rate_limit)
            self._output.write([encode_header(self._head)])
        self._part = _OpenPart(name, self._output.position)

    def write(self, buffer: Buffer) -> None:
        """Add bytes to the part."""
        part = self._part
        assert part is not None
        part.length += len(buffer)
        if part.length > part_bytes_max(len(self._parts)) or len(self._parts) >= PARTS_MAX:
            raise ToolError(
                "the backup would be too large",
                where=str(self._target),
                expected=f"{part_bytes_max(len(self._parts))} bytes at most in {part.name}, and {PARTS_MAX} parts",
            )
        part.crc = crc32c(buffer, part.crc)
        part.buffer += buffer
        while len(part.buffer) >= FRAME_BYTES_MAX:
            self._write_frame(bytes(part.buffer[:FRAME_BYTES_MAX]))
            del part.buffer[:FRAME_BYTES_MAX]

    @property
    def part_length(self) -> int:
        """The length of the present part until now."""
        assert self._part is not None
        return self._part.length

    def end(self, segment: SegmentPart | None = None) -> None:
        """End the part; `segment` has the fields of a segment that a restore needs."""
        part, output = self._part, self._output
        assert part is not None
        assert output is not None
        if part.buffer:
            self._write_frame(bytes(part.buffer))
        stored = output.position - part.position
        self._parts.append(BackupPart(part.name, part.position, stored, part.length, part.crc, segment))
        self._part = None
        if self._is_directory:
            output.finish()
            self._output = None

    @property
    def parts(self) -> tuple[BackupPart, ...]:
        """The parts that have ended."""
        return tuple(self._parts)

    def finish(self, table: Table) -> None:
        """Write the table of contents, and rename the backup to its path."""
        text = encode_table(table)
        if self._is_directory:
            self._output = _Output(self._temporary / TABLE_NAME, self._rate_limit)
            self._output.write([text])
        else:
            assert self._output is not None
            position = self._output.position
            self._output.write([text, encode_trailer(position=position, length=len(text))])
        self._output.finish()
        self._output = None
        _name(self._temporary, self._target, as_directory=self._is_directory)
        self._release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if self._lock is not None:
            if self._output is not None:
                self._output.close()
            _remove(self._temporary)
            self._release()

    def _write_frame(self, content: bytes) -> None:
        assert self._output is not None
        payload = self._compressor.compress(content)
        self._output.write(encode_frame(payload, length=len(content), part=len(self._parts)))

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.release()
            self._lock = None


class _OpenPart:
    """The part that the writer adds to."""

    __slots__ = ("buffer", "crc", "length", "name", "position")

    def __init__(self, name: str, position: int) -> None:
        self.name = name
        self.position = position
        self.length = 0
        self.crc = 0
        self.buffer = bytearray()


class _Output:
    """One file that grows at its end."""

    __slots__ = ("_disk", "_file", "_path", "_rate_limit")

    def __init__(self, path: Path, pace: RateLimit) -> None:
        self._path = path
        self._rate_limit = pace
        self._disk: DiskFile = DiskStorage().open(str(path), create=True)
        self._file = SteadyFile(self._disk, is_cached=False)

    @property
    def position(self) -> int:
        return self._file.position

    def write(self, buffers: Sequence[Buffer]) -> None:
        self._rate_limit.spend(sum(map(len, buffers)))
        try:
            self._file.write(buffers)
        except OSError as error:
            raise _unwritable(self._path, error) from error

    def finish(self) -> None:
        try:
            self._file.sync()
        except OSError as error:
            raise _unwritable(self._path, error) from error
        self._disk.close()

    def close(self) -> None:
        self._disk.close()


def _named_target(path: str) -> Path:
    """Return the target; ToolError if it has no name of its own, to which the whole backup is renamed."""
    target = Path(path)
    if target.name in {"", ".."}:
        raise ToolError("the backup has no file name", where=repr(path), advice="name a file or a directory")
    return target


def _refuse_target(target: Path, *, as_directory: bool) -> None:
    """Raise ToolError if the backup would replace a file or a directory at `target`."""
    if as_directory and target.is_dir():
        if any(target.iterdir()):
            raise ToolError("the directory is not empty", where=str(target), advice="name another, or empty it first")
    elif target.exists():
        raise ToolError("the file exists already", where=str(target), advice="name another, or remove it")
    if not target.absolute().parent.is_dir():
        raise ToolError("no such directory", where=str(target.absolute().parent), advice="create it first")


def _locked_temporary(temporary: Path, *, as_directory: bool) -> DiskFileLock:
    """Return the lock of the empty temporary file or directory. Raises ToolError."""
    try:
        for _ in range(_TRIES):
            lock = _try_lock(temporary, as_directory=as_directory)
            if lock is not None:
                return lock
    except OSError as error:
        raise _unwritable(temporary, error) from error
    raise _written_by_another(temporary)


def _try_lock(temporary: Path, *, as_directory: bool) -> DiskFileLock | None:
    """Create the temporary file or directory if it is missing, lock it, empty it, and return the lock.

    Returns None if another export interfered: the caller tries again.
    """
    if not temporary.exists():
        _make(temporary, as_directory=as_directory)
    try:
        lock = DiskStorage().try_lock(str(temporary))
    except FileNotFoundError:
        return None
    if lock is None:
        raise _written_by_another(temporary)
    with ExitStack() as cleanup:
        cleanup.callback(lock.release)
        if not lock.is_at(str(temporary)):
            return None
        if temporary.is_dir() != as_directory:
            _remove(temporary)
            return None
        _empty(temporary)
        cleanup.pop_all()
        return lock


def _make(temporary: Path, *, as_directory: bool) -> None:
    if as_directory:
        temporary.mkdir(exist_ok=True)
    else:
        DiskStorage().open(str(temporary), create=True).close()


def _empty(temporary: Path) -> None:
    """Remove the content that another export has left."""
    if not temporary.is_dir():
        os.truncate(temporary, 0)
        return
    for path in temporary.iterdir():
        _remove(path)


def _written_by_another(temporary: Path) -> ToolError:
    return ToolError("another export is writing to this path", where=str(temporary), advice="wait for it to end")


def _name(temporary: Path, target: Path, *, as_directory: bool) -> None:
    """Rename the temporary backup to its path, and make all names durable."""
    storage = DiskStorage()
    try:
        if as_directory:
            storage.sync_directory(str(temporary))
        temporary.rename(target)
        storage.sync_directory(str(target.absolute().parent))
    except OSError as error:
        raise _unwritable(target, error) from error


def _remove(temporary: Path) -> None:
    if temporary.is_dir():
        shutil.rmtree(temporary, ignore_errors=True)
    else:
        temporary.unlink(missing_ok=True)


def _unwritable(path: Path, error: OSError) -> ToolError:
    return ToolError("the backup cannot be written", where=str(path), found=error.strerror or str(error))
