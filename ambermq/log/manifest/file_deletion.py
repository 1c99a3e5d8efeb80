"""Deleting the files that the manifest lets go of.

Rule 1. What a reader's manifest names stays until it is let go of (pins.py).
Rule 2. A file that may not be deleted (no permission, a directory that became read-only, a mount that is busy) costs
room and nothing else: it stays on the list, every run tries it again, and it is told once until all went well again.
Rule 3. One that is gone already is deleted. Any other failure is the disk's, and the caller's.
Rule 4. An id leaves the list only when its files are gone for good, so a directory is synced before.
"""

import errno
from collections import deque
from contextlib import suppress
from typing import Final

from ambermq.log.format.segment import index_path, segment_path
from ambermq.log.manifest.manifest import segments_path, snapshot_path, snapshots_path
from ambermq.log.manifest.pinned_generations import PinnedGenerations
from ambermq.log.storage.interface import Storage

__all__ = ["FileDeletion"]

_REFUSALS: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS, errno.EBUSY, errno.EISDIR, errno.ENOENT})


class FileDeletion:
    """Deletes the files of one log; its thread calls `delete`, `faults` is taken from by another."""

    __slots__ = ("_directory", "_is_told", "_pins", "_storage", "faults")

    def __init__(self, storage: Storage, directory: str) -> None:
        self.faults: deque[str] = deque()
        """What could not be deleted, for a person; bounded, since it is told once."""
        self._storage = storage
        self._directory = directory
        self._pins = PinnedGenerations(storage, directory)
        self._is_told = False

    def delete(self, file_ids: frozenset[int]) -> frozenset[int]:
        """Delete the files of these ids that nobody reads; return the ids that are gone for good.

        Raises OSError where the disk fails other than by a refusal.
        """
        refused: list[OSError] = []
        gone: set[int] = set()
        try:
            for file_id in sorted(file_ids - self._pins.sweep()):
                if self._unlink(file_id, refused):
                    gone.add(file_id)
            if gone:
                self._sync()
        except OSError as error:
            if error.errno not in _REFUSALS:
                raise
            refused.append(error)
            gone.clear()
        self._tell(refused)
        return frozenset(gone)

    def _unlink(self, file_id: int, refused: list[OSError]) -> bool:
        """Unlink whatever files an id has; tell whether that went well, else say why not."""
        try:
            for path_of in (segment_path, index_path, snapshot_path):
                with suppress(FileNotFoundError):
                    self._storage.unlink(path_of(self._directory, file_id))
        except OSError as error:
            if error.errno not in _REFUSALS:
                raise
            refused.append(error)
            return False
        return True

    def _sync(self) -> None:
        for path in (segments_path(self._directory), snapshots_path(self._directory)):
            if self._storage.exists(path):
                self._storage.sync_directory(path)

    def _tell(self, refused: list[OSError]) -> None:
        if refused and not self._is_told:
            self.faults.append(f"files that are not needed any more stay, and are tried again: {refused[0]}")
        self._is_told = bool(refused)
