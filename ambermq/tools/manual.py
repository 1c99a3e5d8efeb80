"""`python -m ambermq.tools.manual DIR`: a man page for each command, written from its help.

The pages are roff with the macros of man(7): one file `ambermq-queue-list.1` a command, groups included.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click

from ambermq import __version__
from ambermq.tools.cli import main
from ambermq.tools.terminal.output import print_line

__all__ = ["man_pages", "write_pages"]

_SECTION: Final = 1


def write_pages(directory: Path) -> int:
    """Write all pages into a directory, and return how many there are."""
    directory.mkdir(parents=True, exist_ok=True)
    count = 0
    for name, text in man_pages():
        (directory / f"{name}.{_SECTION}").write_text(text, encoding="utf-8")
        count += 1
    return count


def man_pages() -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each page."""
    yield from _pages(main, click.Context(main, info_name="ambermq"))


def _pages(command: click.Command, context: click.Context) -> Iterator[tuple[str, str]]:
    path = context.command_path
    yield path.replace(" ", "-"), _page(command, context, path)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None and not below.hidden:
                yield from _pages(below, click.Context(below, info_name=name, parent=context))


def _page(command: click.Command, context: click.Context, path: str) -> str:
    lines = [
        f'.TH "{path.replace(" ", "-").upper()}" "{_SECTION}" "" "AmberMQ {__version__}" "AmberMQ"',
        ".SH NAME",
        f"{path.replace(' ', '-')} \\- {_escaped(command.get_short_help_str(200)).rstrip('.')}",
        ".SH SYNOPSIS",
        f".B {path}",
        _escaped(" ".join(command.collect_usage_pieces(context))),
        ".SH DESCRIPTION",
        *_paragraphs(command.help or ""),
    ]
    options = [
        option for option in command.get_params(context) if isinstance(option, click.Option) and not option.hidden
    ]
    records = [record for option in options if (record := option.get_help_record(context)) is not None]
    if records:
        lines.append(".SH OPTIONS")
        for names, text in records:
            lines += [".TP", f".B {_escaped(names)}", _escaped(text)]
    if isinstance(command, click.Group):
        lines.append(".SH COMMANDS")
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None and not below.hidden:
                page = f"{path} {name}".replace(" ", "-")
                lines += [".TP", f".BR {page} ({_SECTION})", _escaped(below.get_short_help_str(200))]
    if command.epilog:
        lines += [".SH NOTES", *_paragraphs(command.epilog)]
    return "\n".join([*lines, ""])


def _paragraphs(text: str) -> Iterator[str]:
    """Yield the lines of a help text; a paragraph that click does not wrap stays as it is."""
    for paragraph in text.strip().split("\n\n"):
        lines = [line.strip() for line in paragraph.splitlines()]
        if lines and lines[0] == "\b":
            yield from (".PP", ".nf", *map(_escaped, paragraph.splitlines()[1:]), ".fi")
        else:
            yield from (".PP", _escaped(" ".join(lines)))


def _escaped(text: str) -> str:
    """Return a line in which roff sees no requests and no escapes."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped


if __name__ == "__main__":
    print_line(f"{write_pages(Path(sys.argv[1]))} pages in {sys.argv[1]}")
