"""What commands print: tables for people, JSON and NDJSON for programs, all on standard output.

Rule 1: a command prints a table only for `--output table`, the default of a listing. It has no pager, and no colours
        without a terminal.
Rule 2: JSON is one document, NDJSON is one document a line. Each line is flushed, so a pipe gets it at once.
Rule 3: numbers stay numbers in JSON; a table groups their digits by thousands and aligns them right. table.py says
        what a narrow terminal shows; `--wide` shows all columns.
Rule 4: clients name links, containers and subscriptions with any characters. Tables and lines for people escape those
        that are not printable, so that no client forges a line of output or moves the cursor.
"""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from shutil import get_terminal_size
from typing import Any, TypeVar

import click
import msgspec

from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.table import table_of

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
    "stream_output_option",
]

OUTPUTS = ("table", "json")
LIST_OUTPUTS = (*OUTPUTS, "ndjson")

_Command = TypeVar("_Command", bound=Callable[..., Any])
_WIDE_KEY = "ambermq.wide"
_BOLD, _PLAIN = "\x1b[1m", "\x1b[0m"
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
    """Add `--output table|json|ndjson` to a command that lists, as the parameter `output`, and `--wide`."""
    option = click.option(
        "--output",
        type=click.Choice(LIST_OUTPUTS),
        default="table",
        show_default=True,
        help="Table for people, JSON or a JSON document a line for programs.",
    )
    return option(_wide_option(command))


def stream_output_option(command: _Command) -> _Command:
    """Add `--output table|json|ndjson` to a command whose lines have no end; json and ndjson print the same."""
    option = click.option(
        "--output",
        type=click.Choice(LIST_OUTPUTS),
        default="table",
        show_default=True,
        help="Lines for people, or a JSON document a line for programs; json is the same as ndjson.",
    )
    return option(command)


def _wide_option(command: _Command) -> _Command:
    def store(context: click.Context, _option: click.Parameter, is_set: bool) -> None:
        context.meta[_WIDE_KEY] = is_set

    option = click.option(
        "--wide", is_flag=True, expose_value=False, callback=store, help="Show all columns, however wide the table is."
    )
    return option(command)


def _is_wide() -> bool:
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(_WIDE_KEY))


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
    if output == "table":
        print_line(text)
    else:
        print_json(values, indent=indent)


def print_rows(
    rows: Iterable[Mapping[str, Any]], columns: Sequence[str], output: str, spare: Sequence[str] = ()
) -> None:
    """Print a listing: a table with these columns, or JSON of rows with every attribute.

    The columns stand in the order of their importance; where room is short, those of `spare` go before the others.
    """
    if output == "json":
        print_json(list(rows), indent=True)
    elif output == "ndjson":
        for row in rows:
            print_json(row)
    else:
        _print_listing(list(rows), columns, spare)


def _print_listing(rows: Sequence[Mapping[str, Any]], columns: Sequence[str], spare: Sequence[str]) -> None:
    """Print a table; with --wide it has each attribute of the rows, behind the columns, and the width that it needs."""
    if _is_wide():
        columns = [*dict.fromkeys([*columns, *(name for row in rows for name in row)])]
    _print_table([[row.get(column) for column in columns] for row in rows], columns, spare)


def print_values(values: Mapping[str, Any], output: str) -> None:
    """Print names and values: a table of two columns, or one JSON object."""
    if output != "table":
        print_json(values, indent=output == "json")
    else:
        _print_table([[name, value] for name, value in values.items()], ())


def _print_table(rows: list[list[Any]], columns: Sequence[str], spare: Sequence[str] = ()) -> None:
    is_terminal = sys.stdout.isatty()
    width = get_terminal_size().columns if is_terminal and not _is_wide() else None
    table = table_of([[(_cell(value), value) for value in row] for row in rows], columns, width, spare)
    for number, line in enumerate(table.lines):
        print_line(f"{_BOLD}{line}{_PLAIN}" if columns and is_terminal and not number else line)
    if table.hidden:
        context = click.get_current_context(silent=True)
        has_wide = context is not None and _WIDE_KEY in context.meta
        advice = "--wide shows them" if has_wide else "a wider terminal shows them"
        click.echo(f"note: no room for {', '.join(table.hidden)}: {advice}", err=True)


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
