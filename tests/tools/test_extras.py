"""Commands that need more than the broker does, where that is not installed."""

import importlib
import sys
from pathlib import Path

import pytest

from ambermq.tools.broker.child_broker import ChildBroker
from ambermq.tools.terminal.errors import translated
from ambermq.tools.terminal.exit_codes import ExitCode
from tests.tools.conftest import Run

_EXTRA = ("pyspark", "pyarrow", "numpy")


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a broker that has ended."""
    child = ChildBroker(tmp_path_factory.mktemp("extras") / "data")
    child.start()
    assert child.stop() == ExitCode.OK
    return child.directory


def files_in(directory: Path) -> dict[Path, bytes]:
    """All files but the ballast, with what they hold."""
    return {path: path.read_bytes() for path in directory.rglob("*") if path.is_file() and path.name != "ballast"}


@pytest.mark.parametrize(
    ("command", "missing"),
    [
        (("log", "compact", "--keep-history", "0s", "--archive", "archive", "--runner", "local"), "pyarrow, numpy"),
        (("log", "compact", "--keep-history", "0s", "--archive", "archive", "--dry-run"), "pyarrow, numpy"),
        (("log", "compact", "--keep-history", "0s"), "pyspark, pyarrow, numpy"),
        (("log", "export", "--parquet", "target"), "pyarrow, numpy"),
        (("log", "query", "SELECT 1"), "pyspark, pyarrow, numpy"),
    ],
)
def test_what_is_missing_is_named_before_anything_is_done(
    run: Run, stopped: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], missing: str
) -> None:
    """One message with the extra that brings it, an exit code of its own, and every file as it was."""
    for package in _EXTRA:
        monkeypatch.setitem(sys.modules, package, None)
    before = files_in(stopped)
    result = run(*command, "--data", stopped)
    expected = f"error: not installed: {missing}; run `pip install 'ambermq[spark]'`\n"
    assert (result.exit_code, result.stdout, result.stderr) == (ExitCode.NOT_INSTALLED, "", expected)
    assert files_in(stopped) == before


@pytest.mark.parametrize("command", [("snapshot", "list"), ("history", "tail"), ("log", "verify")])
def test_all_else_does_without(
    run: Run, stopped: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    """Commands that read the log run without an extra."""
    for package in _EXTRA:
        monkeypatch.setitem(sys.modules, package, None)
    assert run(*command, "--data", stopped).exit_code == ExitCode.OK


def test_the_public_module_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that imports `ambermq.spark` without the extra reads the advice of the commands below its traceback."""
    for module in ("ambermq.spark", "ambermq.tools.spark.data_source"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    for package in _EXTRA:
        monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ModuleNotFoundError) as failure:
        importlib.import_module("ambermq.spark")
    assert failure.value.__notes__ == ["run `pip install 'ambermq[spark]'`"]


def test_an_import_that_fails_is_told_as_what_is_missing() -> None:
    """An import without a check before it: the message names the extra. Any other missing module is a defect."""
    told = translated(ModuleNotFoundError("No module named 'pyarrow.fs'", name="pyarrow.fs"))
    assert (told.exit_code, "ambermq[spark]" in told.message) == (ExitCode.NOT_INSTALLED, True)
    assert "internal error" in translated(ModuleNotFoundError("no x", name="x")).message
