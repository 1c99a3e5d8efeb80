"""Options that many commands share: former names, --dry-run and --yes.

Rule 1. An option with a new name takes its former one for two releases, hidden and with a warning.
Rule 2. A command that destroys asks on a terminal. Without a terminal it goes on and warns, for two releases; from then
        on it is refused without --yes.
Rule 3. With --dry-run a command checks what it would check, prints what it would do, and changes nothing.
"""

import sys
from collections.abc import Callable
from typing import Any, Final, TypeVar

import click
from click.core import ParameterSource

from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.output import printable

__all__ = ["REMOVAL", "confirm", "destructive_options", "dry_run_option", "renamed_option", "warn"]

REMOVAL: Final = "0.4"
"""The release in which former names end, and in which --yes is needed without a terminal."""
_YES_KEY: Final = "ambermq.yes"
_FORMER_KEY: Final = "ambermq.former."

_Command = TypeVar("_Command", bound=Callable[..., Any])


def warn(text: str) -> None:
    """Print a warning on standard error."""
    click.echo(f"warning: {printable(text)}", err=True)


class _RenamedOption(click.Option):
    """An option that takes the value of its former name."""

    def consume_value(self, ctx: click.Context, opts: Any) -> tuple[Any, ParameterSource]:
        """Return the value of this option, or that of its former name."""
        value, source = super().consume_value(ctx, opts)
        former = ctx.meta.get(f"{_FORMER_KEY}{self.name}")
        if former is None:
            return value, source
        old, given = former
        if source is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{old} is the former name of {self.opts[0]}: give one of them", ctx)
        return given, ParameterSource.COMMANDLINE


def renamed_option(old: str, new: str, parameter: str, **attributes: Any) -> Callable[[_Command], _Command]:
    """Add the option `new` to a command, which takes its former name `old` too, hidden and with a warning."""

    def store(context: click.Context, _option: click.Parameter, value: str | None) -> None:
        if value is not None:
            context.meta[f"{_FORMER_KEY}{parameter}"] = (old, value)
            warn(f"{old} is called {new} now; the former name ends with {REMOVAL}")

    def decorate(command: _Command) -> _Command:
        command = click.option(new, parameter, cls=_RenamedOption, **attributes)(command)
        # Eager: it is processed before the option that takes its value.
        former = click.option(
            old,
            f"former_{parameter}",
            hidden=True,
            is_eager=True,
            expose_value=False,
            callback=store,
            help=f"Former name of {new}.",
        )
        return former(command)

    return decorate


def dry_run_option(command: _Command) -> _Command:
    """Add the option `--dry-run` to a command, as the parameter `dry_run`."""
    return click.option("--dry-run", is_flag=True, help="Check and print what the command would do; change nothing.")(
        command
    )


def destructive_options(command: _Command) -> _Command:
    """Add `--yes` for `confirm`, and `--dry-run` as the parameter `dry_run`."""

    def store(context: click.Context, _option: click.Parameter, is_set: bool) -> None:
        context.meta[_YES_KEY] = is_set

    yes = click.option("--yes", is_flag=True, expose_value=False, callback=store, help="Do not ask.")
    return dry_run_option(yes(command))


def confirm(describe: Callable[[], str]) -> None:
    """Return if the command may destroy what `describe` names; raise ToolError if the answer is no.

    `describe` is called only on a terminal: it may ask the broker.
    """
    context = click.get_current_context()
    if context.meta.get(_YES_KEY):
        return
    if not _has_terminal():
        warn(f"`{context.command_path}` needs --yes without a terminal from {REMOVAL} on")
        return
    if not click.confirm(f"{printable(describe())}. Go on?", err=True):
        raise ToolError("nothing was changed", where=context.command_path)


def _has_terminal() -> bool:
    """Return whether a person can read a question and answer it."""
    return sys.stdin.isatty() and sys.stderr.isatty()
