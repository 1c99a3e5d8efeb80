"""Reading logs with little weight: whoever serves on this machine goes first.

Rule 1. A command that reads a log steps back before it reads, and where it can before it imports what it needs: that
alone keeps a processor busy for a quarter of a second.
Rule 2. It does so whether or not a broker runs; where nobody else wants the processor that costs it nothing.
Rule 3. Beside a running broker it also reads at a pace (paced_storage.py).
"""

import os
from contextlib import suppress
from typing import Any, Final

import click

from ambermq.tools.client.broker_option import log_directory
from ambermq.tools.terminal.lazy_group import LazyGroup

__all__ = ["ReadingGroup", "directory_to_read", "step_back"]

_NICENESS: Final = 10


def step_back() -> None:
    """Let others go before this process, from now on and for good."""
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, max(_NICENESS, os.getpriority(os.PRIO_PROCESS, 0)))


def directory_to_read(data: str | None) -> str:
    """Return where the log lies that options or environment name, and step back; raises as `log_directory`."""
    directory = log_directory(data)
    step_back()
    return directory


class ReadingGroup(LazyGroup):
    """A lazy group all of whose lazy commands read logs."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Find the command that is to be run; what is lazy steps back before it is imported."""
        if args and self.is_lazy(args[0]):
            step_back()
        return super().resolve_command(ctx, args)
