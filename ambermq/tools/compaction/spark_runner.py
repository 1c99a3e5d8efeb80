"""Running the tasks of a compaction on Spark: on the cores of this machine, or on a cluster that sees its disks.

    driver     tasks -> a broadcast; their numbers -> a job with a partition each
    worker     number -> task -> count_kept or rewrite_group over its own files -> answer -> an accumulator
    driver     answers as they come, each once

Rule 1. Bytes of messages never enter the Java process: workers read and write files themselves, and answers are rows of
figures.
Rule 2. A partition may be run again, or twice at the same time: each run writes a file of its own name, and the answers
of an accumulator in an action are counted once a partition. What is not answered for is litter in the job's directory.
Rule 3. What a task raises is its answer, and ends the compaction as it is. What becomes of a worker is Spark's own
matter, which tries the task again elsewhere; what is left of that is told in one message.
Rule 4. Workers step back behind everything else on their machine: a broker may run there.
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
"""How often a task is tried, as on a cluster: a local master would give up at the first."""
_POLL_SECONDS: Final = 0.05
_CANCEL_SECONDS: Final = 20.0
_PATIENCE: Final = 10
"""The nice value of workers."""


@final
class SparkRunner:
    """See Runner."""

    def __init__(self, session: "SparkSession", *, bytes_per_s: int = 0) -> None:
        """Run tasks in a session that is open, and stays so; each reads so many bytes a second, 0 is no bound."""
        self._session = session
        self._bytes_per_s = bytes_per_s
        self._opened = ExitStack()

    @classmethod
    def start(cls, master: str, *, bytes_per_s: int = 0) -> Self:
        """Open a session of its own on a master, until it is closed; this process steps back too. Raises ToolError."""
        # As it was typed, which its message quotes.
        check_master(master)
        # Java inherits it, which is busy while it starts.
        os.setpriority(os.PRIO_PROCESS, 0, max(_PATIENCE, os.getpriority(os.PRIO_PROCESS, 0)))
        with ExitStack() as opened:
            # Java only hands numbers about: nothing of it is worth compiling.
            session = opened.enter_context(
                open_session(_patient(master), name="ambermq log compact", java_options=STARTS_SOON)
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
    """One stage as a job of Spark's, which runs beside the thread that waits for its answers."""

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
            raise _told(error) from error
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(Exception):  # the Java process may be gone, and then so is the job
            if self._thread.is_alive():
                self._context.cancelJobGroup(self._group)
            self._thread.join(_CANCEL_SECONDS)
            self._broadcast.destroy()
        self._accumulator.value = []

    def answers(self) -> Iterator[Any]:
        """Yield each answer once, as it comes. Raises what a task raised, and ToolError where Spark fails."""
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
            raise _told(self._failure) from self._failure
        if count != len(self._tasks):
            raise ToolError("Spark lost answers of its tasks", expected=f"{len(self._tasks)}", found=f"{count}")

    def _guarded(self) -> None:
        try:
            self._context.setJobGroup(self._group, "ambermq log compact", interruptOnCancel=True)
            count = len(self._tasks)
            work = partial(self._work, self._broadcast, self._accumulator)
            self._context.parallelize(range(count), count).foreach(work)
        except Exception as error:  # noqa: BLE001 - raised again by whoever waits
            self._failure = error


class _Work:
    """What a worker does with the number of a task; it is sent there, and imports this package."""

    __slots__ = ("_bytes_per_s", "_run")

    def __init__(self, run: Callable[..., Any], bytes_per_s: int) -> None:
        self._run = run
        self._bytes_per_s = bytes_per_s

    def __call__(self, tasks: "Broadcast[list[bytes]]", answers: "Accumulator[list[bytes]]", number: int) -> None:
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, 0, _PATIENCE)
        try:
            task = pickle.loads(tasks.value[number])  # noqa: S301 - the driver's own
            answer = self._run(DiskStorage(), task, RateLimit(self._bytes_per_s).spend)
        except (LogError, OSError) as error:
            answer = error.with_traceback(None)
        answers.add([pickle.dumps(answer)])


class _Answers:
    """How Spark adds answers up: lists, one after the other."""

    def zero(self, _value: list[bytes]) -> list[bytes]:
        """Begin."""
        return []

    def addInPlace(self, value: list[bytes], more: list[bytes]) -> list[bytes]:  # noqa: N802 - Spark's name
        """Add."""
        value.extend(more)
        return value


def _patient(master: str) -> str:
    """Let a master within this machine try tasks as often as a cluster does."""
    if master == "local":
        return f"local[1,{_TASK_FAILURES_MAX}]"
    if master.startswith("local[") and "," not in master:
        return f"{master[:-1]},{_TASK_FAILURES_MAX}]"
    return master


def _told(error: Exception) -> ToolError:
    """Return in one message what Spark tells in fifty lines."""
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
    return ToolError("Spark gave up", found=text, advice=_AGAIN)


_PYTHON_ERROR: Final = re.compile(r"[A-Z]\w*(Error|Exception): ")
_AGAIN: Final = "the log is as it was; run it again"


def _text_of(error: Exception) -> str:
    """Return the line of an error that says most, which may have to be asked of a process that is gone."""
    try:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    except Exception:  # noqa: BLE001 - that process is gone
        return type(error).__name__
    telling = [line for line in lines if _PYTHON_ERROR.match(line)] or [line for line in lines if "Error: " in line]
    return (telling or lines or [type(error).__name__])[-1 if telling else 0][:300]
