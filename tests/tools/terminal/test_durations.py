"""Durations as people read them."""

import pytest

from ambermq.tools.terminal.durations import duration_text


@pytest.mark.parametrize(
    ("duration_us", "text"),
    [
        (0, "0 us"),
        (999, "999 us"),
        (1_000, "1.00 ms"),
        (12_340, "12.3 ms"),
        (999_999, "1000 ms"),
        (1_250_000, "1.25 s"),
        (59_999_999, "60.0 s"),
        (60_000_000, "1 min"),
        (123_000_000, "2 min 3 s"),
        (3_600_000_000, "1 h"),
        (12_000_000_000, "3 h 20 min"),
        (86_400_000_000, "1 d"),
        (356_400_000_000, "4 d 3 h"),
        (-12_340, "-12.3 ms"),
        (-356_400_000_000, "-4 d 3 h"),
    ],
)
def test_a_duration_has_the_unit_that_fits(duration_us: int, text: str) -> None:
    """Three digits below a minute, two units above."""
    assert duration_text(duration_us) == text
