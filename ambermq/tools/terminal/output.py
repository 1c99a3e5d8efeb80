"""What commands print: tables for people, JSON and NDJSON for programs, all on standard output.

Rule 1: a table is only printed where a table was asked for (it is the default of a listing); no pager, no prompts, and
        no colours without a terminal.
Rule 2: JSON is one document, NDJSON one document a line, flushed line by line, so that a pipe sees each in time.
Rule 3: numbers stay numbers in JSON; in a table they are grouped by thousands and set to the right. A terminal that is
        too narrow cuts nothing: long text is folded, and what does not fit even so goes beyond its edge.
Rule 4: who connects names links, containers and subscriptions, with any characters. In tables and words they are
        escaped where they are not printable, so that nobody writes lines of ours or moves the cursor.
"""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from io import StringIO
from typing import Any, TypeVar

import click
import msgspec

from ambermq.tools.terminal.errors import ToolError

__all__ = [
    "OUTPUTS",
    "output_option",
    "print_done",
    "print_json",
    "print_line",
    "print_rows",
    "print_values",
    "print_words",
    "printable",
]

OUTPUTS = ("table", "json")

_Command = TypeVar("_Command", bound=Callable[..., Any])
_WIDE = 1 << 16
"""Columns where there is no terminal to fit: no cell is ever cut for a pipe."""
_FOLDED = 12
"""Columns of a terminal below which no text is folded."""
_GAP = 2
"""Columns between two of a table's."""
_encode = msgspec.json.Encoder().encode


def output_option(command: _Command) -> _Command:
    """Give a command `--output table|json`; it arrives as `output`."""
    option = click.option(
        "--output",
        type=click.Choice(OUTPUTS),
        default="table",
        show_default=True,
        help="Table for people, JSON for programs.",
    )
    return option(command)


def print_line(text: str) -> None:
    """Print one line of text, flushed. Raises ToolError where that cannot be, BrokenPipeError where nobody reads on."""
    try:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise ToolError("standard output cannot be written", found=error.strerror or str(error)) from error


def print_words(text: str) -> None:
    """Print one line for people, which may name what a stranger has named."""
    print_line(printable(text))


def printable(text: str) -> str:
    """Return a text on one line, with what is not printable escaped."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def print_json(value: Any, *, indent: bool = False) -> None:
    """Print one JSON document on one line (a line of NDJSON), or indented for eyes too."""
    encoded = _encode(value)
    print_line((msgspec.json.format(encoded, indent=2) if indent else encoded).decode())


def print_done(text: str, values: Mapping[str, Any], output: str, *, indent: bool = False) -> None:
    """Print what a command has done: one line for people, or one JSON document."""
    if output == "json":
        print_json(values, indent=indent)
    else:
        print_line(text)


def print_rows(rows: Iterable[Mapping[str, Any]], columns: Sequence[str], output: str) -> None:
    """Print a listing: a table with these columns, or one JSON array of whole rows."""
    if output == "json":
        print_json(list(rows), indent=True)
    else:
        _print_table([[row.get(column) for column in columns] for row in rows], columns)


def print_values(values: Mapping[str, Any], output: str) -> None:
    """Print one thing: its names and values as a table of two columns, or as one JSON object."""
    if output == "json":
        print_json(values, indent=True)
    else:
        _print_table([[name, value] for name, value in values.items()], ())


def _print_table(rows: list[list[Any]], columns: Sequence[str]) -> None:
    from rich.console import Console  # noqa: PLC0415 - a fifth of a second that only tables need
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    is_terminal = sys.stdout.isatty()
    cells = [[_cell(value) for value in row] for row in rows]
    needed = 0
    table = Table(box=None, pad_edge=False, show_header=bool(columns), header_style="bold")
    for index in range(len(columns) or 2):
        name = columns[index].replace("_", " ") if columns else ""
        is_numeric = bool(columns) and any(_is_number(row[index]) for row in rows)
        narrowest = _narrowest(name, [row[index] for row in cells], is_whole=is_numeric) if is_terminal else 0
        needed += narrowest + _GAP
        table.add_column(
            name,
            justify="right" if is_numeric else "left",
            no_wrap=not is_terminal,
            overflow="fold",
            min_width=narrowest,
        )
    for row in cells:
        table.add_row(*[Text(cell) for cell in row])
    text = StringIO()
    console = Console(file=text, force_terminal=is_terminal, no_color=not is_terminal, highlight=False)
    console.width = max(console.width, needed) if is_terminal else _WIDE
    console.print(table, crop=False)
    for line in text.getvalue().splitlines():
        print_line(line.rstrip())


def _narrowest(name: str, cells: Sequence[str], *, is_whole: bool) -> int:
    """Return the columns of a terminal that a column of a table keeps: nothing of it is cut, and no number folded."""
    longest = max(map(len, cells), default=0)
    return max(longest if is_whole else min(longest, _FOLDED), *map(len, name.split() or [""]))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.2f}"
    if isinstance(value, str):
        return printable(value)
    return _encode(value).decode()
