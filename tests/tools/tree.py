"""The tree of commands, those among them that are imported only when they run."""

import click

__all__ = ["children"]


def children(command: click.Command) -> dict[str, click.Command]:
    """Return the commands right below one by name, none below one that is no group."""
    if not isinstance(command, click.Group):
        return {}
    context = click.Context(command)
    found = {name: command.get_command(context, name) for name in command.list_commands(context)}
    return {name: child for name, child in found.items() if child is not None}
