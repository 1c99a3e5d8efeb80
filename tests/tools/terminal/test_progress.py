"""The progress of a long job, on a terminal and without one."""

import re

import pytest

from ambermq.tools.terminal.progress import progress_bar


def test_each_stage_has_a_bar(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Name and share of each stage, on standard error alone."""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with progress_bar(stays=True) as progress:
        progress("first", 1, 2)
        progress("second", 0, 3)
        progress("first", 2, 2)
        progress("second", 1, 4)
    shown = capsys.readouterr()
    assert re.search(r"first .*100%", shown.err)
    assert re.search(r"second .* 25%", shown.err)
    assert shown.out == ""


def test_without_a_terminal_nothing_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """Standard error belongs to errors and notes."""
    with progress_bar() as progress:
        progress("first", 1, 2)
    assert capsys.readouterr() == ("", "")
