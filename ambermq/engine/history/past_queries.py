"""Queries of the past of a running broker's log, answered on other threads than its loop.

Rule 1. The loop opens no file for them: a job opens the past, finds the answer, and closes the past.
Rule 2. The past ends at the durable end of the loop, which is at or after the durable end in the files.
Rule 3. A fold rests at intervals, and ends if its job was dropped.
"""

import time
from collections.abc import Callable
from typing import Any, Final, final

from ambermq.engine.errors import EngineError
from ambermq.engine.history.background_jobs import BackgroundJob, BackgroundJobs
from ambermq.engine.history.past import Past, PastError, PastKind
from ambermq.engine.model.queue import Queue
from ambermq.log.config import LogConfig
from ambermq.log.errors import LogError
from ambermq.log.read.log_reader import open_reader

__all__ = ["PastQueries"]

_REST_OFFSETS: Final = 512


@final
class PastQueries:
    """The queries of the log in one directory, and their job queue.

    A moment is an `offset`, or a `time_us` if that is None. A job fails with PastError if the log does not answer for
    the moment, and with another EngineError if the log cannot be read. A method returns None if the job queue is full.
    """

    def __init__(self, directory: str, config: LogConfig, jobs: BackgroundJobs) -> None:
        self._directory = directory
        self._config = config
        self._jobs = jobs

    def queue(
        self, key: Any, name: str, *, offset: int | None, time_us: int | None, durable_end: int
    ) -> BackgroundJob | None:
        """Begin a query of the queue `name` at a moment; the value of the job is None if there was no such queue."""

        def find(past: Past, job: BackgroundJob) -> Queue | None:
            at = past.offset_at(time_us or 0) if offset is None else offset
            return past.state_at(at, lambda *_: job.rest(), progress_offsets=_REST_OFFSETS).queue_named(name)

        return self._submit(key, find, durable_end)

    def log_start(self, key: Any, *, offset: int | None, time_us: int | None, durable_end: int) -> BackgroundJob | None:
        """Begin a query of the offset of the first event at or after a moment."""

        def find(past: Past, _job: BackgroundJob) -> int:
            return _checked_start(past, offset) if offset is not None else _first_since(past, time_us or 0)

        return self._submit(key, find, durable_end)

    def _submit(self, key: Any, find: Callable[[Past, BackgroundJob], Any], durable_end: int) -> BackgroundJob | None:
        def run(job: BackgroundJob) -> Any:
            try:
                with self._open(durable_end) as past:
                    return find(past, job)
            except (LogError, OSError) as error:
                raise EngineError(f"the log cannot be read: {error}") from error

        job = BackgroundJob(key, run)
        return job if self._jobs.submit(job) else None

    def _open(self, durable_end: int) -> Past:
        reader = open_reader(self._directory, self._config)
        found = reader.survey
        found.durable_end = max(found.durable_end, min(durable_end, found.valid_end))
        return Past(reader, now_us=time.time_ns() // 1000)


def _checked_start(past: Past, offset: int) -> int:
    """Return the offset if the log can be read from there; the end of the log is valid too. Raises PastError."""
    if offset != past.end:
        past.events(offset, offset)
    return offset


def _first_since(past: Past, time_us: int) -> int:
    """Return the offset of the first event at or after a time."""
    try:
        before = past.offset_at(time_us - 1)
    except PastError as error:
        if error.kind is PastKind.BEFORE_HORIZON and not past.horizon.offset:
            return 0
        raise
    return before + 1
