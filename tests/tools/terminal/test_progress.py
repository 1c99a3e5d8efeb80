"""The progress of a long job, on a terminal and without one."""

import re
import time

import pytest

from ambermq.tools.terminal.progress import parse_progress, progress_bar, progress_lines, waiting_bar


def test_each_stage_has_a_bar(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Name and share of each stage, on standard error alone."""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setattr("ambermq.tools.terminal.progress._DELAY_SECONDS", 0)
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


def test_a_short_job_draws_nothing(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal too: bars come after a second."""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with progress_bar() as progress:
        progress("first", 1, 2)
    with waiting_bar("snapshot"):
        pass
    assert "first" not in capsys.readouterr().err


def test_a_job_of_unknown_length_has_a_bar(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """It goes with the end of the job."""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setattr("ambermq.tools.terminal.progress._DELAY_SECONDS", 0)
    with waiting_bar("snapshot"):
        time.sleep(0.1)
    assert "snapshot" in capsys.readouterr().err


def test_a_parent_reads_the_progress_of_its_child(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line for each stage, and few within one."""
    monkeypatch.setattr("ambermq.tools.terminal.progress.time.monotonic", lambda: 5.0)
    with progress_lines() as progress:
        for done in range(1000):
            progress("rewrite 3 segments", done, 1000)
        progress("commit", 1, 1)
        progress("archive", 0, 0)
    lines = capsys.readouterr().out.encode().splitlines(keepends=True)
    assert [parse_progress(line) for line in lines] == [("rewrite 3 segments", 0), ("commit", 100), ("archive", 0)]


@pytest.mark.parametrize(
    "line", [b"", b"{}\n", b"progress a 1\n", b"progress \x1b 1 2\n", b"progress a 1 " + bytes(99)]
)
def test_no_other_line_is_progress(line: bytes) -> None:
    """Such as the result, or what a defect prints."""
    assert parse_progress(line) is None
