"""From a finished snapshot file to a snapshot: it gets its file id and its name in the manifest.

    write it under the one temporary name (whoever takes it)      a crash leaves a file that the next start unlinks
    reserve a file id, which puts it on the list `removed`        a crash leaves nothing to do
    rename it, sync the directory                                 a crash leaves a file that the list lets go of
    name it, which takes it off the list                          it is there

Rule 1. Only the housekeeping thread does this, for it alone edits the manifest. Rule 2. The file is synced and the
snapshot's end durable before that: what the manifest names is promised.
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
    """A snapshot that shall be named, and what became of it; handed from thread to thread whole."""

    __slots__ = ("error", "is_done", "snapshot", "source")

    def __init__(self, snapshot: Snapshot, source: str = "") -> None:
        self.source = source
        """Where the file lies; empty: at the temporary path."""
        self.snapshot = snapshot
        """Its file id is given when it is placed; before that it is 0."""
        self.error: OSError | None = None
        """Why it could not be placed: the disk is full, or the file is not there any more."""
        self.is_done = False
        """Set last, whatever became of it."""


def temporary_path(directory: str) -> str:
    """Where a snapshot is written; a log takes one at a time."""
    return f"{snapshots_path(directory)}/snapshot.new"


def place(
    storage: Storage,
    directory: str,
    snapshot: Snapshot,
    commit: Callable[[Callable[[Manifest], Manifest]], Manifest],
    source: str = "",
) -> Snapshot:
    """Give the file at `source`, or at the temporary path, a file id and name it; return the snapshot with that.

    `commit` applies an edit to the manifest and returns it. Raises OSError.
    """
    (*_, file_id) = commit(reserve_file_id).removed
    storage.makedirs(snapshots_path(directory))
    storage.rename(source or temporary_path(directory), snapshot_path(directory, file_id))
    storage.sync_directory(snapshots_path(directory))
    placed = replace(snapshot, file_id=file_id)
    commit(partial(name_snapshot, snapshot=placed))
    return placed


def sweep(storage: Storage, directory: str) -> None:
    """Unlink what was being written when the broker ended."""
    if storage.exists(temporary_path(directory)):
        storage.unlink(temporary_path(directory))
