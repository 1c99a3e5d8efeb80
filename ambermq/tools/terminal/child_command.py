"""The command line of a child process that runs `ambermq`, and the check that the child runs the same package.

Rule 1. `-P` keeps the working directory out of the child's import path. PYTHONPATH stays in it: it is the user's.
Rule 2. The child gets the directory of its parent's package as an argument, and ends where its own package lies
        elsewhere. A package of that name which is not AmberMQ cannot check: the parent finds that one beforehand.
"""

import os
import sys
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Final

import ambermq
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode

__all__ = ["DIRECTORY_OPTION", "check_package_directory", "child_command"]

DIRECTORY_OPTION: Final = "--package-directory"
_PACKAGE: Final = "ambermq"
_PATH_VARIABLE: Final = "PYTHONPATH"


def child_command(*arguments: str) -> list[str]:
    """Return the command line that runs `ambermq` as a child; ToolError where PYTHONPATH has another `ambermq`."""
    directory = _own_directory()
    found = _directory_on_path(os.environ.get(_PATH_VARIABLE, ""))
    if found is not None and found != directory:
        raise _another_package(directory, found)
    return [sys.executable, "-P", "-m", _PACKAGE, DIRECTORY_OPTION, str(directory), *arguments]


def check_package_directory(expected: str) -> None:
    """Raise ToolError where the parent's package, in the directory `expected`, is not the one that runs here."""
    found = _own_directory()
    if found != Path(expected).resolve():
        raise _another_package(Path(expected), found)


def _own_directory() -> Path:
    """Return the directory of the package that runs."""
    return Path(ambermq.__file__).resolve().parent


def _directory_on_path(path: str) -> Path | None:
    """Return the directory of the package `ambermq` that an import path has; None where it has none."""
    spec = PathFinder.find_spec(_PACKAGE, path.split(os.pathsep)) if path else None
    if spec is None:
        return None
    # A directory without __init__.py has no origin, and is imported only where no other has one.
    return None if spec.origin is None else Path(spec.origin).resolve().parent


def _another_package(expected: Path, found: Path) -> ToolError:
    return ToolError(
        f"another package {_PACKAGE} comes before that of the parent process",
        where="the import path of a child process",
        expected=str(expected),
        found=str(found),
        advice=f"remove its directory from {_PATH_VARIABLE}, or uninstall the other package",
        code=ExitCode.USAGE,
    )
