"""The interface between the log and a disk. Every access to a file goes through it.

There are two implementations: `DiskStorage` (disk.py) and the simulated disk of the tests, which loses unsynced bytes
in every legal way.

Rule 1. Paths are text.
Rule 2. Every method may raise OSError; the caller translates it once.
Rule 3. Written bytes are durable after `datasync` of their file. A created, renamed or unlinked name is durable after
`sync_directory` of its directory.
"""

from collections.abc import Sequence
from typing import Protocol

from ambermq.log.buffer import Buffer

__all__ = ["File", "FileLock", "Lock", "Storage"]


class File(Protocol):
    """One open file. Several threads may call its methods, each on its own ranges."""

    def write(self, buffers: Sequence[Buffer], position: int) -> None:
        """Write all of `buffers`, one after the other, from `position` on. The file grows if needed."""

    def read(self, length: int, position: int) -> bytes:
        """Return `length` bytes, fewer only at the end of the file. May wait for the disk."""

    def read_now(self, length: int, position: int) -> bytes | None:
        """Return `length` bytes without waiting for the disk, or None if that is impossible."""

    def fileno(self) -> int:
        """Return the descriptor, for a sync by the kernel; -1 if the file is simulated."""

    def datasync(self) -> None:
        """Make every byte written before the call durable, the file's size included; return when it is."""

    def sync(self) -> None:
        """Make the bytes and all metadata of the file durable; return when they are."""

    def write_back(self, position: int, length: int, *, wait: bool) -> None:
        """Begin to write a range to the disk; with `wait` return when it is written. This makes nothing durable."""

    def allocate(self, position: int, length: int, *, zero: bool) -> None:
        """Reserve disk space for a range: write zeros, or reserve only. The range reads as zeros either way.

        The range must begin at or after the end of the written bytes. Raises OSError (ENOSPC) if the disk is full.
        """

    def truncate(self, length: int) -> None:
        """Cut the file to `length` bytes and return the space behind them to the disk. The file must not grow."""

    def drop_cache(self, position: int, length: int) -> None:
        """Drop a durable range from the page cache. `length` 0 means to the end of the file."""

    def size(self) -> int:
        """Return the size of the file in bytes."""

    def close(self) -> None:
        """Close the file. This makes nothing durable."""


class Lock(Protocol):
    """The lock of a directory. The kernel releases it when the process ends."""

    def write(self, text: str) -> None:
        """Write the text that another process reads when it cannot get the lock."""

    def release(self) -> None:
        """Release the lock."""


class FileLock(Protocol):
    """An exclusive lock on one file. It excludes readers' locks too, until it is released or the process ends."""

    def release(self) -> None:
        """Release the lock."""


class Storage(Protocol):
    """A disk with directories."""

    def open(self, path: str, *, create: bool = False, direct: bool = False, read_ahead: bool = True) -> File:
        """Return a file opened for reading only. With `create` it is opened for writing too, and a missing one is made.

        So a log can be read on a disk that is mounted read-only. `direct` reads past the page cache if the file system
        can. Without `read_ahead` the kernel reads no more than it is asked for. Raises FileNotFoundError if the file is
        missing and `create` is false.
        """

    def rename(self, source: str, target: str) -> None:
        """Rename a file in one step. An existing `target` is replaced."""

    def link(self, source: str, target: str) -> None:
        """Add a second name to a file. Raises FileExistsError if `target` exists."""

    def unlink(self, path: str) -> None:
        """Remove a file's name."""

    def remove_tree(self, path: str) -> None:
        """Remove a directory and everything in it; a missing one is no error. An interrupted call can be repeated."""

    def listdir(self, path: str) -> list[str]:
        """Return the sorted names in a directory."""

    def makedirs(self, path: str) -> None:
        """Make a directory and its parents. An existing directory is no error; new names are durable on return."""

    def exists(self, path: str) -> bool:
        """Return whether a file or a directory has that path."""

    def size(self, path: str) -> int:
        """Return the size in bytes of a file, open or not."""

    def sync_directory(self, path: str) -> None:
        """Make created, renamed and removed names in the directory durable; return when they are."""

    def lock(self, path: str) -> Lock:
        """Lock without waiting; create the lock file if needed. Raises LockedError with its text if it is locked."""

    def try_lock(self, path: str) -> FileLock | None:
        """Lock a file exclusively without waiting, or return None if another process or a reader has locked it."""

    def free_bytes(self, path: str) -> int:
        """Return the bytes that an unprivileged process can still allocate on the disk of the directory."""

    def total_bytes(self, path: str) -> int:
        """Return the size in bytes of the file system of the directory."""
