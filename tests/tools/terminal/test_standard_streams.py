"""Commands whose standard streams were closed, or cannot be written."""

import subprocess
import sys
from pathlib import Path

import pytest

from ambermq.tools.terminal.exit_codes import ExitCode

_TOOLS = (sys.executable, "-m", "ambermq")


def ended(redirection: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a command as a shell does with this redirection."""
    command = ("sh", "-c", f'exec "$@" {redirection}', "sh", *_TOOLS, *map(str, arguments))
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "command", [("--version",), ("snapshot", "list", "--data"), ("serve", "--port", "0", "--data"), ("queue", "--help")]
)
def test_without_a_standard_output_nothing_is_done(command: tuple[str, ...], tmp_path: Path) -> None:
    """One message, the exit code of a wrong command line, and no directory is made."""
    arguments = (*command, tmp_path / "data") if command[-1] == "--data" else command
    result = ended(">&-", *arguments)
    assert result.returncode == ExitCode.USAGE
    assert result.stderr.startswith("error: standard output is closed; ")
    assert result.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", [("--version",), ("history", "--help")])
def test_an_output_that_cannot_be_written_is_told(command: tuple[str, ...]) -> None:
    """One line, whatever wanted to print."""
    result = ended(">/dev/full", *command)
    assert result.returncode == ExitCode.FAILED
    assert result.stderr == "error: No space left on device\n"


def test_without_the_other_two_a_command_runs(tmp_path: Path) -> None:
    """The command reads nothing, its messages are dropped, and its exit code is the same."""
    result = ended("<&- 2>&-", "queue", "list", "--data", tmp_path)
    assert (result.returncode, result.stdout, result.stderr) == (ExitCode.CANNOT_CONNECT, "", "")
    assert ended("<&- 2>&-", "--version").stdout.startswith("ambermq")
