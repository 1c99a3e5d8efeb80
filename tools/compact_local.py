"""Running the tasks of a compaction on this machine: in this process, or in a few beside it.

It is the oracle of the tests: what Spark writes must be alike to the byte.
"""

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from typing import Any, TypeVar, final

from log.disk import DiskStorage
from log.errors import LogError
from log.rewriting import CountTask, GroupTask, Rewritten, SegmentCount, count_kept, rewrite_group

__all__ = ["LocalRunner"]

_Task = TypeVar("_Task")
_Answer = TypeVar("_Answer")


@final
class LocalRunner:
    """See Runner."""

    def __init__(self, processes: int = 1) -> None:
        """Run tasks in so many processes; 1 is this one."""
        self._processes = processes
        self._pool: ProcessPoolExecutor | None = None

    def count(self, tasks: Sequence[CountTask]) -> Iterator[SegmentCount]:
        """See Runner."""
        return self._all(_count, tasks)

    def rewrite(self, tasks: Sequence[GroupTask]) -> Iterator[Rewritten]:
        """See Runner."""
        return self._all(_rewrite, tasks)

    def close(self) -> None:
        """See Runner."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

    def _all(self, run: Callable[[_Task], _Answer], tasks: Sequence[_Task]) -> Iterator[_Answer]:
        if self._processes == 1 or len(tasks) < 2:
            yield from map(run, tasks)
            return
        if self._pool is None:
            # Not forked: a broker's engine may stand in this process, with threads.
            context = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(self._processes, mp_context=context)
        futures: list[Future[Any]] = [self._pool.submit(_guarded, run, task) for task in tasks]
        for future in as_completed(futures):
            answer = future.result()
            if isinstance(answer, Exception):
                raise answer
            yield answer


def _guarded(run: Callable[[_Task], _Answer], task: _Task) -> _Answer | Exception:
    """Run a task in another process; what it raises is handed over as plain as it was."""
    try:
        return run(task)
    except (LogError, OSError) as error:
        return error


def _count(task: CountTask) -> SegmentCount:
    return count_kept(DiskStorage(), task)


def _rewrite(task: GroupTask) -> Rewritten:
    return rewrite_group(DiskStorage(), task)
