"""The runner of compaction tasks on Spark: on the cores of this machine, or on a cluster that shares its disks.

    driver     tasks -> a broadcast; their numbers -> a job with one partition for each
    worker     number -> task -> count_kept or rewrite_group over its own files -> result -> an accumulator
    driver     yields each result once, as soon as it arrives

Rule 1. Bytes of messages never enter the Java process: workers read and write files themselves, and results are small.
Rule 2. A partition may run again, or twice at the same time. Each run writes a file with a name of its own, and the
accumulator of an action counts each partition once. A file without a result is removed with the job's directory.
Rule 3. The exception of a task is its result, and ends the compaction unchanged. If a worker dies, Spark runs the task
again elsewhere. If that fails too, one message reports it.
Rule 4. Workers have a low priority: a broker may run on their machine.
"""

import os
import pickle
import re
import secrets
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar, cast, final

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
from ambermq.tools.spark.session import STARTS_SOON, check_master, open_session
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode

if TYPE_CHECKING:
    from pyspark import Accumulator, Broadcast
    from pyspark.sql import SparkSession

__all__ = ["SparkRunner"]

_Task = TypeVar("_Task")
_Answer = TypeVar("_Answer")
Pause = Callable[[int], None]

_TASK_FAILURES_MAX: Final = 4
"""The maximum number of failures of a task, as on a cluster: a local master fails at the first."""
_POLL_SECONDS: Final = 0.05
_CANCEL_SECONDS: Final = 20.0
_NICE: Final = 10
"""The nice value of workers."""


@final
class SparkRunner:
    """See Runner."""

    def __init__(self, session: "SparkSession", *, bytes_per_s: int = 0) -> None:
        """Run tasks in an open session, without closing it; each reads `bytes_per_s` at most, 0 is no limit."""
        self._session = session
        self._bytes_per_s = bytes_per_s
        self._opened = ExitStack()

    @classmethod
    def start(cls, master: str, *, bytes_per_s: int = 0) -> Self:
        """Return a runner with a session of its own on a master. Lowers this process's priority. Raises ToolError."""
        # Checked as typed: the error message quotes it.
        check_master(master)
        # The Java process inherits the priority; its start takes much CPU.
        os.setpriority(os.PRIO_PROCESS, 0, max(_NICE, os.getpriority(os.PRIO_PROCESS, 0)))
        with ExitStack() as opened:
            # Java only distributes numbers: compiling its code is not worth the time.
            session = opened.enter_context(
                open_session(_with_retries(master), name="ambermq log compact", java_options=STARTS_SOON)
            )
            runner = cls(session, bytes_per_s=bytes_per_s)
            runner._opened = opened.pop_all()
        return runner

    def count(self, tasks: Sequence[CountTask]) -> Iterator[SegmentCount]:
        """See Runner."""
        return self._all(count_kept, tasks)

    def rewrite(self, tasks: Sequence[GroupTask]) -> Iterator[RewrittenSegment]:
        """See Runner."""
        return self._all(rewrite_group, tasks)

    def close(self) -> None:
        """See Runner."""
        self._opened.close()

    def _all(self, run: Callable[[DiskStorage, _Task, Pause], _Answer], tasks: Sequence[_Task]) -> Iterator[_Answer]:
        if tasks:
            with _Job(self._session, _Work(run, self._bytes_per_s), tasks) as job:
                yield from job.answers()


