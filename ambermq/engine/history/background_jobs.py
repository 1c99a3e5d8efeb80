"""Jobs that take too long for the loop run in lanes, which are threads of their own.

    submit(job)      queue a job; it is refused if the job queue is full
    take_ended()     the jobs that have ended, each with a value or an error; the descriptor of the workers signals them

Rule 1. At most `lanes_max` jobs run at a time, and at most `waiting_max` wait: clients can ask without end.
Rule 2. A job shares only immutable values with the loop, and values that its creator hands over to it.
Rule 3. A dropped job leaves the queue. If it runs, it ends at its next rest, and its result is discarded.
Rule 4. A lane is opened for the first job: a broker without jobs has no such thread.
Rule 5. A job works for a short time and then rests as long (`BackgroundJob.rest`), so the loop rarely waits for the
interpreter.
"""

import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, final

from ambermq.log.storage.worker_threads import Lane, Workers

__all__ = ["BackgroundJob", "BackgroundJobs"]

_WORK_S: Final = 0.002


class _JobDropped(Exception):
    """The job was dropped: no client waits for its result."""


@final
class BackgroundJob:
    """One job, and its result when it has ended."""

    __slots__ = ("_worked_since", "error", "is_dropped", "key", "run", "value")

    def __init__(self, key: Any, run: "Callable[[BackgroundJob], Any]") -> None:
        self.key = key
        """Identifies the client that waits for the result."""
        self.run = run
        """Computes the result: called with the job in another thread. An exception is a result too, in `error`."""
        self._worked_since = 0.0
        self.value: Any = None
        self.error: Exception | None = None
        self.is_dropped = False
        """Whether no client waits for it."""

    def rest(self) -> None:
        """Sleep if the job has worked for 2 ms; `run` calls it every few tenths of a millisecond.

        Raises an exception that ends the job if it was dropped.
        """
        if self.is_dropped:
            raise _JobDropped
        now = time.monotonic()
        if now - self._worked_since > _WORK_S:
            if self._worked_since:
                time.sleep(_WORK_S)
            self._worked_since = time.monotonic()


@final
class BackgroundJobs:
    """The queue of jobs and the lanes that run them. Only the thread of the loop calls the methods."""

    def __init__(self, workers: Workers, name: str, *, lanes_max: int, waiting_max: int) -> None:
        """Run jobs in lanes of `workers`; the name of a thread is `name` and a number."""
        self._workers = workers
        self._name = name
        self._lanes_max = lanes_max
        self._waiting_max = waiting_max
        self._lanes: list[Lane] = []
        self._job_queue: deque[BackgroundJob] = deque()
        self._ended: deque[BackgroundJob] = deque()
        self._unanswered: set[BackgroundJob] = set()

    def submit(self, job: BackgroundJob) -> bool:
        """Queue a job and return True; return False if the job queue is full."""
        if len(self._job_queue) >= self._waiting_max:
            return False
        self._unanswered.add(job)
        self._job_queue.append(job)
        if len(self._lanes) < self._lanes_max:
            self._lanes.append(self._workers.lane(f"{self._name}-{len(self._lanes)}", self._run))
        for lane in self._lanes:
            lane.wake()
        return True

    def drop(self, job: BackgroundJob) -> None:
        """Drop a job: its result is discarded."""
        job.is_dropped = True
        self._unanswered.discard(job)
        with suppress(ValueError):
            self._job_queue.remove(job)

    def take_ended(self) -> list[BackgroundJob]:
        """Return the jobs that have ended and were not dropped, and forget them. Collect the workers first."""
        ended = []
        while self._ended:
            job = self._ended.popleft()
            self._unanswered.discard(job)
            if not job.is_dropped:
                ended.append(job)
        return ended

    def drop_all(self) -> None:
        """Drop all jobs: none begins, and a job that runs ends at its next rest."""
        self._job_queue.clear()
        for job in self._unanswered:
            job.is_dropped = True
        self._unanswered.clear()

    def _run(self) -> None:
        """Run the queued jobs, one after the other. Runs in a lane."""
        while self._job_queue:
            try:
                job = self._job_queue.popleft()
            except IndexError:
                return
            try:
                job.value = job.run(job)
            except Exception as error:  # noqa: BLE001 - the client must get an answer whatever failed
                job.error = error
            self._ended.append(job)
