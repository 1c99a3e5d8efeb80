"""Running the tasks of a compaction on this machine: in this process, or in a few beside it.

Rule: whoever works steps back behind everything else on the machine, for a broker may run there: the thread that does,
not the process that has asked.

It is the oracle of the tests: what Spark writes must be alike to the byte.
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

_PATIENCE: Final = 10
"""The nice value of who works."""


@final
class LocalRunner:
    """See Runner."""

    def __init__(self, processes: int = 1, *, bytes_per_s: int = 0) -> None:
        """Run tasks in so many processes, 1 is this one; each reads so many bytes a second, or as fast as it can."""
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
            return ThreadPoolExecutor(1, initializer=_step_back)
        # Not forked: a broker's engine may stand in this process, with threads.
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(self._processes, mp_context=context, initializer=_step_back)


def _step_back() -> None:
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _PATIENCE)


def _guarded(run: Callable[[_Task], _Answer], task: _Task) -> _Answer | Exception:
    """Run a task elsewhere; what it raises is handed over as plain as it was."""
    try:
        return run(task)
    except (LogError, OSError) as error:
        return error


def _count(bytes_per_s: int, task: CountTask) -> SegmentCount:
    return count_kept(DiskStorage(), task, RateLimit(bytes_per_s).spend)


def _rewrite(bytes_per_s: int, task: GroupTask) -> RewrittenSegment:
    return rewrite_group(DiskStorage(), task, RateLimit(bytes_per_s).spend)
