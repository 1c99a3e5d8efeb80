"""`python -m tests.crash.campaigns.compaction_child DIR`: the driver of compactions by Spark.

It reads one a line on standard input. Its lines on standard output:

    ready PID     the session is open; PID is the process of its Java
    stage NAME    a compaction enters a stage: snapshots, count, rewrite, commit
    done ERROR    a compaction has ended: without an error it was committed, or nothing was to be won

Tasks read slowly, so that a kill finds them under way.
"""

import sys
import time
from contextlib import closing
from typing import Final

import psutil  # type: ignore[import-untyped]  # its types are a package of their own

from ambermq.engine.compaction.plan import History
from ambermq.tools.client.broker_option import broker_of_directory
from ambermq.tools.compaction.commit_target import broker_for
from ambermq.tools.compaction.job import run_compaction
from ambermq.tools.compaction.preview import Progress
from ambermq.tools.compaction.runner import Runner
from ambermq.tools.compaction.spark_runner import SparkRunner
from ambermq.tools.terminal.errors import translated

__all__ = ["compact_once"]


_BYTES_PER_S: Final = 8 << 20
"""The rate of each task."""


def compact_once(directory: str, runner: Runner, progress: Progress = lambda *_: None) -> str:
    """Compact the log of a running broker, and keep no history; return the error in one line, if there is one."""
    try:
        holder = broker_of_directory(directory)
        with broker_for(directory, None if holder is None else holder.url) as broker:
            now_us = time.time_ns() // 1000
            run_compaction(directory, History(age_us=0), runner, broker, now_us=now_us, progress=progress)
    except Exception as error:  # noqa: BLE001 - what a person would be told is told
        return translated(error).message
    return ""


def main(directory: str) -> None:
    """Serve until standard input ends."""
    with closing(SparkRunner.start("local[2]", bytes_per_s=_BYTES_PER_S)) as runner:
        (java,) = [child for child in psutil.Process().children() if child.name() == "java"]
        print("ready", java.pid, flush=True)
        for _ in sys.stdin:
            print("done", compact_once(directory, runner, _Stages()), flush=True)


class _Stages:
    """Prints the name of each stage when it begins."""

    def __init__(self) -> None:
        self._last = ""

    def __call__(self, stage: str, _done: int, _whole: int) -> None:
        """See Progress."""
        name = stage.partition(" ")[0]
        if name != self._last:
            self._last = name
            print("stage", name, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
