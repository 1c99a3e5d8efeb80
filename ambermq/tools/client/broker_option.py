"""The options --url, --data, --context and --vhost: a broker by URL, or a data directory with its running broker.

Rule 1: a command takes exactly one of --url, --data and --context (named_place.py).
Rule 2: a running broker writes its process id, URL and unix socket as JSON to the lock file of each virtual host. The
        text outlives a SIGKILL, so the process id is checked. The lock is not taken, since that would stop a starting
        broker.
Rule 3: --vhost names a virtual host of the broker or of the directory. click's context has its value, so the functions
        here return the URL or the log of that virtual host, and no command passes the name on.
Rule 4: --vhost and the URL of --url may not name different virtual hosts. --vhost goes before the URL of AMBERMQ_URL.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import click
import msgspec
from click.core import ParameterSource

from ambermq.log.manifest.manifest import MANIFEST_NAME
from ambermq.log.manifest.vhost_directories import load_root
from ambermq.log.manifest.vhost_manifest import DEFAULT_VHOST, vhosts_path
from ambermq.log.manifest.writer_lock import lock_path, read_holder
from ambermq.log.storage.disk import DiskStorage
from ambermq.tools.client.broker_url import BrokerUrl, vhost_path
from ambermq.tools.client.named_place import (
    CONTEXT_VARIABLE,
    DATA_VARIABLE,
    URL_VARIABLE,
    context_option,
    named_directory,
    named_place,
)
from ambermq.tools.client.password_option import password_option
from ambermq.tools.client.tls_option import tls_options
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode

__all__ = [
    "RunningBroker",
    "broker_of_directory",
    "broker_options",
    "broker_url",
    "current_vhost",
    "data_directory",
    "data_option",
    "directory_option",
    "log_directory",
    "log_of_vhost",
    "place_options",
    "running_broker",
    "url_options",
    "vhost_directory",
    "write_holder",
]

_VHOST_KEY = "ambermq.vhost"
_IS_NAMED_KEY = "ambermq.is-vhost-named"
"""Whether the command line has --vhost: its default value is a name, too."""

_Command = TypeVar("_Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class RunningBroker:
    """The running broker of a directory, from its lock file."""

    pid: int
    """The process id."""
    url: str
    """The URL of the broker for clients on the network."""
    socket: str = ""
    """The path of its unix socket, @NAME for an abstract name; empty: it has none."""

    @property
    def local_url(self) -> str:
        """The URL for a command of the broker's user: the unix socket, which needs no password, if it can be used."""
        is_usable = self.socket.startswith("@") or (bool(self.socket) and os.access(self.socket, os.W_OK))
        vhost = "" if self.url.startswith("ws") else BrokerUrl.parse(self.url).vhost
        return str(BrokerUrl.of_socket(self.socket, vhost)) if is_usable else self.url


def broker_options(command: _Command) -> _Command:
    """Add `--url`, `--data` and `--vhost` to a command, as the parameters `url` and `data` for `broker_url`."""
    return place_options(_vhost_option(command))


def data_option(command: _Command) -> _Command:
    """Add `--data` and `--vhost` to a command, as the parameter `data` for `log_directory`."""
    return directory_option(_vhost_option(command))


def _vhost_option(command: _Command) -> _Command:
    def store(context: click.Context, option: click.Parameter, name: str) -> None:
        context.meta[_VHOST_KEY] = name
        context.meta[_IS_NAMED_KEY] = context.get_parameter_source(option.name or "") is not ParameterSource.DEFAULT

    return click.option(
        "--vhost",
        metavar="V",
        default=DEFAULT_VHOST,
        show_default=True,
        expose_value=False,
        callback=store,
        help="Virtual host.",
    )(command)


def current_vhost() -> str:
    """Return the value of `--vhost` of the current command."""
    context = click.get_current_context(silent=True)
    return DEFAULT_VHOST if context is None else str(context.meta.get(_VHOST_KEY, DEFAULT_VHOST))


def place_options(command: _Command) -> _Command:
    """Add `--url`, `--data`, `--context`, TLS and `--password-file`; `url` and `data` are for `broker_url`."""
    return url_options(password_option(command))


def url_options(command: _Command) -> _Command:
    """Add `--url`, `--data`, `--context` and those of TLS, to a command that has another use for `--password-file`."""
    command = context_option(tls_options(command))
    command = click.option(
        "--data", metavar="DIR", help=f"Data directory of a running broker. Default: {DATA_VARIABLE}."
    )(command)
    return click.option("--url", metavar="URL", help=f"Broker, as amqp://[USER@]HOST:PORT. Default: {URL_VARIABLE}.")(
        command
    )


