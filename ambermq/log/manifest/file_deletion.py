"""The deletion of files on the manifest's list `removed`.

Rule 1. A file that a reader's manifest names stays until the reader has finished (generation_pins.py).
Rule 2. A file that cannot be deleted (no permission, a read-only directory, a busy mount) costs only disk space. It
stays on the list, and every run tries it again. One fault is reported until a run succeeds.
Rule 3. A missing file counts as deleted. Any other failure is a disk error and goes to the caller.
Rule 4. An id leaves the list only after its files are deleted durably, so the directory is synced first.
"""

import errno
from collections import deque
from contextlib import suppress
from typing import Final

from ambermq.log.format.segment import index_path, segment_path
from ambermq.log.manifest.generation_pins import GenerationPins
from ambermq.log.manifest.manifest import segments_path, snapshot_path, snapshots_path
from ambermq.log.storage.interface import Storage

__all__ = ["FileDeletion"]

_REFUSALS: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS, errno.EBUSY, errno.EISDIR, errno.ENOENT})


class FileDeletion:
    """Deletes files of one log. The housekeeping thread calls `delete`; another thread empties `faults`."""

    __slots__ = ("_directory", "_is_fault_reported", "_pins", "_storage", "faults")

    def __init__(self, storage: Storage, directory: str) -> None:
        self.faults: deque[str] = deque()
        """Reports about files that could not be deleted. Few, because a fault is reported once."""
        self._storage = storage
        self._directory = directory
        self._pins = GenerationPins(storage, directory)
        self._is_fault_reported = False

    def delete(self, file_ids: frozenset[int]) -> frozenset[int]:
        """Delete the files of these ids that no reader uses; return the ids whose files are deleted durably.

        Raises OSError if the disk fails in another way than a refusal.
        """
        refusals: list[OSError] = []
        deleted: set[int] = set()
        try:
            for file_id in sorted(file_ids - self._pins.sweep()):
                if self._unlink(file_id, refusals):
                    deleted.add(file_id)
            if deleted:
                self._sync()
        except OSError as error:
            if error.errno not in _REFUSALS:
                raise
            refusals.append(error)
            deleted.clear()
        self._report(refusals)
        return frozenset(deleted)

    def _unlink(self, file_id: int, refusals: list[OSError]) -> bool:
        """Unlink all files of an id. Return whether that succeeded; append the error to `refusals` if not."""
        try:
            for path_of in (segment_path, index_path, snapshot_path):
                with suppress(FileNotFoundError):
                    self._storage.unlink(path_of(self._directory, file_id))
        except OSError as error:
            if error.errno not in _REFUSALS:
                raise
            refusals.append(error)
            return False
        return True

    def _sync(self) -> None:
        for path in (segments_path(self._directory), snapshots_path(self._directory)):
            if self._storage.exists(path):
                self._storage.sync_directory(path)

    def _report(self, refusals: list[OSError]) -> None:
        if refusals and not self._is_fault_reported:
            self.faults.append(f"deletion of unneeded files failed; the broker tries again: {refusals[0]}")
        self._is_fault_reported = bool(refusals)
