"""A command group that knows its commands by name and imports one when it is run.

Rule: a command is named as "module:attribute" beside its one-line help, the first sentence of the command's own, so
that listing the commands imports none of them. A test holds both sentences equal.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

import click

from ambermq.tools.terminal.errors import TranslatingGroup

__all__ = ["LazyGroup"]

_SUMMARY_WIDTH_MAX: Final = 70
"""A first line of help is no longer, so a terminal of 80 columns shows all of it."""


class LazyGroup(TranslatingGroup):
    """A group of commands that are imported one by one, each when it is asked for."""

    def __init__(self, *arguments: Any, lazy: Mapping[str, tuple[str, str]], **attributes: Any) -> None:
        """Take a group's arguments, and the commands: name to ("module:attribute", help in one line)."""
        super().__init__(*arguments, **attributes)
        self._lazy = dict(lazy)

    def is_lazy(self, name: str) -> bool:
        """Tell whether a command of this name is imported when it is asked for."""
        return name in self._lazy

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, sorted."""
        return sorted({*super().list_commands(ctx), *self._lazy})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, imported now if it is one of the lazy ones; None where there is none of that name."""
        if cmd_name in self._lazy and cmd_name not in self.commands:
            module, _, attribute = self._lazy[cmd_name][0].partition(":")
            self.add_command(getattr(import_module(module), attribute), cmd_name)
        return super().get_command(ctx, cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands, importing none."""
        rows = [(name, self._summary(name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def _summary(self, name: str) -> str:
        if name in self._lazy:
            return self._lazy[name][1]
        return self.commands[name].get_short_help_str(_SUMMARY_WIDTH_MAX)
