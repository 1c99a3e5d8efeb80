"""However AmberMQ is installed, it runs its own modules alone, whatever lies in the directory that it is started in."""

import importlib.util
import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import ambermq
from tests.packaging.conftest import Install
from tests.packaging.installation import Installation, few_variables

_DEADLINE_S = 60.0
_USER = "alice:hidden-word"
_CONFIG = "[compaction]\ninterval_s = 1\ncheck_s = 1\npause_s = 1000\nkeep_history_s = 0\nspark = false\n"
_MODULES = ("log", "tools/__init__", "tools/__main__", "tools/spark_source", "engine/__init__", "protocol/__init__")
"""What projects have of their own; one of these names ran as a compaction once."""
_IN_THE_WAY = ("ambermq/__init__", "ambermq/__main__", "click", "structlog", "snapshot")
"""What would be imported from the working directory, if that were a place to import from."""


class Hostile:
    """A directory of modules that leave a mark when they are imported."""

    def __init__(self, directory: Path, modules: tuple[str, ...]) -> None:
        """Write the modules."""
        self.directory = directory
        self.marks = directory.with_name(f"{directory.name}.marks")
        self.marks.mkdir()
        for name in modules:
            path = directory / f"{name}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            mark = self.marks / name.replace("/", ".")
            path.write_text(f"open({str(mark)!r}, 'w').close()\nraise ImportError('the module of another project')\n")

    @property
    def imported(self) -> list[str]:
        """The modules that were imported."""
        return sorted(path.name for path in self.marks.iterdir())


@pytest.fixture(params=["wheel", "pip install .", "pip install -e ."])
def installation(request: pytest.FixtureRequest, install: Install) -> Installation:
    """AmberMQ in an environment of its own."""
    return install(request.param)


@contextmanager
def serving(command: list[str], place: Path, cwd: Path, python_path: Path) -> Iterator[str]:
    """Run a broker with a user, which is about to compact; yields its URL for that user."""
    (place / "config.toml").write_text(_CONFIG)
    words = ["serve", "--data", str(place / "data"), "--port", "0", "--config", str(place / "config.toml")]
    with (place / "stderr").open("wb") as stderr:
        process = subprocess.Popen(
            [*command, *words, "--user", _USER],
            cwd=cwd,
            env=few_variables({"PYTHONPATH": str(python_path)}),
            stdout=subprocess.PIPE,
            stderr=stderr,
        )
    assert process.stdout is not None
    try:
        words = process.stdout.readline().decode().split()
        assert words[:1] == ["ready"], (place / "stderr").read_text()
        yield words[1].replace("amqp://", f"amqp://{_USER}@")
    finally:
        process.terminate()
        process.communicate(timeout=60)


def logged(place: Path, *outcomes: str) -> str:
    """Wait until the broker has logged one of the outcomes of a compaction; returns all that it has logged."""
    deadline = time.monotonic() + _DEADLINE_S
    while time.monotonic() < deadline:
        text = (place / "stderr").read_text()
        if any(outcome in text for outcome in outcomes):
            return text
        time.sleep(0.05)
    raise AssertionError((place / "stderr").read_text())


def test_the_command_works_in_a_hostile_directory(installation: Installation, tmp_path: Path) -> None:
    """It serves, sends and receives, and compacts by itself with users; no module of the directory is imported."""
    hostile = Hostile(tmp_path / "project", (*_MODULES, *_IN_THE_WAY))
    on_path = Hostile(tmp_path / "path", _MODULES)
    variables = {"PYTHONPATH": str(on_path.directory)}
    told = installation.run("--version", cwd=hostile.directory, variables=variables)
    assert (told.returncode, told.stdout) == (0, f"ambermq, version {ambermq.__version__}\n"), told.stderr
    with serving([str(installation.command)], tmp_path, hostile.directory, on_path.directory) as url:
        for words in (("send", "q", "hello"), ("receive", "q", "--count", "1")):
            done = installation.run(*words, "--url", url, cwd=hostile.directory, variables=variables)
            assert done.returncode == 0, done.stderr
        assert done.stdout == "hello\n"
        log = logged(tmp_path, "compaction finished", "compaction failed")
        assert "compaction failed" not in log
    events = ("log", "dump", "--data", str(tmp_path / "data"), "--output", "json")
    done = installation.run(*events, cwd=hostile.directory, variables=variables)
    assert "compacted" in {json.loads(line)["type"] for line in done.stdout.splitlines()}, done.stderr
    assert (hostile.imported, on_path.imported) == ([], [])


def test_a_program_imports_what_is_public(installation: Installation, tmp_path: Path) -> None:
    """From the installation, beside modules of its own; and `python -m ambermq` is the command."""
    hostile = Hostile(tmp_path / "project", _MODULES)
    program = "import ambermq, os; print(ambermq.__version__, ambermq.__file__)"
    if importlib.util.find_spec("pyspark") is not None:
        program += "; from ambermq.spark import register"
    done = installation.run_program(str(installation.python), "-c", program, cwd=hostile.directory)
    version, place = done.stdout.split()
    assert version == ambermq.__version__
    assert not Path(place).is_relative_to(Path(ambermq.__file__).parent)
    told = installation.run_program(str(installation.python), "-m", "ambermq", "--version", cwd=hostile.directory)
    assert told.stdout == f"ambermq, version {ambermq.__version__}\n"
    assert hostile.imported == []


def test_a_foreign_package_on_the_path_is_not_started(install: Install, tmp_path: Path) -> None:
    """The broker logs what is wrong: where, expected, found, and what to do; it goes on to serve."""
    installation = install("wheel")
    foreign = Hostile(tmp_path / "foreign", ("ambermq/__init__", "ambermq/__main__"))
    # The directory that Python is started in comes first: this broker has its own package, its children would not.
    command = [str(installation.python), "-m", "ambermq"]
    with serving(command, tmp_path, installation.packages, foreign.directory) as url:
        log = logged(tmp_path, "compaction finished", "compaction failed")
        assert "another package ambermq comes before that of the parent process" in log
        assert f"expected {installation.packages}/ambermq, found {foreign.directory}/ambermq" in log
        assert "remove its directory from PYTHONPATH" in log
        assert installation.run("queue", "list", "--url", url, cwd=tmp_path).returncode == 0
    assert foreign.imported == []
