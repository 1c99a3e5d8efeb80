"""The options of `ambermq send` that set fields of each message: its priority, its times and its group."""

import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeVar

import click

from ambermq.protocol.amqp10.limits import UINT_MAX
from ambermq.tools.messages.message_text import MessageDraft
from ambermq.tools.past.moment_option import AtTime, parse_duration, parse_when
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode

__all__ = ["MessageFields", "fields_of", "header_options"]

_UBYTE_MAX: Final = 255
_TIME: Final = "x-opt-delivery-time"
_DELAY: Final = "x-opt-delivery-delay"

_Command = TypeVar("_Command", bound=Callable[..., Any])


class MessageFields(NamedTuple):
    """The fields that a command sets in each message."""

    priority: int | None = None
    ttl_ms: int | None = None
    group_id: str | None = None
    annotations: Mapping[str, Any] = MappingProxyType({})

    def set_in(self, draft: MessageDraft) -> None:
        """Set the fields of a draft; they replace its own."""
        if self.priority is not None:
            draft.priority = self.priority
        if self.ttl_ms is not None:
            draft.ttl_ms = self.ttl_ms
        if self.group_id is not None:
            draft.group_id = self.group_id
        if self.annotations:
            others = {name: value for name, value in draft.annotations.items() if name not in (_TIME, _DELAY)}
            draft.annotations = {**others, **self.annotations}


def header_options(command: _Command) -> _Command:
    """Add `--priority`, `--ttl`, `--delay`, `--deliver-at` and `--group` to a command."""
    priority = click.option("--priority", type=click.IntRange(0, _UBYTE_MAX), metavar="N", help="Priority, 0 to 9.")
    ttl = click.option("--ttl", metavar="DURATION", help="Time to live, such as `10min`.")
    delay = click.option("--delay", metavar="DURATION", help="Deliver so long after the arrival, such as `1h`.")
    deliver_at = click.option(
        "--deliver-at", metavar="TIME", help="Deliver at this time, such as `2027-01-31T08:00:00Z`."
    )
    group = click.option("--group", metavar="TEXT", help="The message group: the property group-id.")
    return priority(ttl(delay(deliver_at(group(command)))))


def fields_of(
    *, priority: int | None, ttl: str | None, delay: str | None, deliver_at: str | None, group: str | None
) -> MessageFields:
    """Return the fields of a command's options. Raises ToolError for a bad duration or time."""
    annotations: dict[str, Any] = {}
    if delay is not None and deliver_at is not None:
        raise click.UsageError("give --delay or --deliver-at, not both")
    if delay is not None:
        annotations[_DELAY] = parse_duration(delay) // 1000
    if deliver_at is not None:
        annotations[_TIME] = {"type": "timestamp", "value": str(_time_ms(deliver_at))}
    return MessageFields(priority, None if ttl is None else _ttl_ms(ttl), group, annotations)


def _ttl_ms(text: str) -> int:
    ttl_ms = parse_duration(text) // 1000
    if not 0 < ttl_ms <= UINT_MAX:
        expected = f"from 1 to {UINT_MAX:,} ms, which is 49 days"
        raise ToolError("--ttl is out of range", where=text, expected=expected, code=ExitCode.USAGE)
    return ttl_ms


def _time_ms(text: str) -> int:
    when = parse_when(text, now_us=time.time_ns() // 1000)
    if not isinstance(when, AtTime):
        expected = "a time, such as '2027-01-31T08:00:00Z'"
        raise ToolError("--deliver-at names an offset", where=text, expected=expected, code=ExitCode.USAGE)
    return when.time_us // 1000
