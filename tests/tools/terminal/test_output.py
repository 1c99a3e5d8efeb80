"""Tables and JSON."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ambermq.tools.broker.child_broker import ChildBroker
from ambermq.tools.terminal.exit_codes import ExitCode
from ambermq.tools.terminal.output import print_json, print_rows, print_values, print_words

ROWS = [
    {"name": "orders", "bytes": 1234567, "is_new": True, "note": None, "extra": [1]},
    {"name": "x" * 300, "bytes": 5, "is_new": False, "note": "[bold]", "extra": {}},
]


def test_a_table_has_aligned_columns_and_whole_cells(capsys: pytest.CaptureFixture[str]) -> None:
    """Numbers are grouped and right, nothing is cut or coloured for a pipe, markup is text."""
    print_rows(ROWS, ("name", "bytes", "is_new", "note"), "table")
    header, first, second = capsys.readouterr().out.splitlines()
    assert header.split() == ["name", "bytes", "is", "new", "note"]
    assert first.split() == ["orders", "1,234,567", "yes", "-"]
    assert second.split() == ["x" * 300, "5", "no", "[bold]"]
    assert header.index("bytes") + len("bytes") == first.index("1,234,567") + len("1,234,567")
    assert "\x1b" not in header + first + second


@pytest.mark.parametrize(("columns", "hidden"), [(1, 3), (33, 1), (60, 0)])
def test_a_narrow_terminal_cuts_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], columns: int, hidden: int
) -> None:
    """Text is folded and numbers are whole; columns without room are named on standard error."""
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    names = ("name", "bytes", "is_new", "note")
    print_rows(ROWS, names, "table")
    printed = capsys.readouterr()
    shown = re.sub(r"\x1b\[[0-9;]*m", "", printed.out)
    expected = ("orders", "1,234,567", "yes", "[bold]")[: len(names) - hidden]
    assert {*expected} <= set(shown.split())
    assert shown.count("x") == 300
    assert "\u2026" not in shown
    left_out = ", ".join(names[len(names) - hidden :])
    assert printed.err == (f"note: no room for {left_out}: a wider terminal shows them\n" if hidden else "")


def test_a_full_disk_is_told_of_standard_output(broker: ChildBroker) -> None:
    """Tables and JSON alike."""
    for output in ("table", "json"):
        command = [sys.executable, "-m", "ambermq", "queue", "list", "--url", broker.url, "--output", output]
        with Path("/dev/full").open("w") as full:
            told = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        assert told.returncode == ExitCode.FAILED
        message = "write to standard output failed: found No space left on device"
        found = json.loads(told.stderr)["error"]["message"] if output == "json" else told.stderr
        assert found == (message if output == "json" else f"error: {message}\n")


def test_json_has_whole_rows(capsys: pytest.CaptureFixture[str]) -> None:
    """Columns are for tables; JSON has everything, numbers as numbers."""
    print_rows(ROWS, ("name",), "json")
    assert json.loads(capsys.readouterr().out) == ROWS


def test_no_rows_are_an_empty_array(capsys: pytest.CaptureFixture[str]) -> None:
    """A program gets JSON in any case."""
    print_rows([], ("name",), "json")
    assert json.loads(capsys.readouterr().out) == []


def test_values_are_names_beside_values(capsys: pytest.CaptureFixture[str]) -> None:
    """One thing is a table of two columns, or one object."""
    print_values({"name": "orders", "rate": 1234.5}, "table")
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [["name", "orders"], ["rate", "1,234.50"]]
    print_values({"name": "orders", "rate": 1234.5}, "json")
    assert json.loads(capsys.readouterr().out) == {"name": "orders", "rate": 1234.5}


def test_a_json_line_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """NDJSON: line ends in text are escaped."""
    print_json({"text": "a\nb"})
    assert capsys.readouterr().out == '{"text":"a\\nb"}\n'


def test_names_of_strangers_stay_text(capsys: pytest.CaptureFixture[str]) -> None:
    """Line ends, what moves the cursor or colours, and what turns the direction of writing are escaped."""
    name = "a\nb\x1b[31mc\u202ed\tü"
    print_rows([{"name": name}], ("name",), "table")
    print_values({"name": name}, "table")
    print_words(f"for {name}")
    shown = r"a\nb\x1b[31mc\u202ed\tü"
    assert capsys.readouterr().out.splitlines() == ["name", shown, f"name  {shown}", f"for {shown}"]
    print_values({"names": [name, "\x9b2J"]}, "table")
    assert capsys.readouterr().out.rstrip("\n").isprintable(), "a list is text of strangers, too"
