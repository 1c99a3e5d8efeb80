"""The environment of Spark's Python workers: they import nothing from the directory that a command runs in."""

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ambermq.tools.spark import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A directory whose modules have the names of the standard library's, and leave a file if they are imported."""
    trap = f"open({str(tmp_path / 'sprung')!r}, 'w').close()\nraise SystemExit(3)\n"
    directory = tmp_path / "hostile"
    directory.mkdir()
    for name in ("random", "pickle", "queue", "pyspark"):
        (directory / f"{name}.py").write_text(trap)
    return directory


@pytest.mark.parametrize(("is_safe", "code"), [(True, 0), (False, 3)])
def test_a_worker_imports_nothing_from_its_directory(
    hostile: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_safe: bool, code: int
) -> None:
    """Spark starts a worker with `python -m`; without our variable that would run what lies in the directory."""
    monkeypatch.setattr(session, "find_java", lambda _: "")
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    ours = session._environment(tmp_path, is_local=True) if is_safe else {}
    command = [sys.executable, "-m", "pyspark.util"]
    done = subprocess.run(command, cwd=hostile, env=os.environ | ours, capture_output=True, timeout=60, check=False)
    assert done.returncode == code, done.stderr.decode()
    assert (tmp_path / "sprung").exists() is not is_safe


def test_executors_elsewhere_have_the_variable_too(tmp_path: Path) -> None:
    """They do not inherit the environment of the driver."""
    assert session._settings(tmp_path, "spark://h:1", "n", "1g", "")["spark.executorEnv.PYTHONSAFEPATH"] == "1"


@pytest.mark.spark
def test_the_workers_of_a_session_have_a_safe_path(spark: "SparkSession") -> None:
    """The variable reaches the processes that run tasks."""
    assert spark.sparkContext.parallelize([0], 1).map(lambda _: sys.flags.safe_path).first() is True
