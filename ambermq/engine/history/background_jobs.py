"""Questions that take too long for the loop, answered beside it.

    submit(job)      it waits in line, or is refused where the line is full
    take_ended()     the jobs that have ended, each with a value or an error; the workers' descriptor tells when

Rule 1. At most `lanes_max` jobs run at a time, and at most `waiting_max` wait: there is no end of questions.
Rule 2. A job shares nothing with the loop but immutable values and what its own maker hands over to it.
Rule 3. A job that nobody waits for any more leaves the line; one that runs is let run to its next rest, and its answer
is dropped.
Rule 4. A lane is opened when there is a job for it: who never asks has no thread.
Rule 5. A job works in short turns and rests as long in between (`BackgroundJob.rest`), so that the loop hardly waits
for the interpreter.
"""

import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, final

from ambermq.log.storage.worker_threads import Lane, Workers

__all__ = ["BackgroundJob", "BackgroundJobs"]

_TURN_S: Final = 0.002


class _Abandoned(Exception):
    """Nobody waits for the answer any more."""


@final
class BackgroundJob:
    """One question, and its answer once it has ended."""

    __slots__ = ("_worked_since", "error", "is_dropped", "key", "run", "value")

    def __init__(self, key: Any, run: "Callable[[BackgroundJob], Any]") -> None:
        self.key = key
        """Whoever asks."""
        self.run = run
        """What finds the answer, called with the job in another thread; what it raises is the answer too."""
        self._worked_since = 0.0
        self.value: Any = None
        self.error: Exception | None = None
        self.is_dropped = False
        """Nobody waits for it any more."""

    def rest(self) -> None:
        """Rest where a turn is over: called by `run`, every few tenths of a millisecond. Raises where it is dropped."""
        if self.is_dropped:
            raise _Abandoned
        now = time.monotonic()
        if now - self._worked_since > _TURN_S:
            if self._worked_since:
                time.sleep(_TURN_S)
            self._worked_since = time.monotonic()


@final
class BackgroundJobs:
    """The line of jobs and the lanes that serve it; one thread, the loop, calls everything here."""

    def __init__(self, workers: Workers, name: str, *, lanes_max: int, waiting_max: int) -> None:
        """Open lanes of `workers` where there is work; threads are called by `name` and a number."""
        self._workers = workers
        self._name = name
        self._lanes_max = lanes_max
        self._waiting_max = waiting_max
        self._lanes: list[Lane] = []
        self._waiting: deque[BackgroundJob] = deque()
        self._ended: deque[BackgroundJob] = deque()
        self._unanswered: set[BackgroundJob] = set()

    def submit(self, job: BackgroundJob) -> bool:
        """Put a job in line; False where the line is full."""
        if len(self._waiting) >= self._waiting_max:
            return False
        self._unanswered.add(job)
        self._waiting.append(job)
        if len(self._lanes) < self._lanes_max:
            self._lanes.append(self._workers.lane(f"{self._name}-{len(self._lanes)}", self._run))
        for lane in self._lanes:
            lane.wake()
        return True

    def drop(self, job: BackgroundJob) -> None:
        """Wait for a job no longer."""
        job.is_dropped = True
        self._unanswered.discard(job)
        with suppress(ValueError):
            self._waiting.remove(job)

    def take_ended(self) -> list[BackgroundJob]:
        """Take the jobs that have ended and are still waited for; the workers were collected before."""
        ended = []
        while self._ended:
            job = self._ended.popleft()
            self._unanswered.discard(job)
            if not job.is_dropped:
                ended.append(job)
        return ended

    def drop_all(self) -> None:
        """Let nothing more begin, and what runs end at its next rest."""
        self._waiting.clear()
        for job in self._unanswered:
            job.is_dropped = True
        self._unanswered.clear()

    def _run(self) -> None:
        """Serve the line. Runs in a lane."""
        while self._waiting:
            try:
                job = self._waiting.popleft()
            except IndexError:
                return
            try:
                job.value = job.run(job)
            except Exception as error:  # noqa: BLE001 - whatever it was, who has asked must hear of it
                job.error = error
            self._ended.append(job)
