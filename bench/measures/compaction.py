"""The speed of a compaction: the same gibibyte is rewritten by Spark, and by two processes without Spark.

The log of a stopped broker has messages of 1 KiB; nine of ten are settled. Both runners count and rewrite it in turn.
Their files are discarded, so that the next run finds the same log. At the end Spark compacts it with a commit. The
Spark session is warm: it has run once before.
"""

import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from ambermq.engine.compaction.plan import History
from ambermq.tools.compaction.commit_target import CommitTarget, broker_for
from ambermq.tools.compaction.job import run_compaction
from ambermq.tools.compaction.local_runner import LocalRunner
from ambermq.tools.compaction.runner import Runner
from ambermq.tools.compaction.spark_runner import SparkRunner
from bench.brokers.broker import Broker
from bench.load import LoadFailed, Window
from bench.measures.compaction_log import write_compact_log

__all__ = ["measure_compact"]

_SIZE: Final = 1 << 30
_FINISHED: Final = 0.9
_ROUNDS: Final = 5
_MASTER: Final = "local[2]"
_PROCESSES: Final = 2


class _Discarded(Exception):
    """A compaction was stopped before its commit."""


class _Stages:
    """The begin of each stage of one compaction."""

    def __init__(self) -> None:
        self.began: dict[str, float] = {}

    def __call__(self, stage: str, _done: int, _whole: int) -> None:
        """See Progress."""
        self.began.setdefault(stage.partition(" ")[0], time.monotonic())

    @property
    def seconds(self) -> float:
        """The seconds of counting and rewriting."""
        return self.began["archive"] - self.began["count"]


def measure_compact(broker: Broker, _window: Window, directory: Path) -> dict[str, float]:
    """Return rates in MB/s of input, times in seconds, and ratios."""
    broker.kill()
    data = directory / "compact"
    write_compact_log(data, size_bytes=_SIZE, finished=_FINISHED, now_us=time.time_ns() // 1000)
    with broker_for(str(data), None) as engine, _spark() as (spark, start), closing(LocalRunner(_PROCESSES)) as local:
        _compact(data, spark, engine)
        both = [[_compact(data, runner, engine) for runner in (spark, local)] for _ in range(_ROUNDS)]
        on_spark, alone = (statistics.median(seconds) for seconds in zip(*both, strict=True))
        began = time.monotonic()
        before, after = _committed(data, spark, engine)
        whole = time.monotonic() - began
    return {
        "rate": before / 1e6 / on_spark,
        "whole": before / 1e6 / whole,
        "local": before / 1e6 / alone,
        "ratio": on_spark / alone,
        "left": after / before,
        "start": start,
    }


@contextmanager
def _spark() -> Iterator[tuple[SparkRunner, float]]:
    """Yield a runner on Spark, and the seconds to open its session."""
    began = time.monotonic()
    with closing(SparkRunner.start(_MASTER)) as runner:
        yield runner, time.monotonic() - began


def _compact(data: Path, runner: Runner, broker: CommitTarget) -> float:
    """Compact without a commit; return the seconds of counting and rewriting."""
    stages, now_us = _Stages(), time.time_ns() // 1000
    try:
        run_compaction(str(data), History(age_us=0), runner, broker, now_us=now_us, archive=_discard, progress=stages)
    except _Discarded:
        return stages.seconds
    raise LoadFailed("the compaction found nothing to compact")


def _discard(_directory: str, _first: int, _last: int) -> Sequence[str]:
    """Raise the exception that stops the compaction before its commit."""
    raise _Discarded


def _committed(data: Path, runner: Runner, broker: CommitTarget) -> tuple[int, int]:
    """Compact; return the bytes before and after."""
    outcome = run_compaction(str(data), History(age_us=0), runner, broker, now_us=time.time_ns() // 1000)
    if not outcome.is_committed:
        raise LoadFailed("the compaction found nothing to compact")
    return outcome.bytes_before, outcome.bytes_after
