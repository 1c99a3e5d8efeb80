"""`ambermq history`: what happened, from the log of a broker that runs or has stopped. A file a command."""

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
"""Name to where the command stands, and the first sentence of its help."""


@click.group(
    cls=ReadingGroup,
    lazy=_COMMANDS,
    epilog="Example: ambermq history diff --from 2026-11-21T22:33:53Z --to now --data ./data",
)
def history() -> None:
    """Show what happened to queues and messages, and when."""
