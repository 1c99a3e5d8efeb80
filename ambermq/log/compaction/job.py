r"""What a compaction asks the log to take over: a table of new segments that lie in the job's directory.

    DIR/jobs/lock            held by the one job that runs
    DIR/jobs/<job>/          what it writes: new segment files, and last
    DIR/jobs/<job>/TABLE     JSON over several lines, then the line "crc32c XXXXXXXX\n"

Rule 1. Whoever has the lock may sweep the directories of other jobs: they are dead. Nobody else deletes anything there.
Rule 2. Names are those of files in the job's directory, and nothing more: what leads out of it is refused.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

from ambermq.log.compaction.rewrite_tasks import Rewritten
from ambermq.log.errors import ForeignError, LockedError
from ambermq.log.format.checked_document import json_with_crc_line, read_document
from ambermq.log.manifest.manifest import Horizon
from ambermq.log.storage.interface import Lock, Storage

__all__ = [
    "CompactionJob",
    "base_path",
    "job_path",
    "jobs_path",
    "lock_jobs",
    "read_proposal",
    "sweep_jobs",
    "write_proposal",
]

_VERSION: Final = 1
_NAME: Final = re.compile(r"[0-9a-z][0-9a-z.-]{0,120}\Z")
_LOCK_NAME: Final = "lock"
_TABLE_NAME: Final = "TABLE"


@dataclass(frozen=True, slots=True)
class CompactionJob:
    """One compaction, ready to be committed."""

    version: int
    """Of this table."""
    log_id: str
    """The log's id, as hex digits."""
    horizon: Horizon
    """Where history shall begin: the end of a snapshot."""
    inputs: tuple[int, ...]
    """File ids of the segments that go."""
    segments: tuple[Rewritten, ...]
    """The new ones, which answer for the same offsets."""
    records_before: int
    """Records in the inputs."""
    records_after: int
    """Records in the new segments."""
    archive: tuple[str, ...] = ()
    """Files that hold the events which go."""


def jobs_path(directory: str) -> str:
    """Return the directory of the jobs of a log; it is missing where none ever ran."""
    return f"{directory}/jobs"


def job_path(directory: str, job: str) -> str:
    """Return the directory of one job. Raises ForeignError where `job` is no such name."""
    return f"{jobs_path(directory)}/{_checked(job, 'a job')}"


def base_path(directory: str, job: str) -> str:
    """Return where a job writes the snapshot that history shall begin with, where there is none."""
    return f"{job_path(directory, job)}/base.snapshot"


@contextmanager
def lock_jobs(storage: Storage, directory: str, holder: str) -> Iterator[Lock]:
    """Hold the lock of the one job that may run. Raises LockedError, with what `holder` the other one has said."""
    storage.makedirs(jobs_path(directory))
    lock = storage.lock(f"{jobs_path(directory)}/{_LOCK_NAME}")
    try:
        lock.write(holder)
        yield lock
    finally:
        lock.release()


def sweep_jobs(storage: Storage, directory: str, *, is_locked: bool = False) -> list[str]:
    """Remove the directories of dead jobs and return their names; none where a job runs.

    `is_locked` where the caller has the lock, and none of the directories is its own.
    """
    if not storage.exists(jobs_path(directory)):
        return []
    if is_locked:
        return _sweep(storage, directory)
    with suppress(LockedError), lock_jobs(storage, directory, ""):
        return _sweep(storage, directory)
    return []


def _sweep(storage: Storage, directory: str) -> list[str]:
    dead = [name for name in storage.listdir(jobs_path(directory)) if name != _LOCK_NAME]
    for name in dead:
        storage.remove_tree(f"{jobs_path(directory)}/{name}")
    return dead


def write_proposal(storage: Storage, directory: str, job: str, proposal: CompactionJob) -> None:
    """Write the table of a job, synced."""
    file = storage.open(f"{job_path(directory, job)}/{_TABLE_NAME}", create=True)
    try:
        file.write([json_with_crc_line(proposal)], 0)
        file.sync()
    finally:
        file.close()


def read_proposal(storage: Storage, directory: str, job: str) -> CompactionJob:
    """Return the table of a job. Raises DamageError, ForeignError where it is none of ours, and OSError."""
    path = f"{job_path(directory, job)}/{_TABLE_NAME}"
    file = storage.open(path)
    try:
        text = file.read(file.size(), 0)
    finally:
        file.close()
    proposal = read_document(text, CompactionJob, file=path, what="job", version=_VERSION)
    for segment in proposal.segments:
        _checked(segment.name, "a new segment")
    return proposal


def _checked(name: str, what: str) -> str:
    if not _NAME.match(name) or name == _LOCK_NAME:
        raise ForeignError(f"{name!r:.140} is no name of {what}: expected digits, small letters, '.' and '-'")
    return name
