"""The rules of the architecture that a tool can check."""

import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

import ambermq
from tests.signposts import ROOT, SIGNPOSTS, modules_by_signpost

_RUFF = Path(sys.executable).with_name("ruff")


def test_the_distribution_has_a_version() -> None:
    """The distribution is called ambermq, and its version is that of the package."""
    assert version("ambermq") == ambermq.__version__


def ruff(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run ruff in the checkout, without its cache."""
    command = [str(_RUFF), "check", "--no-cache", *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, cwd=ROOT, check=False)


def settings() -> dict[str, Any]:
    """Return what pyproject.toml says about tools."""
    told: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    return told


@pytest.mark.parametrize("place", ["ambermq/engine", "bench", "tests/engine"])
def test_no_module_is_imported_by_a_signpost(place: str) -> None:
    """The linter refuses each of the five old names, in both forms of the statement."""
    lines = [
        line for name in SIGNPOSTS for line in (f"import {name}", f"import {name}.model", f"from {name} import model")
    ]
    done = ruff("--output-format=concise", "--stdin-filename", f"{place}/planted.py", "-", stdin="\n".join(lines))
    refused = {line.split(":")[1] for line in done.stdout.splitlines() if " TID251 " in line}
    assert refused == {str(number + 1) for number in range(len(lines))}


def test_the_linter_takes_the_name_of_the_package() -> None:
    """The same modules from `ambermq` are not refused."""
    lines = [f"from ambermq.{name} import model" for name in SIGNPOSTS]
    done = ruff("--select=TID251", "--stdin-filename", "ambermq/planted.py", "-", stdin="\n".join(lines))
    assert done.returncode == 0, done.stdout


def test_the_linter_sees_each_file_once() -> None:
    """By its path below `ambermq`, `bench` or `tests`, and not by a link too."""
    files = [Path(line).relative_to(ROOT) for line in ruff("--show-files").stdout.splitlines()]
    sources = [path for path in files if path.suffix == ".py"]
    assert {path.parts[0] for path in sources} == {"ambermq", "bench", "tests"}
    assert len({(ROOT / path).resolve() for path in sources}) == len(sources)


def test_other_tools_see_each_file_once() -> None:
    """mypy, coverage and pytest go by packages and folders in which nothing is a link."""
    told = settings()
    assert told["mypy"]["packages"] == ["ambermq", "bench"]
    assert told["coverage"]["run"] == {"source_pkgs": ["ambermq"]}
    assert told["pytest"]["ini_options"]["testpaths"] == ["tests"]
    for folder in ("ambermq", "bench", "tests"):
        assert not [path for path in (ROOT / folder).rglob("*.py") if path.is_symlink() or path.parent.is_symlink()]


def test_the_signposts_are_relative_links() -> None:
    """Each of the five names leads to the folder of that name in the package."""
    for name in SIGNPOSTS:
        assert (ROOT / name).readlink() == Path("ambermq") / name


def test_a_module_by_a_signpost_is_found() -> None:
    """What ends the run of the tests knows these from modules of other names."""
    names = ["ambermq.log", "logging", "engine", "tools.cli", "tests.tools", "protocols", "snapshot.block_file"]
    assert modules_by_signpost(names) == ["engine", "snapshot.block_file", "tools.cli"]


def test_two_names_are_public() -> None:
    """The version, and the module for Spark; the package says that all else is private."""
    assert ambermq.__all__ == ["__version__"]
    assert "All other modules are private" in (ambermq.__doc__ or "")
    public = {path.stem for path in Path(ambermq.__file__).parent.glob("*.py")} - {"__init__", "__main__"}
    assert public == {"spark"}


def test_the_module_for_spark_has_two_names() -> None:
    """A program registers the Data Source and opens several histories by it."""
    pytest.importorskip("pyspark")
    from ambermq import spark

    assert spark.__all__ == ["open_histories", "register"]