def directory_option(command: _Command) -> _Command:
    """Add `--data` and `--context` to a command, as the parameter `data` for `data_directory`."""
    option = click.option("--data", metavar="DIR", help=f"Data directory of the broker. Default: {DATA_VARIABLE}.")
    return option(context_option(command))


def broker_url(url: str | None, data: str | None) -> str:
    """Return the broker's URL from options, environment or context. Raises UsageError and ToolError."""
    place = named_place(url, data)
    if place.url:
        return _with_vhost(place.url, is_option=bool(url))
    if place.data:
        return running_broker(vhost_directory(place.data), served=place.data).local_url
    raise click.UsageError(
        "no broker named: give --url, --data or --context, or set "
        f"{URL_VARIABLE}, {DATA_VARIABLE} or {CONTEXT_VARIABLE}"
    )


def data_directory(data: str | None, *, must_exist: bool = True) -> str:
    """Return the data directory in option, environment or context; raise UsageError if there is none."""
    place = named_directory(data)
    directory = place.data
    if not directory:
        named = f": {place.source} names a URL" if place.url else ""
        raise click.UsageError(f"no directory named{named}: give --data, or set {DATA_VARIABLE}")
    if must_exist and not Path(directory).is_dir():
        raise ToolError(
            "not a directory" if Path(directory).exists() else "no such directory",
            where=directory,
            expected="the data directory of a broker",
            advice="check --data",
            code=ExitCode.NOT_FOUND,
        )
    return directory


def vhost_directory(data: str | None) -> str:
    """Return the log directory of the virtual host in the options; raise ToolError if there is no such virtual host."""
    return log_of_vhost(data_directory(data), current_vhost())


def log_of_vhost(directory: str, name: str) -> str:
    """Return the log directory of a virtual host; raise ToolError if there is no such virtual host."""
    if name == DEFAULT_VHOST:
        return directory
    root = load_root(DiskStorage(), directory)
    below = root.directory_of(name)
    if below is None:
        names = ", ".join([DEFAULT_VHOST, *(vhost.name for vhost in root.vhosts)])
        raise ToolError(f"no virtual host {name!r}", where=directory, found=names, code=ExitCode.NOT_FOUND)
    return f"{vhosts_path(directory)}/{below}"


def log_directory(data: str | None) -> str:
    """Return the log directory of the virtual host in the options; raise ToolError if it holds no log."""
    directory = vhost_directory(data)
    if not (Path(directory) / MANIFEST_NAME).exists():
        raise ToolError(
            "no log here",
            where=directory,
            expected=f"a file {MANIFEST_NAME}",
            found="none",
            advice="if it held one before, run `ambermq log repair --dry-run`",
            code=ExitCode.NOT_FOUND,
        )
    return directory


def running_broker(directory: str, *, served: str | None = None) -> RunningBroker:
    """Return the running broker of a directory; raise ToolError if there is none.

    `served` is the data directory, if `directory` is that of another virtual host.
    """
    holder = broker_of_directory(data_directory(directory))
    if holder is None:
        raise ToolError(
            "no broker runs on this directory",
            where=directory,
            advice=f"start one: ambermq serve --data {served or directory}",
            code=ExitCode.CANNOT_CONNECT,
        )
    return holder


def broker_of_directory(directory: str) -> RunningBroker | None:
    """Return the running broker in the lock file of a directory, None if there is none."""
    try:
        return msgspec.convert(read_holder(directory), RunningBroker | None)
    except msgspec.ValidationError:
        return None


def write_holder(directory: str, pid: int, url: str, socket: str = "") -> None:
    """Write process id, URL, unix socket and the inode of the lock file to the lock file of a directory."""
    path = Path(lock_path(directory))
    holder = {"pid": pid, "url": url, "inode": path.stat().st_ino} | ({"socket": socket} if socket else {})
    path.write_bytes(msgspec.json.encode(holder) + b"\n")


def _with_vhost(url: str, *, is_option: bool) -> str:
    """Return a URL with the virtual host of --vhost; `is_option` says whether the URL is that of --url.

    Raises UsageError if the URL is invalid, or if both options name different virtual hosts.
    """
    in_url = BrokerUrl.parse(url).vhost
    context, name = click.get_current_context(silent=True), current_vhost()
    if context is None or not context.meta.get(_IS_NAMED_KEY) or name == (in_url or DEFAULT_VHOST):
        return url
    if in_url and is_option:
        raise click.UsageError(f"--vhost names the virtual host {name!r}, and --url names {in_url!r}: give one of them")
    if url.startswith("unix:"):
        return str(replace(BrokerUrl.parse(url), vhost=name))
    return urlsplit(url)._replace(path=vhost_path(name)).geturl()
