"""`ambermq history`: the past of queues and messages, from the log of a running or a stopped broker.

Each command has a module of its own.
"""

from typing import Final

import click

from ambermq.tools.past.low_priority import ReadingGroup

__all__ = ["history"]

_COMMANDS: Final = {
    "diff": ("ambermq.tools.history.diff:diff", "Show what changed between two moments."),
    "message": (
        "ambermq.tools.history.message:message",
        "Show the whole story of the message with the message-id ID.",
    ),
    "queue": (
        "ambermq.tools.history.queue_over_time:queue",
        "Show depth, rates and oldest age of queue NAME over time.",
    ),
    "tail": ("ambermq.tools.history.tail:tail", "Print the last events, one a line; --follow prints new ones."),
}
"""The object and the first sentence of the help of each command, by name."""


@click.group(
    cls=ReadingGroup,
    lazy=_COMMANDS,
    epilog="Example: ambermq history diff --since 5 --until now --data ./data",
)
def history() -> None:
    """Show what happened to queues and messages, and when."""
