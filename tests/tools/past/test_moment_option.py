"""WHEN: offsets, times and what lies so long ago, and nothing else."""

from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ambermq.engine.history.timestamps import iso_time
from ambermq.tools.past.moment_option import AtOffset, AtTime, parse_duration, parse_when
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode

NOW = 1_700_000_000_000_000
SECOND = 1_000_000


def test_digits_are_an_offset() -> None:
    """Any number of the log's range."""
    assert parse_when("0", now_us=NOW) == AtOffset(0)
    assert parse_when(" 1048576 ", now_us=NOW) == AtOffset(1 << 20)
    assert parse_when("1,048,576", now_us=NOW) == AtOffset(1 << 20)


@pytest.mark.parametrize(
    ("text", "seconds_ago"),
    [
        ("now", 0),
        ("10m ago", 600),
        ("1h30m ago", 5400),
        ("1 hour 30 minutes ago", 5400),
        ("2 days ago", 172_800),
        ("1.5s ago", 1.5),
        ("250ms ago", 0.25),
        ("1 week ago", 604_800),
        ("3 secs ago", 3),
        ("5MIN AGO", 300),
        ("1d2h ago", 93_600),
    ],
)
def test_so_long_ago_is_before_the_present(text: str, seconds_ago: float) -> None:
    """Units as letters or words, one or several, in any case."""
    assert parse_when(text, now_us=NOW) == AtTime(NOW - round(seconds_ago * SECOND))


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-11-21T22:33:53.296965Z", datetime(2026, 11, 21, 22, 33, 53, 296965, UTC)),
        ("2026-11-21T22:33:53", datetime(2026, 11, 21, 22, 33, 53, 0, UTC)),
        ("2026-11-21 22:33", datetime(2026, 11, 21, 22, 33, 0, 0, UTC)),
        ("2026-11-21", datetime(2026, 11, 21, tzinfo=UTC)),
        ("2026-11-21T22:33:53+02:00", datetime(2026, 11, 21, 22, 33, 53, 0, timezone(timedelta(hours=2)))),
    ],
)
def test_a_time_is_iso_8601(text: str, moment: datetime) -> None:
    """In its own zone, in UTC where it names none."""
    assert parse_when(text, now_us=NOW) == AtTime(round(moment.timestamp()) * SECOND + moment.microsecond)


@given(st.integers(0, 4_000_000_000_000_000))
def test_a_time_that_we_print_is_read_back(time_us: int) -> None:
    """To the microsecond."""
    assert parse_when(iso_time(time_us), now_us=NOW) == AtTime(time_us)


@pytest.mark.parametrize("text", ["9999-12-31T23:59:59-14:00", "0001-01-01T00:00+14:00", "999999999999 days ago"])
def test_a_time_out_of_the_calendar_is_a_wrong_command_line(text: str) -> None:
    """In UTC it could not be told: years are from 1 to 9999."""
    with pytest.raises(ToolError, match="invalid moment") as caught:
        parse_when(text, now_us=NOW)
    assert caught.value.exit_code == ExitCode.USAGE


@pytest.mark.parametrize(
    "text",
    ["", "yesterday", "10m", "ago", "10 ago", "10x ago", "m ago", "-5", "٣", "1" * 5000, "2026-13-01", "ago 5m"],
)
def test_anything_else_is_a_wrong_command_line(text: str) -> None:
    """One message that names the text and what would do."""
    with pytest.raises(ToolError, match="expected an offset, an ISO 8601 time") as refusal:
        parse_when(text, now_us=NOW)
    assert refusal.value.exit_code == ExitCode.USAGE


@pytest.mark.parametrize("text", ["", "10", "1h 5", "5x", "now", "10m ago"])
def test_what_is_no_length_of_time_is_a_wrong_command_line(text: str) -> None:
    """The message says what would do, and that is no moment."""
    with pytest.raises(ToolError, match="expected a duration such as '10s', '1h30m' or '2 days'") as refusal:
        parse_duration(text)
    assert refusal.value.exit_code == ExitCode.USAGE


@given(st.text(max_size=20))
def test_no_text_is_a_mistake_of_ours(text: str) -> None:
    """Whatever it holds, it is a moment or one clear error."""
    for parse in (lambda: parse_when(text, now_us=NOW), lambda: parse_duration(text)):
        with suppress(ToolError):
            assert parse() is not None
