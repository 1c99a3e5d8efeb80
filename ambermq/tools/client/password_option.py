"""Passwords of commands: in a file, from standard input or a terminal, and never on a command line, which `ps` shows.

Rule 1. A password in the URL goes before --password-file, that before AMBERMQ_PASSWORD_FILE, and that before the file
        of a context.
Rule 2. A file holds one password. One line end behind it is no part of it.
Rule 3. `-` is standard input. A new password is prompted for only on a terminal.
"""

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from ambermq.protocol.auth.verifier import PASSWORD_BYTES_MAX
from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode

__all__ = [
    "PASSWORD_VARIABLE",
    "client_password",
    "new_password",
    "offer_password_file",
    "password_option",
    "read_password",
]

PASSWORD_VARIABLE: Final = "AMBERMQ_PASSWORD_FILE"  # noqa: S105 - the name of a variable
_STANDARD_INPUT: Final = "-"
_KEY: Final = "ambermq.password-file"
_OFFERED_KEY: Final = "ambermq.password-file-of-context"
# A longer file is another file than the one that was meant.
_FILE_BYTES_MAX: Final = PASSWORD_BYTES_MAX + 2

_Command = TypeVar("_Command", bound=Callable[..., Any])


def password_option(command: _Command) -> _Command:
    """Add `--password-file` to a command, for `client_password`."""

    def store(context: click.Context, _option: click.Parameter, path: str | None) -> None:
        context.meta[_KEY] = path

    return click.option(
        "--password-file",
        metavar="FILE",
        expose_value=False,
        callback=store,
        help=f"File with the password of the user in the URL. Default: {PASSWORD_VARIABLE}.",
    )(command)


def offer_password_file(path: str) -> None:
    """Use the file of a context for this command, unless an option or the environment names one; empty for none."""
    context = click.get_current_context(silent=True)
    if context is not None:
        context.meta[_OFFERED_KEY] = path


def client_password(url: BrokerUrl) -> str:
    """Return the password of the user in a URL; empty if there is none."""
    if url.username is None or url.password:
        return url.password
    context = click.get_current_context(silent=True)
    meta: Mapping[str, str | None] = {} if context is None else context.meta
    path = meta.get(_KEY) or os.environ.get(PASSWORD_VARIABLE) or meta.get(_OFFERED_KEY)
    return read_password(path) if path else ""


def new_password(path: str | None) -> str:
    """Return a new password from a file, or from the terminal, which asks for it twice."""
    if path is not None:
        return read_password(path)
    if not sys.stdin.isatty():
        raise click.UsageError("give --password-file FILE, or `-` for standard input: there is no terminal to ask on")
    return str(click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True))


def read_password(path: str) -> str:
    """Return the password in a file, `-` for standard input. Raises ToolError."""
    try:
        if path == _STANDARD_INPUT:
            text = sys.stdin.buffer.read(_FILE_BYTES_MAX + 1)
        else:
            with Path(path).open("rb") as file:
                text = file.read(_FILE_BYTES_MAX + 1)
        password = text.removesuffix(b"\n").removesuffix(b"\r").decode()
    except UnicodeDecodeError as error:
        raise _bad(path, "UTF-8", "other bytes") from error
    except OSError as error:
        raise _bad(path, "a file with a password", error.strerror or str(error)) from error
    if not password or len(text) > _FILE_BYTES_MAX:
        found = "nothing" if not password else "more"
        raise _bad(path, f"a password of at most {PASSWORD_BYTES_MAX} bytes", found)
    return password


def _bad(path: str, expected: str, found: str) -> ToolError:
    where = "standard input" if path == _STANDARD_INPUT else path
    what = "the password cannot be read"
    return ToolError(what, where=where, expected=expected, found=found, code=ExitCode.USAGE)