class _Job:
    """One stage as a Spark job, in another thread than the one that waits for its results."""

    def __init__(self, session: "SparkSession", work: "_Work", tasks: Sequence[Any]) -> None:
        self._context = session.sparkContext
        self._group = f"ambermq-{secrets.token_hex(4)}"
        self._work = work
        self._tasks = tasks
        self._failure: Exception | None = None
        self._accumulator: Accumulator[list[bytes]]
        self._broadcast: Broadcast[list[bytes]]
        self._thread = threading.Thread(target=self._guarded, name="ambermq-spark", daemon=True)

    def __enter__(self) -> Self:
        try:
            self._accumulator = self._context.accumulator([], cast(Any, _Answers()))
            self._broadcast = self._context.broadcast([pickle.dumps(task) for task in self._tasks])
        except Exception as error:
            raise _spark_error(error) from error
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(Exception):  # the Java process may have ended, and the job with it
            if self._thread.is_alive():
                self._context.cancelJobGroup(self._group)
            self._thread.join(_CANCEL_SECONDS)
            self._broadcast.destroy()
        self._accumulator.value = []

    def answers(self) -> Iterator[Any]:
        """Yield each result once, as it arrives. Raises the exception of a task, and ToolError if Spark fails."""
        count, is_over = 0, False
        while not is_over:
            self._thread.join(_POLL_SECONDS)
            is_over = not self._thread.is_alive()
            for pickled in self._accumulator.value[count:]:
                count += 1
                answer = pickle.loads(pickled)  # noqa: S301 - our own worker's
                if isinstance(answer, Exception):
                    raise answer
                yield answer
        if self._failure is not None:
            raise _spark_error(self._failure) from self._failure
        if count != len(self._tasks):
            raise ToolError("Spark lost results of tasks", expected=f"{len(self._tasks)}", found=f"{count}")

    def _guarded(self) -> None:
        try:
            self._context.setJobGroup(self._group, "ambermq log compact", interruptOnCancel=True)
            count = len(self._tasks)
            work = partial(self._work, self._broadcast, self._accumulator)
            self._context.parallelize(range(count), count).foreach(work)
        except Exception as error:  # noqa: BLE001 - `answers` raises it again
            self._failure = error


class _Work:
    """The function that a worker calls with the number of a task; Spark sends it there, where it imports ambermq."""

    __slots__ = ("_bytes_per_s", "_run")

    def __init__(self, run: Callable[..., Any], bytes_per_s: int) -> None:
        self._run = run
        self._bytes_per_s = bytes_per_s

    def __call__(self, tasks: "Broadcast[list[bytes]]", answers: "Accumulator[list[bytes]]", number: int) -> None:
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, 0, _NICE)
        try:
            task = pickle.loads(tasks.value[number])  # noqa: S301 - the driver's own
            answer = self._run(DiskStorage(), task, RateLimit(self._bytes_per_s).spend)
        except (LogError, OSError) as error:
            answer = error.with_traceback(None)
        answers.add([pickle.dumps(answer)])


class _Answers:
    """The accumulator's addition for Spark: it concatenates lists."""

    def zero(self, _value: list[bytes]) -> list[bytes]:
        """Return the empty list."""
        return []

    def addInPlace(self, value: list[bytes], more: list[bytes]) -> list[bytes]:  # noqa: N802 - Spark's name
        """Append the items of `more` to `value` and return it."""
        value.extend(more)
        return value


def _with_retries(master: str) -> str:
    """Return a master on this machine with the retries of a cluster; return any other master unchanged."""
    if master == "local":
        return f"local[1,{_TASK_FAILURES_MAX}]"
    if master.startswith("local[") and "," not in master:
        return f"{master[:-1]},{_TASK_FAILURES_MAX}]"
    return master


def _spark_error(error: Exception) -> ToolError:
    """Return a ToolError with the one line of a Spark exception that matters."""
    text = _text_of(error)
    if "No module named" in text:
        return ToolError(
            "Spark's workers cannot import ambermq or what it needs",
            found=text,
            advice="install it with the extra spark on every machine of the cluster, for the Python in PYSPARK_PYTHON",
            code=ExitCode.NOT_INSTALLED,
        )
    if type(error).__module__.startswith("py4j") or isinstance(error, (ConnectionError, EOFError)):
        return ToolError("Spark's Java process has ended", found=text, advice=_AGAIN)
    return ToolError("the Spark job failed", found=text, advice=_AGAIN)


_PYTHON_ERROR: Final = re.compile(r"[A-Z]\w*(Error|Exception): ")
_AGAIN: Final = "nothing was changed; run it again"


def _text_of(error: Exception) -> str:
    """Return the most specific line of an error; its text may come from a Java process that has ended."""
    try:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    except Exception:  # noqa: BLE001 - the Java process has ended
        return type(error).__name__
    errors = [line for line in lines if _PYTHON_ERROR.match(line)] or [line for line in lines if "Error: " in line]
    return (errors or lines or [type(error).__name__])[-1 if errors else 0][:300]
