"""Log lines that strangers cause: a flood of events leaves few of them."""

from collections.abc import Iterator

import pytest
import structlog
from structlog.testing import LogCapture

from ambermq.protocol.server.limited_log import LINES_MAX, MINUTE_MS, PAIRS_MAX, LimitedLog


class _Clock:
    """A clock that stands where it is set."""

    def __init__(self) -> None:
        self.ms = 0

    def __call__(self) -> int:
        return self.ms * 1_000_000


@pytest.fixture
def lines() -> Iterator[LogCapture]:
    """The captured lines."""
    capture = LogCapture()
    structlog.configure(processors=[capture])
    yield capture
    structlog.reset_defaults()


def test_ten_lines_a_minute_and_one_with_the_number(lines: LogCapture) -> None:
    """Of each kind and address; a new minute has ten lines again."""
    clock = _Clock()
    limited = LimitedLog(clock)
    for _ in range(100_000):
        limited.warning("refused", "203.0.113.7", reason="r")
    assert len(lines.entries) == LINES_MAX
    limited.warning("refused", "203.0.113.8")
    limited.error("failed", "203.0.113.7")
    assert len(lines.entries) == LINES_MAX + 2
    clock.ms = MINUTE_MS - 1
    limited.sweep()
    assert len(lines.entries) == LINES_MAX + 2
    clock.ms = MINUTE_MS
    limited.sweep()
    assert len(lines.entries) == LINES_MAX + 3
    last = lines.entries[-1]
    assert (last["event"], last["address"], last["more"]) == ("refused", "203.0.113.7", 100_000 - LINES_MAX)
    limited.warning("refused", "203.0.113.7")
    assert len(lines.entries) == LINES_MAX + 4


def test_the_end_tells_the_numbers(lines: LogCapture) -> None:
    """Before the minute is over."""
    limited = LimitedLog(_Clock())
    for _ in range(LINES_MAX + 5):
        limited.warning("refused", "")
    limited.close()
    assert lines.entries[-1]["more"] == 5
    assert lines.entries[-1]["address"] == "local"


def test_many_addresses_share_what_is_left(lines: LogCapture) -> None:
    """Neither the memory nor the lines grow with the addresses."""
    limited = LimitedLog(_Clock())
    for number in range(20 * PAIRS_MAX):
        limited.warning("refused", str(number))
    assert len(limited._minutes) == PAIRS_MAX + 1
    assert len(lines.entries) == PAIRS_MAX + LINES_MAX
