"""`ambermq history`: what happened, from the log of a broker that runs or has stopped. A file a command."""

from typing import Final

import click

from ambermq.tools.past.low_priority import ReadingGroup

__all__ = ["history"]

_COMMANDS: Final = {
    "diff": ("ambermq.tools.history.diff:diff", "Tell what came, went and changed between two moments."),
    "message": (
        "ambermq.tools.history.message:message",
        "Tell the story of the message with the message-id ID, or of the one published at offset N: offset:N.",
    ),
    "queue": (
        "ambermq.tools.history.queue_over_time:queue",
        "Show depth, rates and oldest age of the queue NAME over time.",
    ),
    "tail": ("ambermq.tools.history.tail:tail", "Print the last events, one a line; with --follow those to come."),
}
"""Name to where the command stands, and the first sentence of its help."""


@click.group(
    cls=ReadingGroup,
    lazy=_COMMANDS,
    epilog="Example: ambermq history diff --from 2026-11-21T22:33:53Z --to now --data ./data",
)
def history() -> None:
    """Tell what happened to queues and messages, and when."""
