"""A command group that has its commands by name and imports a command when it runs.

Rule: the table has "module:attribute" and the first line of help of each command, so a listing imports no command.
A test compares those lines with the commands' own help.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

import click

from ambermq.tools.terminal.errors import TranslatingGroup

__all__ = ["LazyGroup"]

_SUMMARY_WIDTH_MAX: Final = 70
"""The maximum length of a first line of help: a terminal of 80 columns shows all of it."""


class LazyGroup(TranslatingGroup):
    """A group that imports each command at its first use."""

    def __init__(self, *arguments: Any, lazy: Mapping[str, tuple[str, str]], **attributes: Any) -> None:
        """Create a group; `lazy` maps a command's name to ("module:attribute", first line of help)."""
        super().__init__(*arguments, **attributes)
        self._lazy = dict(lazy)

    def is_lazy(self, name: str) -> bool:
        """Return whether the command is imported at its first use."""
        return name in self._lazy

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, sorted."""
        return sorted({*super().list_commands(ctx), *self._lazy})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, and import it if it is lazy; None if there is no command of that name."""
        if cmd_name in self._lazy and cmd_name not in self.commands:
            module, _, attribute = self._lazy[cmd_name][0].partition(":")
            self.add_command(getattr(import_module(module), attribute), cmd_name)
        return super().get_command(ctx, cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without an import."""
        rows = [(name, self._summary(name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def _summary(self, name: str) -> str:
        if name in self._lazy:
            return self._lazy[name][1]
        return self.commands[name].get_short_help_str(_SUMMARY_WIDTH_MAX)
