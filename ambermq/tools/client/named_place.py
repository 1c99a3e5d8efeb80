"""The place where a command works: a broker's URL or a data directory, from options, environment or a context.

Rule 1. Options go before the environment, and that before the current context. `--context` is an option.
Rule 2. A place is one URL or one directory. Two names of one rank are an error of the command line.
Rule 3. The files of a context are used only with its own place: no password goes to another broker. An option and a
        variable go before them.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, NamedTuple, TypeVar

import click
from click.shell_completion import CompletionItem

from ambermq.tools.client.context_file import Context, load_contexts
from ambermq.tools.client.password_option import offer_password_file
from ambermq.tools.client.tls_option import TlsFiles, offer_tls_files
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.variables import read_variable

__all__ = [
    "CONTEXT_VARIABLE",
    "DATA_VARIABLE",
    "URL_VARIABLE",
    "Place",
    "complete_context",
    "context_in_force",
    "context_option",
    "named_directory",
    "named_place",
    "overriding_variable",
]

CONTEXT_VARIABLE: Final = "AMBERMQ_CONTEXT"
DATA_VARIABLE: Final = "AMBERMQ_DATA"
URL_VARIABLE: Final = "AMBERMQ_URL"
_KEY: Final = "ambermq.context"
_OPTION: Final = "--context"

_Command = TypeVar("_Command", bound=Callable[..., Any])


class Place(NamedTuple):
    """A broker's URL or a data directory; both are empty if nothing names one."""

    url: str = ""
    data: str = ""
    source: str = ""
    """What names it: an option, a variable, or a context."""


def context_option(command: _Command) -> _Command:
    """Add `--context` to a command, for `named_place` and `named_directory`."""

    def store(context: click.Context, _option: click.Parameter, name: str | None) -> None:
        context.meta[_KEY] = name

    return click.option(
        _OPTION,
        metavar="NAME",
        expose_value=False,
        callback=store,
        shell_complete=complete_context,
        help="Broker of this name: see `ambermq context`.",
    )(command)


def named_place(url: str | None, data: str | None) -> Place:
    """Return the place that options, environment or context name. Raises UsageError and ToolError."""
    named = _named_by_option()
    if url and data:
        raise click.UsageError("give --url or --data, not both")
    if named and (url or data):
        raise click.UsageError("give --context, --url or --data, one of them")
    if url or data:
        return Place(url or "", data or "", "--url" if url else "--data")
    if named:
        return _place_of(named, _OPTION)
    url, data = read_variable(URL_VARIABLE), read_variable(DATA_VARIABLE)
    if url and data:
        raise click.UsageError(f"{URL_VARIABLE} and {DATA_VARIABLE} are both set: give --url or --data")
    if url or data:
        return Place(url, data, URL_VARIABLE if url else DATA_VARIABLE)
    name, source = context_in_force()
    return _place_of(name, source) if name else Place()


def named_directory(data: str | None) -> Place:
    """Return the directory of a command that knows no URL, in the same way; a URL of the environment is no place."""
    named = _named_by_option()
    if named and click.get_current_context().params.get("data"):
        raise click.UsageError("give --context or --data, one of them")
    if data:
        return Place(data=data, source="--data")
    if not named and (variable := read_variable(DATA_VARIABLE)):
        return Place(data=variable, source=DATA_VARIABLE)
    if not named and read_variable(URL_VARIABLE):
        return Place()
    return named_place(None, None)


def context_in_force() -> tuple[str, str]:
    """Return the name of the context that holds without --url and --data, and what names it; empty for none."""
    if named := _named_by_option():
        return named, _OPTION
    if variable := read_variable(CONTEXT_VARIABLE):
        return variable, CONTEXT_VARIABLE
    return load_contexts().current, "the current context"


def overriding_variable() -> str:
    """Return the variable that names a broker or a directory, and so goes before any context; empty for none."""
    if _named_by_option():
        return ""
    return next((name for name in (URL_VARIABLE, DATA_VARIABLE) if read_variable(name)), "")


def complete_context(_context: click.Context, _option: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the contexts whose names begin with a text; none if the file is damaged."""
    with suppress(ToolError):
        return [CompletionItem(name) for name in sorted(load_contexts().contexts) if name.startswith(incomplete)]
    return []


def _named_by_option() -> str:
    context = click.get_current_context(silent=True)
    return "" if context is None else context.meta.get(_KEY) or ""


def _place_of(name: str, source: str) -> Place:
    context: Context = load_contexts().named(name, source)
    offer_password_file(context.password_file)
    offer_tls_files(TlsFiles(context.tls_ca, context.tls_cert, context.tls_key))
    return Place(context.url, context.data, f"context {name!r}")
