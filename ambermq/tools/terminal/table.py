"""Tables for people: rows and columns as lines of text. Pure: values in, lines out.

Rule 1. Numbers, times, durations and ids are whole, always: half of one would be another one. Only text is folded.
Rule 2. Columns stand in the order of their importance. Where a table does not fit, times lose their fractions, then
        text is folded, then columns go from the right. The first column stays.
Rule 3. Without a width, as in a pipe, no cell is shortened or folded and no column goes.
"""

import re
import unicodedata
from collections.abc import Collection, Sequence
from typing import Any, Final, NamedTuple

__all__ = ["Table", "is_whole", "table_of"]

_GAP: Final = "  "
_TEXT_MIN: Final = 16
"""The narrowest column of text in a table that still has several columns; shorter text is not folded."""
_ID_MAX: Final = 40
"""Words of digits are ids up to this length."""
_WHOLE: Final = re.compile(
    r"[-+]?[0-9][0-9.,:]*( ?(%|[a-zA-Z]{1,7})(/s)?( [0-9]+ (h|min|s))?)?"  # numbers, sizes, durations, names as 7.0.2
    r"|[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9:.]+Z?)?"
    r"|[0-9a-f]{8,}(-[0-9a-f]{4,})*"
)
_TIME: Final = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2})\.[0-9]+Z")


class Table(NamedTuple):
    """A table as text, and the columns for which there was no room."""

    lines: list[str]
    """The lines, with the heading first if the columns have names."""
    hidden: list[str]
    """The names of the columns that are left out."""


class _Column(NamedTuple):
    """One column: its heading and cells as text."""

    name: str
    cells: list[str]
    is_right: bool
    """Whether the column holds numbers, which stand at the right."""

    @property
    def natural(self) -> int:
        """The width that folds nothing."""
        return max(map(_width, [self.name, *self.cells]))

    @property
    def narrowest(self) -> int:
        """The width below which an entry that must be whole would be folded."""
        whole = [cell for cell in self.cells if is_whole(cell)]
        text = min(_TEXT_MIN, max((_width(cell) for cell in self.cells if not is_whole(cell)), default=0))
        return max([text, *map(_width, whole), *map(_width, self.name.split() or [""])])


def is_whole(cell: str) -> bool:
    """Return whether a cell is a number, a time, a duration or an id, which no table folds."""
    return len(cell) <= _ID_MAX and _WHOLE.fullmatch(cell) is not None


def table_of(
    rows: Sequence[Sequence[tuple[str, Any]]], names: Sequence[str], width: int | None, spare: Sequence[str] = ()
) -> Table:
    """Return a table of rows whose cells are pairs of text and value, at most `width` columns wide if that is possible.

    Without names the table has no heading, and all its columns stay. The columns in `spare` go before all others.
    """
    count = len(names) or max(map(len, rows), default=0)
    titles = [name.replace("_", " ") for name in names] or [""] * count
    columns = [_column(titles[index], [row[index] for row in rows]) for index in range(count)]
    if width is None:
        return Table(_lines(columns, [column.natural for column in columns], has_heading=bool(names)), [])
    if _total([column.natural for column in columns]) > width:
        columns = [_with_short_times(column) for column in columns]
    going = _least_important(names, spare)
    hidden: set[int] = set()
    while len(hidden) < len(going) and _total(_narrowest(columns, hidden)) > width:
        hidden.add(going[len(hidden)])
    shown = [column for index, column in enumerate(columns) if index not in hidden]
    left_out = [name for index, name in enumerate(names) if index in hidden]
    return Table(_lines(shown, _widths(shown, width), has_heading=bool(names)), left_out)


def _column(name: str, pairs: Sequence[tuple[str, Any]]) -> _Column:
    is_right = bool(name) and any(isinstance(value, int | float) and not isinstance(value, bool) for _, value in pairs)
    return _Column(name, [text for text, _ in pairs], is_right)


def _with_short_times(column: _Column) -> _Column:
    return column._replace(cells=[_TIME.sub(r"\1Z", cell) for cell in column.cells])


def _least_important(names: Sequence[str], spare: Sequence[str]) -> list[int]:
    """Return the columns that may go, the least important first; the first column stays."""
    first = [names.index(name) for name in spare]
    return [*first, *(index for index in range(len(names) - 1, 0, -1) if index not in first)]


def _narrowest(columns: Sequence[_Column], hidden: Collection[int]) -> list[int]:
    return [column.narrowest for index, column in enumerate(columns) if index not in hidden]


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(_GAP) * (len(widths) - 1)


def _widths(columns: Sequence[_Column], width: int) -> list[int]:
    """Return a width for each column: the widest lose columns of text until the table fits."""
    widths = [column.natural for column in columns]
    least = [column.narrowest for column in columns]
    while (over := _total(widths) - width) > 0:
        spare = [index for index in range(len(widths)) if widths[index] > least[index]]
        if not spare:
            break
        widest = max(spare, key=lambda index: widths[index])
        second = max((widths[index] for index in spare if index != widest), default=0)
        step = min(over, widths[widest] - least[widest], max(1, widths[widest] - second))
        widths[widest] -= step
    return widths


def _lines(columns: Sequence[_Column], widths: Sequence[int], *, has_heading: bool) -> list[str]:
    rows = [list(cells) for cells in zip(*(column.cells for column in columns), strict=True)]
    if has_heading:
        rows.insert(0, [column.name for column in columns])
    rights = [column.is_right for column in columns]
    return [line for row in rows for line in _row_lines(row, widths, rights)]


def _row_lines(cells: Sequence[str], widths: Sequence[int], rights: Sequence[bool]) -> list[str]:
    """Return the lines of a row: as many as its tallest cell has."""
    folded = [_folded(cell, width) for cell, width in zip(cells, widths, strict=True)]
    lines = []
    for number in range(max(map(len, folded), default=0)):
        pieces = [lines_of[number] if number < len(lines_of) else "" for lines_of in folded]
        padded = [_padded(*each) for each in zip(pieces, widths, rights, strict=True)]
        lines.append(_GAP.join(padded).rstrip())
    return lines


def _padded(text: str, width: int, is_right: bool) -> str:
    space = " " * (width - _width(text))
    return space + text if is_right else text + space


def _folded(text: str, width: int) -> list[str]:
    """Return a text as lines of at most `width` columns, broken at blanks where it has some."""
    lines, rest = [], text
    while _width(rest) > width:
        end = max(1, _count_within(rest, width))
        blank = rest.rfind(" ", 1, end + 1)
        lines.append(rest[: blank if blank > 0 else end])
        rest = rest[blank + 1 if blank > 0 else end :]
    return [*lines, rest]


def _count_within(text: str, width: int) -> int:
    used = 0
    for count, character in enumerate(text):
        used += _width(character)
        if used > width:
            return count
    return len(text)


def _width(text: str) -> int:
    """Return the columns of a terminal that a text takes."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(one) else 1 + (unicodedata.east_asian_width(one) in "WF") for one in text)
