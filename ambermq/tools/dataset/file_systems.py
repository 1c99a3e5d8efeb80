"""Files wherever they lie: on this machine's disk, or where pyarrow's file systems or fsspec reach.

    /var/lib/ambermq          the disk
    s3://bucket/path?...      pyarrow.fs, whose options stand in the query
    any other scheme://...    pyarrow.fs, else fsspec

Rule 1. A place is its URL alone, so that it can be handed to other processes; each opens it for itself.
Rule 2. Of remote places history is only read, and exports are written: a broker needs a disk.
"""

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from ambermq.log.storage.disk import DiskStorage
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode

__all__ = ["Place", "ReadableFile", "ReadableStorage", "is_remote", "joined", "place_of"]

_SEPARATOR: Final = "://"


class ReadableFile(Protocol):
    """A file that is open for reading."""

    def read(self, length: int, position: int) -> bytes:
        """Read `length` bytes, fewer only at the end of the file."""

    def size(self) -> int:
        """Bytes in the file."""

    def close(self) -> None:
        """Give the file back."""


class ReadableStorage(Protocol):
    """What reading a log needs of a disk; see log/storage/interface.py."""

    def open(self, path: str) -> Any:
        """Open a file to read; FileNotFoundError where it is missing."""

    def exists(self, path: str) -> bool:
        """Tell whether there is a file or a directory of that name."""

    def listdir(self, path: str) -> list[str]:
        """List the names in a directory, sorted."""

    def size(self, path: str) -> int:
        """Bytes in a file."""


@dataclass(frozen=True, slots=True)
class Place:
    """A directory, opened."""

    storage: Any
    """ReadableStorage, or the disk."""
    path: str
    """Of the directory, as the storage and the file system have it."""
    filesystem: Any
    """Of pyarrow, for Parquet; None for the disk."""


def is_remote(url: str) -> bool:
    """Tell whether a place is elsewhere than on this machine's disk."""
    return _SEPARATOR in url and not url.startswith("file://")


def joined(url: str, below: str) -> str:
    """Return the URL of what lies below a place; options in its query stay."""
    path, mark, query = url.partition("?") if is_remote(url) else (url, "", "")
    return f"{path.rstrip('/')}/{below}{mark}{query}"


def place_of(url: str) -> Place:
    """Open the directory that a path or URL names; ToolError where nothing reaches it."""
    if not is_remote(url):
        return Place(DiskStorage(), str(Path(url.removeprefix("file://")).absolute()), None)
    from pyarrow import fs  # noqa: PLC0415 - a tenth of a second that only remote places need

    try:
        filesystem, path = fs.FileSystem.from_uri(url)
    except Exception:  # noqa: BLE001 - which schemes there are is known by trying
        filesystem, path = _by_fsspec(url)
    return Place(_RemoteStorage(filesystem), path.rstrip("/"), filesystem)


def _by_fsspec(url: str) -> tuple[Any, str]:
    try:
        from fsspec.core import url_to_fs  # noqa: PLC0415 - need not be installed
        from pyarrow.fs import FSSpecHandler, PyFileSystem  # noqa: PLC0415

        filesystem, path = url_to_fs(url)
        return PyFileSystem(FSSpecHandler(filesystem)), str(path)
    except Exception as error:
        raise ToolError(
            "no file system reaches this place",
            where=url,
            found=str(error),
            advice="check the URL; schemes beyond those of pyarrow need fsspec and its package for them",
            code=ExitCode.USAGE,
        ) from error


class _RemoteFile:
    """One open file of a pyarrow file system."""

    __slots__ = ("_file", "_size")

    def __init__(self, file: Any) -> None:
        self._file = file
        self._size = int(file.size())

    def read(self, length: int, position: int) -> bytes:
        """See ReadableFile."""
        length = min(length, self._size - position)
        return bytes(self._file.read_at(length, position)) if length > 0 else b""

    def size(self) -> int:
        """See ReadableFile."""
        return self._size

    def close(self) -> None:
        """See ReadableFile."""
        self._file.close()


class _RemoteStorage:
    """The reading half of a storage over a pyarrow file system."""

    __slots__ = ("_filesystem",)

    def __init__(self, filesystem: Any) -> None:
        self._filesystem = filesystem

    def open(self, path: str) -> _RemoteFile:
        """See ReadableStorage."""
        return _RemoteFile(self._filesystem.open_input_file(path))

    def exists(self, path: str) -> bool:
        """See ReadableStorage."""
        return bool(self._found(path).type.value)

    def listdir(self, path: str) -> list[str]:
        """See ReadableStorage."""
        from pyarrow.fs import FileSelector  # noqa: PLC0415 - as in place_of

        try:
            found = self._filesystem.get_file_info(FileSelector(path))
        except io.UnsupportedOperation as error:  # pragma: no cover - a file system that cannot list
            raise OSError(str(error)) from error
        return sorted(one.base_name for one in found)

    def size(self, path: str) -> int:
        """See ReadableStorage."""
        return int(self._found(path).size or 0)

    def _found(self, path: str) -> Any:
        return self._filesystem.get_file_info(path)
