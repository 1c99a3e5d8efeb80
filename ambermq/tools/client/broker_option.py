"""What a command works on: a broker by URL, or a data directory, whose running broker is found by itself.

Rule 1: exactly one of the two; a flag beats the environment, and of two flags, or two variables without a flag, neither
        is preferred: that is a wrong command line.
Rule 2: a running broker writes its pid and URL as JSON into DIR/lock, and into those of its other virtual hosts. The
        text outlives a SIGKILL, so the pid is asked too; the lock itself is not touched, since a starting broker could
        take that for another broker.
Rule 3: `--vhost` stands beside both and says which virtual host of the broker, or of the directory, is meant. Commands
        need not know: click's context remembers it, and whoever asks here for a URL or a log gets that one's.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import click
import msgspec

from ambermq.log.manifest.manifest import MANIFEST_NAME
from ambermq.log.manifest.vhost_directories import load_root
from ambermq.log.manifest.vhost_manifest import DEFAULT_VHOST, vhosts_path
from ambermq.log.manifest.writer_lock import lock_path, read_holder
from ambermq.log.storage.disk import DiskStorage
from ambermq.tools.client.broker_url import vhost_path
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode

__all__ = [
    "DATA_VARIABLE",
    "URL_VARIABLE",
    "Holder",
    "asked_vhost",
    "broker_options",
    "broker_url",
    "data_directory",
    "data_option",
    "directory_option",
    "holder_of",
    "log_directory",
    "log_of_vhost",
    "place_options",
    "running_broker",
    "vhost_directory",
    "write_holder",
]

URL_VARIABLE = "AMBERMQ_URL"
_VHOST_KEY = "ambermq.vhost"
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
    """Give a command `--url`, `--data` and `--vhost`; they arrive as `url` and `data`, for `broker_url`."""
    return place_options(_vhost_option(command))


def data_option(command: _Command) -> _Command:
    """Give a command `--data` and `--vhost`; they arrive as `data`, for `log_directory`."""
    return directory_option(_vhost_option(command))


def _vhost_option(command: _Command) -> _Command:
    def remember(context: click.Context, _option: click.Parameter, name: str) -> None:
        context.meta[_VHOST_KEY] = name

    return click.option(
        "--vhost",
        metavar="V",
        default=DEFAULT_VHOST,
        show_default=True,
        expose_value=False,
        callback=remember,
        help="Virtual host.",
    )(command)


def asked_vhost() -> str:
    """Return the virtual host that the command that runs is about."""
    context = click.get_current_context(silent=True)
    return DEFAULT_VHOST if context is None else str(context.meta.get(_VHOST_KEY, DEFAULT_VHOST))


def place_options(command: _Command) -> _Command:
    """Give a command `--url` and `--data` alone; they arrive as `url` and `data`, for `broker_url`."""
    command = click.option(
        "--data", metavar="DIR", help=f"Data directory of a running broker. Default: {DATA_VARIABLE}."
    )(command)
    return click.option(
        "--url", metavar="URL", help=f"Broker, as amqp://[USER:PASSWORD@]HOST:PORT. Default: {URL_VARIABLE}."
    )(command)


def directory_option(command: _Command) -> _Command:
    """Give a command `--data` alone; it arrives as `data`, for `data_directory`."""
    return click.option("--data", metavar="DIR", help=f"Data directory of the broker. Default: {DATA_VARIABLE}.")(
        command
    )


def broker_url(url: str | None, data: str | None) -> str:
    """Return the URL of the broker that options and environment name; UsageError or ToolError where there is none."""
    if url and data:
        raise click.UsageError("give --url or --data, not both")
    if not url and not data:
        url, data = os.environ.get(URL_VARIABLE), os.environ.get(DATA_VARIABLE)
        if url and data:
            raise click.UsageError(f"{URL_VARIABLE} and {DATA_VARIABLE} are both set: give --url or --data")
    if url:
        return _with_vhost(url)
    if data:
        return running_broker(vhost_directory(data), served=data).url
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


def vhost_directory(data: str | None) -> str:
    """Return where the log of the virtual host lies that options or environment name; ToolError where there is none."""
    return log_of_vhost(data_directory(data), asked_vhost())


def log_of_vhost(directory: str, name: str) -> str:
    """Return where the log of a virtual host lies below a data directory; ToolError where there is none."""
    if name == DEFAULT_VHOST:
        return directory
    root = load_root(DiskStorage(), directory)
    below = root.directory_of(name)
    if below is None:
        names = ", ".join([DEFAULT_VHOST, *(vhost.name for vhost in root.vhosts)])
        raise ToolError(f"no virtual host {name!r}", where=directory, found=names, code=ExitCode.NOT_FOUND)
    return f"{vhosts_path(directory)}/{below}"


def log_directory(data: str | None) -> str:
    """Return where the log lies that options or environment name; ToolError where none does."""
    directory = vhost_directory(data)
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


def running_broker(directory: str, *, served: str | None = None) -> Holder:
    """Return who runs on a directory; ToolError where nobody does.

    `served` is the broker's own directory, where `directory` is that of one of its virtual hosts.
    """
    holder = holder_of(data_directory(directory))
    if holder is None:
        raise ToolError(
            "no broker runs on this directory",
            where=directory,
            advice=f"start one: ambermq serve --data {served or directory}",
            code=ExitCode.CANNOT_CONNECT,
        )
    return holder


def holder_of(directory: str) -> Holder | None:
    """Return the living broker that the lock file of a directory names, None where there is none."""
    try:
        return msgspec.convert(read_holder(directory), Holder | None)
    except msgspec.ValidationError:
        return None


def write_holder(directory: str, pid: int, url: str) -> None:
    """Say in the lock file of a directory which broker holds it, and of which file that is said."""
    path = Path(lock_path(directory))
    held = {"pid": pid, "url": url, "inode": path.stat().st_ino}
    path.write_bytes(msgspec.json.encode(held) + b"\n")


def _with_vhost(url: str) -> str:
    name = asked_vhost()
    return url if name == DEFAULT_VHOST else urlsplit(url)._replace(path=vhost_path(name)).geturl()
