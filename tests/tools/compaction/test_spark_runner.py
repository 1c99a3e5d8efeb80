"""What Spark runs is what this process runs: the same answers, the same bytes, the same faults."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ambermq.engine.compaction.plan import History
from ambermq.log.compaction.rewrite_tasks import CountTask, GroupTask, RewrittenSegment, SegmentCount
from ambermq.log.errors import DamageError
from ambermq.log.format.segment import Segment
from ambermq.log.recovery.verify import verify
from ambermq.tools.compaction.local_runner import LocalRunner
from ambermq.tools.compaction.spark_runner import SparkRunner
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode
from tests.engine.lived import LIVED, Lived
from tests.log.compressed import compressed_count
from tests.tools.compactions import LivedBroker, compact

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


class Both:
    """Runs every task on Spark and in this process, and holds one against the other."""

    def __init__(self, spark: "SparkSession") -> None:
        self._spark = SparkRunner(spark)
        self._oracle = LocalRunner()
        self.counted = 0
        self.written = 0

    def count(self, tasks: Sequence[CountTask]) -> Iterator[SegmentCount]:
        expected = sorted(self._oracle.count(tasks), key=lambda one: one.file_id)
        assert expected == sorted(self._spark.count(tasks), key=lambda one: one.file_id)
        self.counted += len(expected)
        yield from expected

    def rewrite(self, tasks: Sequence[GroupTask]) -> Iterator[RewrittenSegment]:
        expected = sorted(self._oracle.rewrite(tasks), key=lambda one: one.base_offset)
        found = sorted(self._spark.rewrite(tasks), key=lambda one: one.base_offset)
        assert [replace(one, name="") for one in expected] == [replace(one, name="") for one in found]
        for task, oracle, other in zip(tasks, expected, found, strict=True):
            assert bytes_of(task, oracle) == bytes_of(task, other)
            Path(task.directory, oracle.name).unlink()
        self.written += len(found)
        yield from found

    def close(self) -> None:
        self._spark.close()


def bytes_of(task: GroupTask, written: RewrittenSegment) -> bytes:
    return Path(task.directory, written.name).read_bytes()


def lived(directory: Path, seed: int) -> Lived:
    """A life with sealed segments and a snapshot in the middle."""
    life = Lived(directory, seed)
    for number in range(3):
        life.live(60)
        LivedBroker(life).take_snapshot(f"number-{number}", seals=True)
        life.settle_down()
    return life


def test_spark_writes_what_the_oracle_writes(tmp_path: Path, spark: "SparkSession") -> None:
    """Byte for byte, over some histories, some kept and some not, compressed and not; and the log takes it over."""
    both = Both(spark)
    for seed in range(4):
        life = lived(tmp_path / str(seed), seed)
        compact(life, History(age_us=seed % 2 * 3_000_000), runner=both, compresses=seed > 1)
        assert (seed > 1) == (compressed_count(life.directory) > 0)
        life.end()
        assert verify(life.directory, config=LIVED).damage is None
    assert both.counted > 4
    assert both.written > 2


def test_damage_is_told_as_in_this_process(tmp_path: Path, spark: "SparkSession") -> None:
    """What a task finds on a worker is raised as the same error, not as Spark's."""
    segment = Segment(1, 0, 10, 4096, str(tmp_path / "none.log"))
    missing = CountTask(segment, bytes(16), b"", 4096)
    with pytest.raises(DamageError) as found:
        list(SparkRunner(spark).count([missing]))
    with pytest.raises(DamageError) as expected:
        list(LocalRunner().count([missing]))
    assert (expected.value.file, str(expected.value)) == (found.value.file, str(found.value))


def test_a_worker_that_dies_costs_nothing(tmp_path: Path, spark: "SparkSession") -> None:
    """Spark tries a task again whose worker was killed; the answers are those of one run."""
    runner = SparkRunner(spark)
    once = tmp_path / "once"
    answers = list(runner._all(_dying, [str(once)] * 3))
    assert answers == ["answered"] * 3
    assert once.exists()


def _dying(_storage: object, once: str, _pause: object) -> str:
    """Answer; the worker that comes first dies."""
    try:
        os.close(os.open(once, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return "answered"
    os.kill(os.getpid(), 9)
    return "killed"


def test_what_spark_cannot_do_is_one_message(spark: "SparkSession") -> None:
    """A task that fails as no task should is told in one line."""
    with pytest.raises(ToolError) as found:
        list(SparkRunner(spark)._all(_failing, [1]))
    assert "ZeroDivisionError" in found.value.message
    assert "\n" not in found.value.message


def _failing(_storage: object, number: int, _pause: object) -> float:
    return number / 0


def test_workers_without_the_package_are_one_message(spark: "SparkSession") -> None:
    """Where a worker cannot import what it needs, the message says what to install where."""
    with pytest.raises(ToolError) as found:
        list(SparkRunner(spark)._all(_importing, [1]))
    assert found.value.exit_code == ExitCode.NOT_INSTALLED
    assert "PYSPARK_PYTHON" in found.value.message


def _importing(_storage: object, _task: int, _pause: object) -> None:
    raise ModuleNotFoundError("No module named 'tools'")


def test_no_tasks_need_no_spark() -> None:
    """Nothing to do is done without a session."""
    runner = SparkRunner(None)  # type: ignore[arg-type]
    assert list(runner.count([])) == []
    assert list(runner.rewrite([])) == []
    runner.close()
