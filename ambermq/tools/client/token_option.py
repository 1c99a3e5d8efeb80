"""The option with the inherited descriptor from which a child process of the broker reads its one-time token."""

import os
from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode

__all__ = ["TOKEN_OPTION", "read_token", "token_option"]

TOKEN_OPTION: Final = "--token-fd"  # noqa: S105 - the name of an option
_TOKEN_BYTES_MAX: Final = 1024

_Command = TypeVar("_Command", bound=Callable[..., Any])


def token_option(command: _Command) -> _Command:
    """Add the hidden option `--token-fd` to a command, as the parameter `token_fd` for `read_token`."""
    text = "Descriptor of a pipe with a one-time token; only the broker sets it."
    return click.option(TOKEN_OPTION, type=click.IntRange(0), metavar="FD", hidden=True, help=text)(command)


def read_token(fd: int) -> str:
    """Return the token in a descriptor and close it, so that no child inherits it; raise ToolError if there is none."""
    try:
        with os.fdopen(fd, "rb") as file:
            token = file.read(_TOKEN_BYTES_MAX).decode("ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise _no_token(fd, str(error)) from error
    if not token:
        raise _no_token(fd, "nothing")
    return token


def _no_token(fd: int, found: str) -> ToolError:
    return ToolError(
        "the token cannot be read",
        where=f"{TOKEN_OPTION} {fd}",
        expected="the descriptor of a pipe from the broker",
        found=found,
        advice="leave out the option: only the broker sets it",
        code=ExitCode.USAGE,
    )
