"""Tables at any width."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ambermq.tools.terminal.table import is_whole, table_of

WHOLE = (
    "1,234,567",
    "-1.50",
    "2026-11-21T22:33:53Z",
    "2026-11-21T22:33:53.123456Z",
    "3 h 20 min",
    "12.5 MiB",
    "7.0.2",
    "0f8fad5b-d9cb-469f-a165-70867728950e",
    "127.0.0.1:5672",
)


def pairs(*rows: tuple[Any, ...]) -> list[list[tuple[str, Any]]]:
    """Return rows of cells as a table takes them."""
    return [[(str(value), value) for value in row] for row in rows]


@pytest.mark.parametrize("text", WHOLE)
def test_what_is_never_folded(text: str) -> None:
    """Numbers, times, durations, sizes, ids, addresses."""
    assert is_whole(text)


def test_text_is_folded() -> None:
    """Names and sentences are text."""
    assert not any(map(is_whole, ("orders", "orders.eu.17", "JMSPriority > 5 AND colour = 'red'", "")))


def test_times_lose_their_fractions_only_where_room_is_short() -> None:
    """Before any text is folded or any column goes."""
    rows = pairs(("2026-11-21T22:33:53.123456Z", "monday"))
    assert table_of(rows, ("time", "name"), 40).lines[1] == "2026-11-21T22:33:53.123456Z  monday"
    assert table_of(rows, ("time", "name"), 30).lines[1] == "2026-11-21T22:33:53Z  monday"
    assert table_of(rows, ("time", "name"), None).lines[1] == "2026-11-21T22:33:53.123456Z  monday"


def test_columns_go_from_the_right() -> None:
    """The first stays, and a table says which have gone."""
    rows = pairs(("orders", 1_000_000, 2_000_000))
    assert table_of(rows, ("name", "in", "out"), 16) == (["name         in", "orders  1000000"], ["out"])
    assert table_of(rows, ("name", "in", "out"), 1).hidden == ["in", "out"]


def test_wide_characters_take_two_columns() -> None:
    """So that the next column is straight."""
    lines = table_of(pairs(("订单", "a"), ("orders", "b")), ("name", "x"), 40).lines
    assert lines == ["name    x", "订单    a", "orders  b"]


CELL = st.one_of(st.integers(), st.sampled_from(WHOLE), st.text("ab cé订", max_size=60))


@given(st.integers(1, 120), st.lists(st.tuples(CELL, CELL, CELL), max_size=5))
def test_no_number_time_or_id_is_folded(width: int, rows: list[tuple[Any, ...]]) -> None:
    """At any width each stands whole on a line, in the columns that are shown; and no text is lost."""
    table = table_of(pairs(*rows), ("one", "two", "three"), width)
    shown = "\n".join(table.lines)
    for row in rows:
        for value in row[: 3 - len(table.hidden)]:
            text = re.sub(r"\.[0-9]+Z", "", str(value))
            if is_whole(str(value)):
                assert text in shown
            assert not set(text) - set(shown) - {" "}


@given(st.lists(st.tuples(st.integers(0, 10**12), st.text("ab c", max_size=300)), max_size=5))
def test_a_table_of_text_fits_its_width(rows: list[tuple[Any, ...]]) -> None:
    """No line is wider, where the columns can be."""
    assert max(map(len, table_of(pairs(*rows), ("number", "text"), 80).lines)) <= 80
