"""Files wherever they lie: on this machine's disk, or where fsspec reaches.

    /var/lib/ambermq          the disk, as file:///var/lib/ambermq
    s3://bucket/path?...      fsspec with s3fs; s3_url.py reads the options in the query
    any other scheme://...    fsspec with the package that it names for the scheme

Rule 1. A place is its URL alone, so that it can be handed to other processes; each opens it for itself.
Rule 2. Of remote places history is only read, and exports are written: a broker needs a disk.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from ambermq.log.storage.disk import DiskStorage
from ambermq.tools.dataset.s3_url import S3_SCHEMES, S3Location, s3_location, shown_url
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode

__all__ = ["Place", "ReadableFile", "ReadableStorage", "is_remote", "joined", "os_errors", "place_of"]

_SEPARATOR: Final = "://"
_FOREIGN_ERRORS: Final = frozenset({"aiobotocore", "aiohttp", "botocore"})
"""Packages below s3fs that have error classes of their own."""


class ReadableFile(Protocol):
    """A file that is open for reading."""

    def read(self, length: int, position: int) -> bytes:
        """Read `length` bytes, fewer only at the end of the file."""

    def size(self) -> int:
        """Bytes in the file."""

    def close(self) -> None:
        """Close the file."""


class ReadableStorage(Protocol):
    """What reading a log needs of a disk; see log/storage/interface.py."""

    def open(self, path: str) -> Any:
        """Open a file to read; FileNotFoundError where it is missing."""

    def exists(self, path: str) -> bool:
        """Return whether a file or a directory of that name exists."""

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
    """Of pyarrow, for Parquet; None for the disk. Calls stand in a block of `os_errors`."""
    makes_directories: bool = True
    """Whether a writer makes directories; on S3 that would make a missing bucket."""


def is_remote(url: str) -> bool:
    """Return whether a place is not on this machine's disk."""
    return _SEPARATOR in url and not url.startswith("file://")


def joined(url: str, below: str) -> str:
    """Return the URL of what lies below a place; options in its query stay."""
    path, mark, query = url.partition("?") if is_remote(url) else (url, "", "")
    return f"{path.rstrip('/')}/{below}{mark}{query}"


def place_of(url: str) -> Place:
    """Open the directory that a path or URL names; ToolError if no installed file system reaches it."""
    if not is_remote(url):
        return Place(DiskStorage(), str(Path(url.removeprefix("file://")).absolute()), None)
    try:
        return _remote_place(url)
    except ToolError:
        raise
    except ImportError as error:
        raise _not_installed(url, error) from error
    except Exception as error:
        raise ToolError(
            "no file system reaches this place",
            where=shown_url(url),
            found=str(error),
            advice="check the URL",
            code=ExitCode.USAGE,
        ) from error


def _remote_place(url: str) -> Place:
    from fsspec.core import url_to_fs  # noqa: PLC0415 - of the extra `spark`; only a remote place needs it
    from pyarrow.fs import FSSpecHandler, PyFileSystem  # noqa: PLC0415

    is_s3 = url.startswith(S3_SCHEMES)
    location = s3_location(url) if is_s3 else S3Location(url, {}, makes_directories=True)
    filesystem, path = url_to_fs(location.url, **location.arguments)
    # A file system object is shared by all places of its kind. Another process may write what it would not list.
    filesystem.invalidate_cache()
    return Place(
        _RemoteStorage(filesystem),
        str(path).rstrip("/"),
        PyFileSystem(FSSpecHandler(filesystem)),
        makes_directories=location.makes_directories,
    )


def _not_installed(url: str, error: ImportError) -> ToolError:
    is_extra = error.name in {"fsspec", "pyarrow", "pyarrow.fs", "fsspec.core"} or url.startswith(S3_SCHEMES)
    return ToolError(
        "a package that reaches this place is not installed",
        where=shown_url(url),
        found=str(error),
        advice="run `pip install 'ambermq[spark]'`" if is_extra else "install the package of fsspec for this scheme",
        code=ExitCode.NOT_INSTALLED,
    )


@contextmanager
def os_errors() -> Iterator[None]:
    """Raise OSError for errors of S3's libraries, which are none, in a block that uses Place.filesystem."""
    try:
        yield
    except Exception as error:
        if type(error).__module__.partition(".")[0] in _FOREIGN_ERRORS:
            raise OSError(str(error)) from error
        raise


class _RemoteFile:
    """One file of an fsspec file system. Each read asks for its bytes alone: nothing is read ahead."""

    __slots__ = ("_filesystem", "_path", "_size")

    def __init__(self, filesystem: Any, path: str, size: int) -> None:
        self._filesystem = filesystem
        self._path = path
        self._size = size

    def read(self, length: int, position: int) -> bytes:
        """See ReadableFile."""
        end = min(position + length, self._size)
        if end <= position:
            return b""
        with os_errors():
            return bytes(self._filesystem.cat_file(self._path, start=position, end=end))

    def size(self) -> int:
        """See ReadableFile."""
        return self._size

    def close(self) -> None:
        """See ReadableFile."""


class _RemoteStorage:
    """The reading half of a storage over an fsspec file system."""

    __slots__ = ("_filesystem",)

    def __init__(self, filesystem: Any) -> None:
        self._filesystem = filesystem

    def open(self, path: str) -> _RemoteFile:
        """See ReadableStorage."""
        return _RemoteFile(self._filesystem, path, self.size(path))

    def exists(self, path: str) -> bool:
        """See ReadableStorage."""
        # The method `exists` of some file systems takes a lost connection for a missing file; `info` raises it.
        try:
            with os_errors():
                self._filesystem.info(path)
        except FileNotFoundError:
            return False
        return True

    def listdir(self, path: str) -> list[str]:
        """See ReadableStorage."""
        with os_errors():
            found = [one.rstrip("/") for one in self._filesystem.ls(path, detail=False)]
        # S3 lists the object that marks a directory as if it were in it.
        return sorted(one.rpartition("/")[2] for one in found if one != path)

    def size(self, path: str) -> int:
        """See ReadableStorage."""
        with os_errors():
            return int(self._filesystem.info(path)["size"] or 0)
