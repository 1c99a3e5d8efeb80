"""The placement of a finished snapshot file: it gets a file id and is named in the manifest.

    1. the snapshot is written under the one temporary name       after a crash, the next start unlinks the file
    2. a file id is reserved, which puts it on the list `removed` after a crash, nothing is left
    3. the file is renamed and the directory synced               after a crash, the list `removed` deletes the file
    4. the manifest names it, which removes it from the list      the snapshot exists

Rule 1. Only the housekeeping thread places a snapshot, because only it edits the manifest.
Rule 2. The file is synced and the snapshot's end is durable before: a named snapshot survives any crash.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from ambermq.log.manifest.manifest import (
    Manifest,
    Snapshot,
    name_snapshot,
    reserve_file_id,
    snapshot_path,
    snapshots_path,
)
from ambermq.log.storage.interface import Storage

__all__ = ["Placement", "place", "sweep", "temporary_path"]


class Placement:
    """A request to name a snapshot, and its result. Threads pass it to each other as a whole."""

    __slots__ = ("error", "is_done", "snapshot", "source")

    def __init__(self, snapshot: Snapshot, source: str = "") -> None:
        self.source = source
        """The path of the file. Empty means the temporary path."""
        self.snapshot = snapshot
        """The snapshot. Its file id is 0 until it is placed."""
        self.error: OSError | None = None
        """Why the placement failed: the disk is full, or the file is missing."""
        self.is_done = False
        """Whether the placement has ended, with success or not. It is set last."""


def temporary_path(directory: str) -> str:
    """Return the path at which a snapshot is written. A log takes one snapshot at a time."""
    return f"{snapshots_path(directory)}/snapshot.new"


def place(
    storage: Storage,
    directory: str,
    snapshot: Snapshot,
    commit: Callable[[Callable[[Manifest], Manifest]], Manifest],
    source: str = "",
) -> Snapshot:
    """Assign a file id to the file at `source` or the temporary path, name it, and return its snapshot.

    `commit` applies an edit to the manifest and returns the new manifest. Raises OSError.
    """
    (*_, file_id) = commit(reserve_file_id).removed
    storage.makedirs(snapshots_path(directory))
    storage.rename(source or temporary_path(directory), snapshot_path(directory, file_id))
    storage.sync_directory(snapshots_path(directory))
    placed = replace(snapshot, file_id=file_id)
    commit(partial(name_snapshot, snapshot=placed))
    return placed


def sweep(storage: Storage, directory: str) -> None:
    """Unlink the unfinished snapshot of an earlier process, if any."""
    if storage.exists(temporary_path(directory)):
        storage.unlink(temporary_path(directory))
