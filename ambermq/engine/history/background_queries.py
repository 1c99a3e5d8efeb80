"""Queries that run on other threads than the loop: queries of the past, and reads of pieces of the log.

    past.queue(...)  past.log_start(...)  read(...)     begin a query and return its job
    fileno()                                            readable when completed() has jobs to return
    completed()                                         the jobs that have ended

Rule: queries of the past have a job queue of their own. A fold can take seconds; a piece is read in milliseconds.
"""

from collections.abc import Callable
from typing import Any, Final, final

from ambermq.engine.history.background_jobs import BackgroundJob, BackgroundJobs
from ambermq.engine.history.past_queries import PastQueries
from ambermq.log.config import LogConfig
from ambermq.log.storage.worker_threads import Workers

__all__ = ["BackgroundQueries"]

_PIECES_MAX: Final = 1 << 20
"""More than the maximum number of links."""


@final
class BackgroundQueries:
    """The worker threads of one engine, its lanes. Only the thread of the loop calls the methods."""

    def __init__(
        self, workers: Workers, directory: str, config: LogConfig, *, past_jobs_max: int, past_waiting_max: int
    ) -> None:
        """Own `workers`, and close them at the end; the log is in `directory`."""
        self._workers = workers
        self._past = BackgroundJobs(workers, "ambermq-past", lanes_max=past_jobs_max, waiting_max=past_waiting_max)
        self._pieces = BackgroundJobs(workers, "ambermq-replay", lanes_max=1, waiting_max=_PIECES_MAX)
        self.past = PastQueries(directory, config, self._past)
        """Queries of past moments."""

    def read(self, key: Any, run: Callable[[BackgroundJob], Any]) -> BackgroundJob:
        """Begin a job in which `run` reads a piece of the log.

        Each link asks for one piece at a time, so the number of links bounds the job queue.
        """
        job = BackgroundJob(key, run)
        is_accepted = self._pieces.submit(job)
        assert is_accepted
        return job

    def drop(self, job: BackgroundJob) -> None:
        """Drop a job: its result is discarded."""
        self._past.drop(job)
        self._pieces.drop(job)

    def fileno(self) -> int:
        """Return the descriptor that is readable when `completed` has jobs to return."""
        return self._workers.fileno()

    def completed(self) -> list[BackgroundJob]:
        """Return the jobs that have ended and were not dropped."""
        self._workers.collect()
        return self._past.take_ended() + self._pieces.take_ended()

    def close(self) -> None:
        """Drop all jobs, and wait until those that run have ended."""
        self._past.drop_all()
        self._pieces.drop_all()
        self._workers.close()
