"""One column of the matrix: a client, what it needs, and how its driver is built and run.

Rule. Whatever a build makes lies below `build/interop/` or in an ignored directory beside the driver.
"""

import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["BUILD", "HERE", "BuildFailed", "Client"]

HERE: Final = Path(__file__).parent
BUILD: Final = HERE.parents[2] / "build" / "interop"
_BUILD_SECONDS: Final = 1200.0
_WORDS_MAX: Final = 300


class BuildFailed(Exception):
    """The toolchain is there, and its build went wrong; the message is its last words."""


@dataclass(frozen=True, slots=True)
class Client:
    """A client library."""

    name: str
    title: str
    """What people call it, with its language."""
    version: Callable[[], str]
    """Which one is driven, as its manifest pins it or as it is installed."""
    tools: tuple[str, ...]
    """The programs that must be on the path."""
    builds: tuple[tuple[str, ...], ...]
    """Commands that make the driver; they do little where it is made."""
    command: tuple[str, ...]
    """The driver; the URL and the names of behaviours follow."""
    place: Path
    """The directory in which all of that is run."""
    is_built: Callable[[], bool] = bool
    """Whether there is nothing to build; a toolchain that sees that by itself is asked each time."""
    is_framework: bool = False
    """Whether a client library below it encodes its messages: `tests/golden/clients` does not record them again."""

    def missing(self) -> list[str]:
        """Return the programs that are not on the path."""
        return [tool for tool in self.tools if shutil.which(tool) is None]

    def build(self) -> None:
        """Make the driver where it is not made; BuildFailed tells the toolchain's last words."""
        if self.is_built():
            return
        BUILD.mkdir(parents=True, exist_ok=True)
        for command in self.builds:
            self._make(command)

    def _make(self, command: tuple[str, ...]) -> None:
        try:
            done = subprocess.run(
                command,
                cwd=self.place,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_BUILD_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as slow:
            raise BuildFailed(f"{command[0]} took more than {_BUILD_SECONDS:.0f} s") from slow
        if done.returncode:
            words = " ".join((done.stdout + done.stderr).split())[-_WORDS_MAX:]
            raise BuildFailed(f"{' '.join(command)}: exit code {done.returncode}: {words}")
