r"""The result of a compaction job: a table of new segments in the job's directory, which the log adopts.

    DIR/jobs/lock            locked by the running job; only one job runs
    DIR/jobs/<job>/          the files of a job: its new segments, and at the end
    DIR/jobs/<job>/TABLE     JSON over several lines, then the line "crc32c XXXXXXXX\n"

Rule 1. The process that has the lock may delete the directories of other jobs, because those jobs are dead. No other
process deletes anything there.
Rule 2. A name in the table is that of a file in the job's directory. A name that leads out of it is refused.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

from ambermq.log.compaction.rewrite_tasks import RewrittenSegment
from ambermq.log.errors import ForeignError, LockedError
from ambermq.log.format.crc_document import json_with_crc_line, read_document
from ambermq.log.manifest.manifest import Horizon
from ambermq.log.storage.interface import Lock, Storage

__all__ = [
    "CompactionJob",
    "base_path",
    "job_path",
    "jobs_path",
    "lock_jobs",
    "read_table",
    "sweep_jobs",
    "write_table",
]

_VERSION: Final = 1
_NAME: Final = re.compile(r"[0-9a-z][0-9a-z.-]{0,120}\Z")
_LOCK_NAME: Final = "lock"
_TABLE_NAME: Final = "TABLE"


@dataclass(frozen=True, slots=True)
class CompactionJob:
    """One compaction that is ready to be committed."""

    version: int
    """The version of the table."""
    log_id: str
    """The log's id as hex digits."""
    horizon: Horizon
    """The new start of history: the end of a snapshot."""
    inputs: tuple[int, ...]
    """File ids of the segments to replace."""
    segments: tuple[RewrittenSegment, ...]
    """The new segments, which cover the same offsets."""
    records_before: int
    """The number of records in the inputs."""
    records_after: int
    """The number of records in the new segments."""
    archive: tuple[str, ...] = ()
    """Files with the events that the compaction removes."""


def jobs_path(directory: str) -> str:
    """Return the directory of the jobs of a log. It is missing if no job ever ran."""
    return f"{directory}/jobs"


def job_path(directory: str, job: str) -> str:
    """Return the directory of one job. Raises ForeignError if `job` is not a job's name."""
    return f"{jobs_path(directory)}/{_check_name(job, 'a job')}"


def base_path(directory: str, job: str) -> str:
    """Return the path at which a job writes the snapshot at the new horizon, if the log has none there."""
    return f"{job_path(directory, job)}/base.snapshot"


@contextmanager
def lock_jobs(storage: Storage, directory: str, holder: str) -> Iterator[Lock]:
    """Lock the directory of jobs and write `holder` into the lock file.

    Raises LockedError, with the text of the other process, if another job runs.
    """
    storage.makedirs(jobs_path(directory))
    lock = storage.lock(f"{jobs_path(directory)}/{_LOCK_NAME}")
    try:
        lock.write(holder)
        yield lock
    finally:
        lock.release()


def sweep_jobs(storage: Storage, directory: str, *, is_locked: bool = False) -> list[str]:
    """Remove the directories of dead jobs and return their names; return none if a job runs.

    `is_locked` says that the caller has the lock and that none of the directories is its own.
    """
    if not storage.exists(jobs_path(directory)):
        return []
    if is_locked:
        return _sweep(storage, directory)
    with suppress(LockedError), lock_jobs(storage, directory, ""):
        return _sweep(storage, directory)
    return []


def _sweep(storage: Storage, directory: str) -> list[str]:
    jobs = [name for name in storage.listdir(jobs_path(directory)) if name != _LOCK_NAME]
    for name in jobs:
        storage.remove_tree(f"{jobs_path(directory)}/{name}")
    return jobs


def write_table(storage: Storage, directory: str, job: str, table: CompactionJob) -> None:
    """Write the table of a job and sync it."""
    file = storage.open(f"{job_path(directory, job)}/{_TABLE_NAME}", create=True)
    try:
        file.write([json_with_crc_line(table)], 0)
        file.sync()
    finally:
        file.close()


def read_table(storage: Storage, directory: str, job: str) -> CompactionJob:
    """Return the table of a job. Raises DamageError, ForeignError for an unknown version or name, and OSError."""
    path = f"{job_path(directory, job)}/{_TABLE_NAME}"
    file = storage.open(path)
    try:
        text = file.read(file.size(), 0)
    finally:
        file.close()
    table = read_document(text, CompactionJob, file=path, what="job", version=_VERSION)
    for segment in table.segments:
        _check_name(segment.name, "a new segment")
    return table


def _check_name(name: str, what: str) -> str:
    if not _NAME.match(name) or name == _LOCK_NAME:
        raise ForeignError(f"{name!r:.140} is not the name of {what}: expected digits, small letters, '.' and '-'")
    return name
