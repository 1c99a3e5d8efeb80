"""`python -m tests.crash.compaction_child DIR`: the driver of compactions by Spark, one a line on standard input.

It says `ready` and the process id of its Java when the session is open, then for each line what came of a compaction:
an empty line where it was committed or nothing was to be won, else the error in one line.
"""

import sys
import time
from contextlib import closing

import psutil  # type: ignore[import-untyped]  # its types are a package of their own

from ambermq.engine.compaction.plan import History
from ambermq.tools.client.broker_option import broker_of_directory
from ambermq.tools.compaction.commit_target import broker_for
from ambermq.tools.compaction.job import run_compaction
from ambermq.tools.compaction.runner import Runner
from ambermq.tools.compaction.spark_runner import SparkRunner
from ambermq.tools.terminal.errors import translated

__all__ = ["compact_once"]


def compact_once(directory: str, runner: Runner) -> str:
    """Compact the log of a running broker, and keep no history; return the error in one line, if there is one."""
    try:
        holder = broker_of_directory(directory)
        with broker_for(directory, None if holder is None else holder.url) as broker:
            run_compaction(directory, History(age_us=0), runner, broker, now_us=time.time_ns() // 1000)
    except Exception as error:  # noqa: BLE001 - what a person would be told is told
        return translated(error).message
    return ""


def main(directory: str) -> None:
    """Serve until standard input ends."""
    with closing(SparkRunner.start("local[2]")) as runner:
        (java,) = [child for child in psutil.Process().children() if child.name() == "java"]
        print("ready", java.pid, flush=True)
        for _ in sys.stdin:
            print(compact_once(directory, runner), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
