"""The command line of a child process that runs `ambermq`, and the check that the child runs the same package.

Rule 1. `-P` keeps the working directory out of the child's import path. PYTHONPATH stays in it: it is the user's.
Rule 2. The child gets the directory of its parent's package as an argument. It ends if its own package lies elsewhere.
Rule 3. A foreign package named `ambermq` makes no such check, so the parent searches PYTHONPATH for one first.
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
    """Return the command line that runs `ambermq` as a child; raise ToolError if PYTHONPATH has another one."""
    directory = _own_directory()
    found = _directory_on_path(os.environ.get(_PATH_VARIABLE, ""))
    if found is not None and found != directory:
        raise _another_package(directory, found)
    return [sys.executable, "-P", "-m", _PACKAGE, DIRECTORY_OPTION, str(directory), *arguments]


def check_package_directory(expected: str) -> None:
    """Raise ToolError if this process runs another package than its parent, whose package is in `expected`."""
    found = _own_directory()
    if found != Path(expected).resolve():
        raise _another_package(Path(expected), found)


def _own_directory() -> Path:
    """Return the directory of the package that runs."""
    return Path(ambermq.__file__).resolve().parent


def _directory_on_path(path: str) -> Path | None:
    """Return the directory of the package `ambermq` on an import path; None if there is none."""
    spec = PathFinder.find_spec(_PACKAGE, path.split(os.pathsep)) if path else None
    if spec is None:
        return None
    # A directory without __init__.py has no origin, and is imported only if no other directory has one.
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
