"""A child process of ambermq runs the package of its parent, or it ends with a clear error."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import ambermq
from ambermq.tools.terminal.child_command import child_command
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode

OWN = str(Path(ambermq.__file__).resolve().parent)


def _package(directory: Path) -> Path:
    """Write a package `ambermq` that is not AmberMQ."""
    package = directory / "ambermq"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    return package


def test_the_command_line_names_the_directory_of_the_package() -> None:
    """The working directory is no place to import from, and the child knows the directory of its parent's package."""
    expected = [sys.executable, "-P", "-m", "ambermq", "--package-directory", OWN, "queue", "list"]
    assert child_command("queue", "list") == expected


@pytest.mark.parametrize("other", ["", "link"])
def test_the_same_package_by_another_path_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    """PYTHONPATH may name the package itself, by a symbolic link too, and directories without such a package."""
    parent = Path(OWN).parent
    if other:
        (tmp_path / other).symlink_to(parent)
        parent = tmp_path / other
    (tmp_path / "plain" / "ambermq").mkdir(parents=True)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(tmp_path / "plain"), str(parent), "")))
    command = [*child_command("--version")]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.startswith("ambermq")


def test_a_foreign_package_on_the_path_starts_no_child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package that is not AmberMQ would not check where it lies: its parent does, before it starts anything."""
    foreign = _package(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(ToolError) as raised:
        child_command("queue", "list")
    assert raised.value.message == (
        "the import path of a child process: another package ambermq comes before that of the parent process: "
        f"expected {OWN}, found {foreign}; remove its directory from PYTHONPATH, or uninstall the other package"
    )


def test_a_child_of_another_package_ends(tmp_path: Path) -> None:
    """Before it does anything, in one line that names both directories."""
    command = [sys.executable, "-P", "-m", "ambermq", "--package-directory", str(tmp_path), "serve", "--data", "made"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (done.returncode, done.stdout) == (ExitCode.USAGE, "")
    assert done.stderr.startswith("error: the import path of a child process: another package ambermq comes before ")
    assert f"expected {tmp_path}, found {OWN}" in done.stderr
    assert not (tmp_path / "made").exists()
