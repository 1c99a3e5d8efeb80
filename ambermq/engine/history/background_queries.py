"""What is answered beside the loop: questions about the past, and pieces of the log read again.

    past.queue(...)  past.log_start(...)  read(...)     begin, and return the job
    fileno()                                            readable when completed() has something to take
    completed()                                         the jobs that have ended

Rule: who asks for the past has a line of its own, for folding a log may take seconds and a piece of it is there in
milliseconds.
"""

from collections.abc import Callable
from typing import Any, Final, final

from ambermq.engine.history.background_jobs import BackgroundJob, BackgroundJobs
from ambermq.engine.history.past_queries import PastQueries
from ambermq.log.config import LogConfig
from ambermq.log.storage.worker_threads import Workers

__all__ = ["BackgroundQueries"]

_PIECES_MAX: Final = 1 << 20
"""More than there can be links."""


@final
class BackgroundQueries:
    """The lanes beside one engine's loop; the loop's thread calls everything here."""

    def __init__(
        self, workers: Workers, directory: str, config: LogConfig, *, past_jobs_max: int, past_waiting_max: int
    ) -> None:
        """Own `workers` from now on; the log lies in `directory`."""
        self._workers = workers
        self._past = BackgroundJobs(workers, "ambermq-past", lanes_max=past_jobs_max, waiting_max=past_waiting_max)
        self._pieces = BackgroundJobs(workers, "ambermq-replay", lanes_max=1, waiting_max=_PIECES_MAX)
        self.past = PastQueries(directory, config, self._past)
        """Questions about moments."""

    def read(self, key: Any, run: Callable[[BackgroundJob], Any]) -> BackgroundJob:
        """Let `run` read a piece of the log; each link asks for one at a time, so their number bounds the line."""
        job = BackgroundJob(key, run)
        is_taken = self._pieces.submit(job)
        assert is_taken
        return job

    def drop(self, job: BackgroundJob) -> None:
        """Wait for a job no longer."""
        self._past.drop(job)
        self._pieces.drop(job)

    def fileno(self) -> int:
        """Return the descriptor that is readable when `completed` has something to take."""
        return self._workers.fileno()

    def completed(self) -> list[BackgroundJob]:
        """Take the jobs that have ended and are still waited for."""
        self._workers.collect()
        return self._past.take_ended() + self._pieces.take_ended()

    def close(self) -> None:
        """Begin nothing more, and wait for what runs."""
        self._past.drop_all()
        self._pieces.drop_all()
        self._workers.close()
