"""The processes of the runner without Spark."""

from contextlib import closing
from pathlib import Path

import pytest

from ambermq.tools.compaction.local_runner import LocalRunner


def test_a_worker_imports_nothing_from_its_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module of the directory that the command runs in does not replace one of Python's in a worker."""
    (tmp_path / "multiprocessing.py").write_text("raise SystemExit(3)\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONSAFEPATH", "")
    with closing(LocalRunner(2)) as runner:
        assert sorted(runner._all(abs, [1, -2])) == [1, 2]
