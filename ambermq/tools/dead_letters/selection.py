"""The options that narrow the messages of a command: by source, reason, age, selector and number."""

import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeVar

import click

from ambermq.engine.entries.discard_reason import MoveReason
from ambermq.protocol.amqp10.types.values import Timestamp
from ambermq.tools.past.moment_option import AtTime, parse_when
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode

__all__ = ["Selection", "dead_letter_options", "narrowing_options", "selection_of"]

REASONS: Final = tuple(one.text for one in MoveReason if one.is_dead_letter)

_Command = TypeVar("_Command", bound=Callable[..., Any])


class Selection(NamedTuple):
    """The messages that a command means."""

    selector: str = ""
    reason: str = ""
    source: str = ""
    since_us: int = 0
    limit: int | None = None
    scheduled: bool = False
    """The messages that are scheduled for later, and no others."""

    @property
    def attributes(self) -> dict[str, Any]:
        """The filter as attributes of a request."""
        named = {"selector": self.selector, "reason": self.reason, "source": self.source}
        values: dict[str, Any] = {name: value for name, value in named.items() if value}
        values |= {"since": Timestamp(self.since_us // 1000)} if self.since_us else {}
        return values | ({"scheduled": True} if self.scheduled else {})


def narrowing_options(command: _Command) -> _Command:
    """Add `--selector` and `--limit` to a command."""
    limit = click.option("--limit", type=click.IntRange(1), metavar="N", help="At most N messages, the oldest first.")
    selector = click.option(
        "--selector", default="", metavar="TEXT", help="Only messages that the selector picks, as on a link."
    )
    return selector(limit(command))


def dead_letter_options(command: _Command) -> _Command:
    """Add the options that narrow dead letters to a command."""
    source = click.option("--source", default="", metavar="QUEUE", help="Only dead letters of this queue.")
    reason = click.option("--reason", type=click.Choice(REASONS), help="Only dead letters for this reason.")
    since = click.option("--since", metavar="TIME", help="Only dead letters since a time, such as '10m ago'.")
    return source(reason(since(narrowing_options(command))))


def selection_of(
    *,
    selector: str = "",
    limit: int | None = None,
    source: str = "",
    reason: str | None = None,
    since: str | None = None,
) -> Selection:
    """Return the selection of a command's options. Raises ToolError for a bad time."""
    since_us = 0
    if since is not None:
        when = parse_when(since, now_us=time.time_ns() // 1000)
        if not isinstance(when, AtTime):
            raise ToolError(
                "--since names an offset", where=since, expected="a time, such as '10m ago'", code=ExitCode.USAGE
            )
        since_us = when.time_us
    return Selection(selector, reason or "", source, since_us, limit)
