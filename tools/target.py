"""What a command works on: a broker by URL, or a data directory, whose running broker is found by itself.

Rule 1: exactly one of the two; a flag beats the environment, and of two flags, or two variables without a flag, neither
        is preferred: that is a wrong command line.
Rule 2: a running broker writes its pid and URL as JSON into DIR/lock. The text outlives a SIGKILL, so the pid is asked
        too; the lock itself is not touched, since a starting broker could take that for another broker.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec

from log.manifest import MANIFEST_NAME
from tools.errors import ToolError
from tools.exit_codes import ExitCode

__all__ = [
    "DATA_VARIABLE",
    "URL_VARIABLE",
    "Holder",
    "broker_options",
    "broker_url",
    "data_directory",
    "data_option",
    "holder_of",
    "holder_text",
    "log_directory",
]

URL_VARIABLE = "AMBERMQ_URL"
DATA_VARIABLE = "AMBERMQ_DATA"

_Command = TypeVar("_Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Holder:
    """The broker that runs on a directory, as its lock file says."""

    pid: int
    """Its process."""
    url: str
    """Where it listens."""


def broker_options(command: _Command) -> _Command:
    """Give a command `--url` and `--data`; they arrive as `url` and `data`, for `broker_url`."""
    command = click.option("--data", metavar="DIR", help=f"Or the directory of a running one; else {DATA_VARIABLE}.")(
        command
    )
    return click.option(
        "--url", metavar="URL", help=f"The broker, as amqp://[USER:PASSWORD@]HOST:PORT; else {URL_VARIABLE}."
    )(command)


def data_option(command: _Command) -> _Command:
    """Give a command `--data` alone; it arrives as `data`, for `data_directory`."""
    return click.option("--data", metavar="DIR", help=f"The broker's data directory; else {DATA_VARIABLE}.")(command)


def broker_url(url: str | None, data: str | None) -> str:
    """Return the URL of the broker that options and environment name; UsageError or ToolError where there is none."""
    if url and data:
        raise click.UsageError("give --url or --data, not both")
    if not url and not data:
        url, data = os.environ.get(URL_VARIABLE), os.environ.get(DATA_VARIABLE)
        if url and data:
            raise click.UsageError(f"{URL_VARIABLE} and {DATA_VARIABLE} are both set: give --url or --data")
    if url:
        return url
    if data:
        return running_broker(data).url
    raise click.UsageError(f"no broker named: give --url or --data, or set {URL_VARIABLE} or {DATA_VARIABLE}")


def data_directory(data: str | None, *, must_exist: bool = True) -> str:
    """Return the directory that option or environment names; UsageError where there is none."""
    directory = data or os.environ.get(DATA_VARIABLE)
    if not directory:
        raise click.UsageError(f"no directory named: give --data, or set {DATA_VARIABLE}")
    if must_exist and not Path(directory).is_dir():
        raise ToolError(
            "no such directory",
            where=directory,
            expected="the data directory of a broker",
            advice="check --data",
            code=ExitCode.NOT_FOUND,
        )
    return directory


def log_directory(data: str | None) -> str:
    """Return the directory that option or environment names; ToolError where no log lies there."""
    directory = data_directory(data)
    if not (Path(directory) / MANIFEST_NAME).exists():
        raise ToolError(
            "no log here",
            where=directory,
            expected=f"a file {MANIFEST_NAME}",
            found="none",
            advice="if there was one, run `ambermq log repair --dry-run`",
            code=ExitCode.NOT_FOUND,
        )
    return directory


def running_broker(directory: str) -> Holder:
    """Return who runs on a directory; ToolError where nobody does."""
    holder = holder_of(data_directory(directory))
    if holder is None:
        raise ToolError(
            "no broker runs on this directory",
            where=directory,
            advice=f"start one: ambermq serve --data {directory}",
            code=ExitCode.CANNOT_CONNECT,
        )
    return holder


def holder_of(directory: str) -> Holder | None:
    """Return the living broker that the lock file of a directory names, None where there is none."""
    try:
        text = (Path(directory) / "lock").read_bytes()
        holder = msgspec.json.decode(text, type=Holder)
    except (OSError, msgspec.DecodeError):
        return None
    return holder if _is_alive(holder.pid) else None


def holder_text(pid: int, url: str) -> str:
    """Return what a broker writes into its lock file."""
    return msgspec.json.encode({"pid": pid, "url": url}).decode() + "\n"


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
