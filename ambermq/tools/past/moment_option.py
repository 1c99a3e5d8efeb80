"""WHEN, a moment as text. Pure: text and the present time in, an offset or a time out.

    1048576, 1,048,576                   the offset of an event, as in JSON and in tables
    2026-11-21T22:33:53.296965Z          ISO 8601; without a zone it is UTC, without a time the start of the day
    10m ago, 1h30m ago, 2 days ago       before the present: w, d, h, m, s, ms, or the words
    now                                  the last event

Rule: an offset names an event of the log, a time is one of the clock. Only the log maps a time to an offset.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar

import click

from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode

__all__ = ["WHEN_HELP", "AtOffset", "AtTime", "When", "at_option", "parse_duration", "parse_offset", "parse_when"]

_Command = TypeVar("_Command", bound=Callable[..., Any])

WHEN_HELP: Final = "An offset, an ISO 8601 time (UTC if it has no zone), or an age such as '10m ago'."
_OFFSET: Final = re.compile(r"[0-9]{1,19}|[0-9]{1,3}(,[0-9]{3}){1,5}")
_UNITS_US: Final = {
    "ms": 1_000,
    "s": 1_000_000,
    "m": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
    "w": 604_800_000_000,
}
_WORDS: Final = {
    "millisecond": "ms",
    "sec": "s",
    "second": "s",
    "min": "m",
    "minute": "m",
    "hour": "h",
    "day": "d",
    "week": "w",
}
_PART: Final = re.compile(r"\s*([0-9]{1,12}(?:\.[0-9]{1,6})?)\s*([a-z]+)")
_TEXT_MAX: Final = 64
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class AtOffset:
    """A moment named by an offset."""

    offset: int
    """The offset of the event."""


@dataclass(frozen=True, slots=True)
class AtTime:
    """A moment named by a time."""

    time_us: int
    """Microseconds since 1970, UTC."""


When = AtOffset | AtTime


def parse_when(text: str, *, now_us: int) -> When:
    """Return the moment that a text names; raise ToolError with exit code 2 if it names none."""
    words = text.strip().lower()
    if len(words) > _TEXT_MAX:
        raise _invalid_moment(text)
    offset = parse_offset(words)
    if offset is not None:
        return AtOffset(offset)
    if words == "now":
        return AtTime(now_us)
    if words.endswith("ago"):
        return _at(now_us - parse_duration(words.removesuffix("ago"), whole=text), text)
    try:
        moment = datetime.fromisoformat(text.strip())
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    except ValueError as error:
        raise _invalid_moment(text) from error
    return _at((moment - _EPOCH) // timedelta(microseconds=1), text)


def _at(time_us: int, text: str) -> AtTime:
    """Return a time in the years 1 to 9999 of UTC; raise ToolError for any other."""
    try:
        _EPOCH + timedelta(microseconds=time_us)
    except OverflowError as error:
        raise _invalid_moment(text) from error
    return AtTime(time_us)


def parse_offset(text: str) -> int | None:
    """Return the offset in a text, None if it is not one."""
    return int(text.replace(",", "")) if _OFFSET.fullmatch(text) else None


def parse_duration(text: str, *, whole: str = "") -> int:
    """Return the microseconds in `1h30m` or `2 days`; raise ToolError that names `whole` or the text."""
    words, position, duration_us = text.strip().lower(), 0, 0
    while position < len(words):
        part = _PART.match(words, position)
        unit = None if part is None else _unit(part[2])
        if part is None or unit is None:
            raise _invalid_moment(whole) if whole else _invalid_duration(text)
        duration_us += round(float(part[1]) * unit)
        position = part.end()
    if not words:
        raise _invalid_moment(whole) if whole else _invalid_duration(text)
    return duration_us


def _unit(word: str) -> int | None:
    short = _WORDS.get(word.removesuffix("s") if len(word) > 2 else word, word)
    return _UNITS_US.get(short)


def _invalid_moment(text: str) -> ToolError:
    return ToolError(
        "invalid moment",
        where=repr(text[:_TEXT_MAX]),
        expected="an offset, an ISO 8601 time, 'now', or an age such as '10m ago' or '2 days ago'",
        code=ExitCode.USAGE,
    )


def _invalid_duration(text: str) -> ToolError:
    return ToolError(
        "invalid duration",
        where=repr(text[:_TEXT_MAX]),
        expected="a duration such as '10s', '1h30m' or '2 days'",
        code=ExitCode.USAGE,
    )


def at_option(command: _Command) -> _Command:
    """Add the option `--at WHEN` to a command, as the parameter `at`."""
    return click.option(
        "--at", metavar="WHEN", help=f"Show the state at that moment: {WHEN_HELP[0].lower()}{WHEN_HELP[1:]}"
    )(command)
