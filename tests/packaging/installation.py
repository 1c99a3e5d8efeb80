"""Environments with AmberMQ installed in each of the ways that users have, without a download.

Rule 1. An environment borrows the packages of the one that runs the tests, by a .pth file. Links of such a file lead
        nowhere further, so a checkout that is installed there is not borrowed.
Rule 2. Commands run with a small environment of variables: none of the tests' own reach them.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.signposts import ROOT, SIGNPOSTS

__all__ = ["BUILD_REQUIREMENT", "Installation", "copy_sources"]

BUILD_REQUIREMENT: Final = (77, 0, 3)
"""The version of setuptools that pyproject.toml asks for."""
_FILES: Final = (
    *("ARCHITECTURE.md", "CHANGELOG.md", "Dockerfile", "LICENSE", "MANIFEST.in", "README.md", "SECURITY.md"),
    "pyproject.toml",
)
_PIP: Final = ("--no-deps", "--no-index", "--no-build-isolation", "--ignore-installed", "--no-compile", "--quiet")


def copy_sources(target: Path) -> Path:
    """Copy what a checkout has to build from, its links included, and stand-ins for what is left out of a build."""
    target.mkdir()
    for name in _FILES:
        shutil.copy2(ROOT / name, target)
    shutil.copytree(ROOT / "ambermq", target / "ambermq", symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("contrib", "docs"):
        shutil.copytree(ROOT / name, target / name)
    for name in SIGNPOSTS:
        (target / name).symlink_to((ROOT / name).readlink())
    for name in ("bench", "tests"):
        (target / name).mkdir()
        (target / name / "__init__.py").touch()
        (target / name / "test_planted.py").touch()
    return target


class Installation:
    """A virtual environment with AmberMQ in it."""

    def __init__(self, directory: Path, installed: Sequence[str]) -> None:
        """Make it in a new directory; `installed` is what pip is asked to install."""
        venv.create(directory, symlinks=True, with_pip=False)
        self.python = directory / "bin" / "python"
        self.command = directory / "bin" / "ambermq"
        self.packages = Path(sysconfig.get_path("purelib", "venv", {"base": str(directory)}))
        borrowed = [path for path in sys.path if Path(path).name in {"site-packages", "dist-packages"}]
        (self.packages / "borrowed.pth").write_text("\n".join(borrowed))
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(self.python)]
        done = subprocess.run([*pip, "install", *_PIP, *installed], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    def run(
        self, *words: str, cwd: Path, variables: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run the command `ambermq` to its end."""
        return self.run_program(str(self.command), *words, cwd=cwd, variables=variables)

    def run_program(
        self, *command: str, cwd: Path, variables: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run any program to its end, with few variables."""
        return subprocess.run(
            command, cwd=cwd, env=few_variables(variables), capture_output=True, text=True, timeout=60, check=False
        )


def few_variables(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return an environment with little in it but `more`."""
    return {name: os.environ[name] for name in ("HOME", "LANG", "PATH") if name in os.environ} | dict(more or {})
