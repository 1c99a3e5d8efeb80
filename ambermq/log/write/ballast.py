"""The ballast: disk space that is reserved for settlements, snapshots and recovery, and given up on a full disk.

Rule 1. A data directory has one ballast, which all its logs share. It takes at most a fiftieth of the file system.
Rule 2. Any log may release it, at any time and from any thread. It is allocated again when the disk has room.
"""

import threading
from contextlib import suppress
from typing import Final, final

from ambermq.log.storage.interface import Storage

__all__ = ["Ballast", "ballast_path"]

_FILE_SYSTEM_DIVISOR: Final = 50
_BLOCK_BYTES: Final = 4096
_LEAST_BYTES: Final = 64 * 1024
"""Even on a tiny file system there is room for a new segment's header, a manifest and some settlements."""


def ballast_path(directory: str) -> str:
    """Return the path of the ballast of a data directory."""
    return f"{directory}/ballast"


@final
class Ballast:
    """The ballast of one data directory. Several threads may call its methods."""

    __slots__ = ("_directory", "_is_held", "_lock", "_storage", "size")

    def __init__(self, storage: Storage, directory: str, bytes_max: int) -> None:
        """Reserve nothing yet. With `bytes_max` 0 nothing is ever reserved. Raises OSError."""
        self._storage = storage
        self._directory = directory
        self._lock = threading.Lock()
        share_bytes = storage.total_bytes(directory) // _FILE_SYSTEM_DIVISOR if bytes_max else 0
        self.size = min(bytes_max, max(share_bytes & -_BLOCK_BYTES, _LEAST_BYTES))
        """The bytes of the whole ballast."""
        self._is_held = False

    @property
    def missing_bytes(self) -> int:
        """The bytes that are not reserved yet: publishing leaves them free."""
        return 0 if self._is_held else self.size

    def allocate(self, free_bytes_min: int) -> bool:
        """Allocate the ballast if `free_bytes_min` stay free beside it; return whether it is allocated.

        A larger ballast of an earlier configuration is cut. Raises OSError.
        """
        if self._is_held:
            return True
        with self._lock:
            return self._allocate(free_bytes_min)

    def _allocate(self, free_bytes_min: int) -> bool:
        storage, path = self._storage, ballast_path(self._directory)
        present_bytes = storage.size(path) if storage.exists(path) else 0
        if present_bytes < self.size:
            needed_bytes = self.size - present_bytes + free_bytes_min
            if storage.free_bytes(self._directory) < needed_bytes:
                return False
        if present_bytes != self.size:
            try:
                self._resize(path, present_bytes)
            except OSError:
                # A part of the ballast would take the space that the next start needs.
                with suppress(OSError):
                    storage.unlink(path)
                raise
            storage.sync_directory(self._directory)
        self._is_held = True
        return True

    def _resize(self, path: str, present_bytes: int) -> None:
        file = self._storage.open(path, create=True)
        try:
            if present_bytes > self.size:
                file.truncate(self.size)
            else:
                file.allocate(present_bytes, self.size - present_bytes, zero=False)
            file.sync()
        finally:
            file.close()

    def release(self) -> bool:
        """Delete the ballast, so that settlements can use its space; return whether it existed."""
        with self._lock:
            self._is_held = not self.size
            with suppress(FileNotFoundError):
                self._storage.unlink(ballast_path(self._directory))
                return True
        return False
