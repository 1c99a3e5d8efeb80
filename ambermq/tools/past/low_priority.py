"""Low scheduling priority for commands that read logs, so that a broker on the machine gets the processor first.

Rule 1. A command lowers its priority before it reads a log, and if possible before its imports: those alone use a
processor for 0.25 s.
Rule 2. It does so with and without a running broker. On an idle processor a low priority costs no time.
Rule 3. Beside a running broker it also limits its read rate (background_storage.py).
"""

import os
from contextlib import suppress
from typing import Any, Final

import click

from ambermq.tools.client.broker_option import log_directory
from ambermq.tools.terminal.lazy_group import LazyGroup

__all__ = ["ReadingGroup", "directory_to_read", "lower_priority"]

_NICENESS: Final = 10


def lower_priority() -> None:
    """Lower the scheduling priority of this process for the rest of its run."""
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, max(_NICENESS, os.getpriority(os.PRIO_PROCESS, 0)))


def directory_to_read(data: str | None) -> str:
    """Return the log directory of the options or the environment, and lower the priority; raises as `log_directory`."""
    directory = log_directory(data)
    lower_priority()
    return directory


class ReadingGroup(LazyGroup):
    """A lazy group whose lazy commands all read logs."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Return the command to run; lower the priority before the import of a lazy one."""
        if args and self.is_lazy(args[0]):
            lower_priority()
        return super().resolve_command(ctx, args)
