"""The seam between the log and a disk; everything that touches files goes through it.

There are two of it: `DiskStorage` (disk.py) and the simulated disk of the tests, which forgets what was not synced in
every legal way. Rules: paths are text; every method may raise OSError, which the caller translates once; what was
written is durable after `datasync` of its file, what was created, renamed or unlinked after `sync_directory` of its
directory.
"""

from collections.abc import Sequence
from typing import Protocol

from ambermq.log.buffer import Buffer

__all__ = ["File", "Hold", "Lock", "Storage"]


class File(Protocol):
    """One open file. Its methods may be called by several threads, each on ranges of its own."""

    def write(self, buffers: Sequence[Buffer], position: int) -> None:
        """Write all of `buffers`, one after the other, from `position` on; the file grows where it must."""

    def read(self, length: int, position: int) -> bytes:
        """Read `length` bytes, fewer only at the end of the file. May wait for the disk."""

    def read_now(self, length: int, position: int) -> bytes | None:
        """Read `length` bytes without waiting for the disk; None where that cannot be done."""

    def fileno(self) -> int:
        """Return the descriptor, for the kernel's own sync; -1 where there is no kernel behind the file."""

    def datasync(self) -> None:
        """Return when all that was written before the call is durable, the file's size included."""

    def sync(self) -> None:
        """As `datasync`, and all of the file's metadata too."""

    def allocate(self, position: int, length: int, *, zero: bool) -> None:
        """Take disk space for a range: by writing zeros, or by promise alone; it reads as zeros either way.

        The range must lie at or beyond what was written. Raises OSError (ENOSPC) where there is no room.
        """

    def drop_cache(self, position: int, length: int) -> None:
        """Let the page cache forget a range that is durable; `length` 0 is to the end."""

    def size(self) -> int:
        """Bytes in the file."""

    def close(self) -> None:
        """Give the file back; says nothing about durability."""


class Lock(Protocol):
    """A held lock. It ends with the process, however that ends."""

    def write(self, text: str) -> None:
        """Say who holds it, for those who find it held."""

    def release(self) -> None:
        """Give it back."""


class Hold(Protocol):
    """A file that nobody else has locked, not even to read, until this is released or the process ends."""

    def release(self) -> None:
        """Give it back."""


class Storage(Protocol):
    """A disk with directories."""

    def open(self, path: str, *, create: bool = False, direct: bool = False) -> File:
        """Open to read and write. `create` makes it when missing.

        `direct` reads past the page cache where the disk can. Raises FileNotFoundError where it is missing and is
        not to be created.
        """

    def rename(self, source: str, target: str) -> None:
        """Rename in one step, over `target` where it exists."""

    def link(self, source: str, target: str) -> None:
        """Give a file a second name. Raises FileExistsError where `target` is there already."""

    def unlink(self, path: str) -> None:
        """Remove a file's name."""

    def remove_tree(self, path: str) -> None:
        """Remove a directory with all that is in it; no error where it is missing. Cut short, it can be done again."""

    def listdir(self, path: str) -> list[str]:
        """List the names in a directory, sorted."""

    def makedirs(self, path: str) -> None:
        """Make a directory and those above it; no error where it exists. New names are durable on return."""

    def exists(self, path: str) -> bool:
        """Tell whether there is a file or a directory of that name."""

    def size(self, path: str) -> int:
        """Bytes in a file that need not be open."""

    def sync_directory(self, path: str) -> None:
        """Return when names created, renamed and removed in the directory are durable."""

    def lock(self, path: str) -> Lock:
        """Take the lock without waiting, creating its file. Raises LockedError with its text where another holds it."""

    def hold(self, path: str) -> Hold | None:
        """Hold a file for oneself without waiting; None where a reader has locked it, or somebody holds it."""

    def free_bytes(self, path: str) -> int:
        """Bytes that an ordinary process can still allocate on the disk that holds the directory."""
