"""Tables and JSON."""

import json

import pytest

from tools.output import print_json, print_rows, print_values, print_words

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
