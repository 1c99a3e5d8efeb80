"""The last line of the campaigns: what ran, what was skipped and why, and whether every promise was kept."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.crash.__main__ import Part, run_parts


def _part(name: str, reason: str, run: Callable[[Path], tuple[str, ...]] = lambda _: ()) -> Part:
    return name, lambda: reason, run


def _last_line(parts: list[Part], capsys: pytest.CaptureFixture[str], *, code: int) -> str:
    assert run_parts(7, parts) == code
    return capsys.readouterr().out.splitlines()[-1]


def test_the_last_line_says_what_ran(capsys: pytest.CaptureFixture[str]) -> None:
    """A part that cannot run here is named with its reason."""
    parts = [_part("3 kills", ""), _part("2 cuts on xfs", "mkfs.xfs is not installed")]
    expected = "every promise was kept; ran: 3 kills; skipped: 2 cuts on xfs (mkfs.xfs is not installed)"
    assert _last_line(parts, capsys, code=0) == expected


def test_a_fault_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    """The faults of all parts, and the seed that repeats them."""
    parts = [_part("3 kills", "", lambda _: ("lost: one", "order: two")), _part("2 cuts", "")]
    assert _last_line(parts, capsys, code=1) == "seed 7 broke 2 promises; ran: 3 kills, 2 cuts; skipped: nothing"


def test_a_campaign_that_fails_itself_stops_no_other(capsys: pytest.CaptureFixture[str]) -> None:
    """Its exception is a fault."""

    def fail(_: Path) -> tuple[str, ...]:
        raise TimeoutError

    parts = [_part("3 kills", "", fail), _part("2 cuts", "")]
    assert _last_line(parts, capsys, code=1) == "seed 7 broke 1 promises; ran: 3 kills, 2 cuts; skipped: nothing"
