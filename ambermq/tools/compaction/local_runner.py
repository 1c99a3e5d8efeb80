"""The runner of compaction tasks on this machine: in this process, or in several others.

Rule: a worker has a low priority, since a broker may run on the machine. In this process only the worker's thread has
it.

The runner is the oracle of the tests: Spark must write the same bytes.
"""

import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeVar, final

from ambermq.log.compaction.rewrite_tasks import (
    CountTask,
    GroupTask,
    RewrittenSegment,
    SegmentCount,
    count_kept,
    rewrite_group,
)
from ambermq.log.errors import LogError
from ambermq.log.storage.disk import DiskStorage
from ambermq.tools.past.rate_limit import RateLimit

__all__ = ["LocalRunner"]

_Task = TypeVar("_Task")
_Answer = TypeVar("_Answer")

_NICE: Final = 10
"""The nice value of a worker."""


@final
class LocalRunner:
    """See Runner."""

    def __init__(self, processes: int = 1, *, bytes_per_s: int = 0) -> None:
        """Run tasks in `processes`, 1 is this one; each reads `bytes_per_s` at most, 0 is no limit."""
        self._processes = processes
        self._bytes_per_s = bytes_per_s
        self._pool: Executor | None = None

    def count(self, tasks: Sequence[CountTask]) -> Iterator[SegmentCount]:
        """See Runner."""
        return self._all(partial(_count, self._bytes_per_s), tasks)

    def rewrite(self, tasks: Sequence[GroupTask]) -> Iterator[RewrittenSegment]:
        """See Runner."""
        return self._all(partial(_rewrite, self._bytes_per_s), tasks)

    def close(self) -> None:
        """See Runner."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

    def _all(self, run: Callable[[_Task], _Answer], tasks: Sequence[_Task]) -> Iterator[_Answer]:
        if self._pool is None:
            self._pool = self._open()
        futures: list[Future[Any]] = [self._pool.submit(_guarded, run, task) for task in tasks]
        try:
            for future in as_completed(futures):
                answer = future.result()
                if isinstance(answer, Exception):
                    raise answer
                yield answer
        finally:
            for future in futures:
                future.cancel()

    def _open(self) -> Executor:
        if self._processes == 1:
            return ThreadPoolExecutor(1, initializer=_lower_priority)
        # A spawned worker is `python -c`, which would import modules of the directory that the command runs in.
        os.environ["PYTHONSAFEPATH"] = "1"
        # No fork: this process may run a broker's engine with its threads.
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(self._processes, mp_context=context, initializer=_lower_priority)


def _lower_priority() -> None:
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)


def _guarded(run: Callable[[_Task], _Answer], task: _Task) -> _Answer | Exception:
    """Return the result of a task, or its exception, which a pool would wrap in a traceback."""
    try:
        return run(task)
    except (LogError, OSError) as error:
        return error


def _count(bytes_per_s: int, task: CountTask) -> SegmentCount:
    return count_kept(DiskStorage(), task, RateLimit(bytes_per_s).spend)


def _rewrite(bytes_per_s: int, task: GroupTask) -> RewrittenSegment:
    return rewrite_group(DiskStorage(), task, RateLimit(bytes_per_s).spend)
