"""What commands print: tables for people, JSON and NDJSON for programs, all on standard output.

Rule 1: a command prints a table only for `--output table`, the default of a listing. It has no pager, no prompts, and
        no colours without a terminal.
Rule 2: JSON is one document, NDJSON is one document a line. Each line is flushed, so a pipe gets it at once.
Rule 3: numbers stay numbers in JSON; a table groups their digits by thousands and aligns them right. On a narrow
        terminal long text is folded and nothing is cut: a row that does not fit goes beyond the edge.
Rule 4: clients name links, containers and subscriptions with any characters. Tables and lines for people escape those
        that are not printable, so that no client forges a line of output or moves the cursor.
"""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from io import StringIO
from typing import Any, TypeVar

import click
import msgspec

from ambermq.tools.terminal.errors import ToolError

__all__ = [
    "LIST_OUTPUTS",
    "OUTPUTS",
    "list_output_option",
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
LIST_OUTPUTS = (*OUTPUTS, "ndjson")

_Command = TypeVar("_Command", bound=Callable[..., Any])
_WIDE = 1 << 16
"""Columns of a table without a terminal: a pipe gets every cell whole."""
_FOLDED = 12
"""Columns of a terminal; shorter text is not folded."""
_GAP = 2
"""Spaces between two columns of a table."""
_encode = msgspec.json.Encoder().encode


def output_option(command: _Command) -> _Command:
    """Add the option `--output table|json` to a command, as the parameter `output`."""
    option = click.option(
        "--output",
        type=click.Choice(OUTPUTS),
        default="table",
        show_default=True,
        help="Table for people, JSON for programs.",
    )
    return option(command)


def list_output_option(command: _Command) -> _Command:
    """Add the option `--output table|json|ndjson` to a command that lists, as the parameter `output`."""
    option = click.option(
        "--output",
        type=click.Choice(LIST_OUTPUTS),
        default="table",
        show_default=True,
        help="Table for people, JSON or a JSON document a line for programs.",
    )
    return option(command)


def print_line(text: str) -> None:
    """Print one line and flush it; raise ToolError if that fails, BrokenPipeError if the reader is gone."""
    try:
        sys.stdout.write(_encodable(text) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise ToolError("write to standard output failed", found=error.strerror or str(error)) from error


def _encodable(text: str) -> str:
    """Return a text with each character that standard output cannot encode escaped as in JSON."""
    encoding = sys.stdout.encoding or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return "".join(each if each.isascii() else _escaped(each) for each in text)
    return text


def _escaped(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[index : index + 2].hex()}" for index in range(0, len(units), 2))


def print_words(text: str) -> None:
    """Print one line for people; escape what is not printable, since clients choose names."""
    print_line(printable(text))


def printable(text: str) -> str:
    """Return a text on one line; characters that are not printable are escaped."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def print_json(value: Any, *, indent: bool = False) -> None:
    """Print one JSON document on one line (a line of NDJSON), or indented on several."""
    encoded = _encode(value)
    print_line((msgspec.json.format(encoded, indent=2) if indent else encoded).decode())


def print_done(text: str, values: Mapping[str, Any], output: str, *, indent: bool = False) -> None:
    """Print the result of a change: one line for people, or one JSON document."""
    if output == "json":
        print_json(values, indent=indent)
    else:
        print_line(text)


def print_rows(rows: Iterable[Mapping[str, Any]], columns: Sequence[str], output: str) -> None:
    """Print a listing: a table with these columns, or a JSON array of rows with every attribute."""
    if output == "json":
        print_json(list(rows), indent=True)
    elif output == "ndjson":
        for row in rows:
            print_json(row)
    else:
        _print_table([[row.get(column) for column in columns] for row in rows], columns)


def print_values(values: Mapping[str, Any], output: str) -> None:
    """Print names and values: a table of two columns, or one JSON object."""
    if output == "json":
        print_json(values, indent=True)
    else:
        _print_table([[name, value] for name, value in values.items()], ())


def _print_table(rows: list[list[Any]], columns: Sequence[str]) -> None:
    from rich.console import Console  # noqa: PLC0415 - an import of 0.2 s that only tables need
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
    """Return the smallest width of a column that cuts nothing and folds no number."""
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
    return printable(_encode(value).decode())
