"""`python -m tests.fast [PACKAGE ...]`: what a change to one package needs, within 90 seconds.

    checks    ruff, mypy, lint-imports and the links of the pages, over everything
    tests     those of the packages, such as engine/decide; of the packages that differ from main where none is named
    smoke     golden files, models, pages and layers, whatever the change is

Rule 1. The tests that start Spark are left out.
Rule 2. No test starts when the time is over. Those that are left are counted, and the run fails.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from tests.deadline import END_VARIABLE

ROOT: Final = Path(__file__).resolve().parent.parent
SMOKE: Final = (
    "tests/golden",
    "tests/model",
    "tests/docs/test_pages.py",
    "tests/test_layers.py",
    "tests/test_packages.py",
)
PYTEST: Final = (sys.executable, "-m", "pytest", "-p", "tests.deadline")
"""By -m, which lets pytest find the plugin: the command `pytest` does not look for modules in the working directory."""
_SECONDS: Final = 90.0
_LAST_START_SECONDS: Final = 70.0
"""The longest test takes twenty seconds."""
_CHECKS: Final = (("ruff", "check", "."), ("ruff", "format", "--check", "."), ("lint-imports",), ("mypy",))
_BIN: Final = Path(sys.executable).parent


def paths_of(package: str) -> list[str]:
    """Return the tests of a package as arguments of pytest; those right beside its modules where it holds packages.

    A package without tests has those of the package around it.
    """
    room = Path("tests", package.strip("/").removeprefix("ambermq/").removeprefix("tests/"))
    while not (ROOT / room).is_dir():
        room = room.parent
    if any((ROOT / room).glob("*/__init__.py")):
        return sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / room).glob("test_*.py"))
    return [room.as_posix()]


def package_of(path: str) -> str | None:
    """Return the package that a changed file belongs to; None where it belongs to none, such as a page."""
    top, _, rest = path.partition("/")
    if top not in {"ambermq", "bench", "tests"} or not path.endswith(".py") or "/" not in rest:
        return "bench" if top == "bench" else None
    return Path(path if top == "bench" else rest).parent.as_posix()


def changed_files() -> list[str]:
    """Return the files that differ from the branch main, and those that git does not know yet."""
    base = _git("merge-base", "HEAD", "main") or ["HEAD"]
    return _git("diff", "--name-only", *base) + _git("ls-files", "--others", "--exclude-standard")


def _git(*arguments: str) -> list[str]:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.splitlines()


def arguments_of(packages: Iterable[str]) -> list[str]:
    """Return the tests of the packages and the smoke tests, each once."""
    return list(dict.fromkeys([*(test for package in packages for test in paths_of(package)), *SMOKE]))


class Check:
    """A check that runs beside the tests."""

    def __init__(self, *command: str) -> None:
        self._name = " ".join([Path(command[0]).name, *command[1:]])
        self._told = tempfile.TemporaryFile()  # noqa: SIM115 - is_passed closes it
        self._process = subprocess.Popen(command, cwd=ROOT, stdout=self._told, stderr=subprocess.STDOUT)

    def is_passed(self, end: float) -> bool:
        """Wait until a moment, and print what the check says if it fails."""
        try:
            self._process.wait(max(1.0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            self._process.kill()
            print(f"{self._name} did not end in time: run make lint")
        with self._told as told:
            told.seek(0)
            if self._process.wait():
                print(f"{self._name} failed:\n{told.read().decode(errors='replace')}")
        return self._process.returncode == 0


def main(packages: list[str]) -> int:
    """Run all of it; return 0 if everything passed."""
    end = time.monotonic() + _SECONDS
    packages = packages or sorted({package for file in changed_files() if (package := package_of(file))})
    print("packages:", ", ".join(packages) or "none differs from main", flush=True)
    checks = [Check(str(_BIN / name), *rest) for name, *rest in _CHECKS]
    checks.append(Check(sys.executable, "-m", "tests.docs.links"))
    command = [*PYTEST, "-n", "2", "--dist", "worksteal", "-m", "not spark"]
    environment = os.environ | {END_VARIABLE: str(time.time() + _LAST_START_SECONDS)}
    tests = subprocess.run([*command, *arguments_of(packages)], cwd=ROOT, env=environment, check=False)
    passed = [check.is_passed(end) for check in checks]
    return 0 if tests.returncode == 0 and all(passed) else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.fast", description=__doc__)
    parser.add_argument("packages", nargs="*", metavar="PACKAGE")
    sys.exit(main(parser.parse_args().packages))
