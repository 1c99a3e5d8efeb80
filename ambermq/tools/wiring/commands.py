"""`ambermq wiring`: the whole wiring of a broker, as a file and as a graph."""

from pathlib import Path
from typing import Final

import click

from ambermq.tools.client.broker_option import broker_options
from ambermq.tools.past.moment_option import at_option
from ambermq.tools.terminal.lazy_group import LazyGroup
from ambermq.tools.terminal.output import output_option, print_done, print_json, print_line, print_words
from ambermq.tools.wiring.client import wiring_rows
from ambermq.tools.wiring.document import check_suffix, wiring_of, write_wiring
from ambermq.tools.wiring.graph import dot_lines, tree_lines

__all__ = ["wiring"]

_LAZY: Final = {
    "apply": (
        "ambermq.tools.wiring.apply:apply",
        "Apply the wiring in FILE to the broker and print each change.",
    ),
    "diff": (
        "ambermq.tools.wiring.apply:diff",
        "Print the differences between the broker and FILE.",
    ),
}
"""Commands with slow imports."""


@click.group(cls=LazyGroup, lazy=_LAZY, epilog="Example: ambermq wiring export wiring.toml --data ./data")
def wiring() -> None:
    """Export, compare, apply and draw muxers, queues, attachments."""


@wiring.command("export", epilog="Example: ambermq wiring export wiring.toml --data ./data")
@click.argument("file")
@at_option
@broker_options
@output_option
def export(file: str, at: str | None, url: str | None, data: str | None, output: str) -> None:
    """Write the wiring to FILE, as TOML or JSON by its suffix.

    Write - for standard output; --output chooses the format. The file leaves out what each broker has: QUEUE, TOPIC,
    and the attachment of each queue to QUEUE by its name. It leaves out subscriptions and temporary nodes too.
    """
    if file != "-":
        check_suffix(file)
    found = wiring_of(wiring_rows(url, data, at))
    text = write_wiring(found, is_json=output == "json" if file == "-" else file.endswith(".json"))
    if file == "-":
        print_line(text.rstrip("\n"))
        return
    Path(file).write_text(text, encoding="utf-8")
    counts = {"muxers": len(found.muxers), "queues": len(found.queues), "attachments": len(found.attachments)}
    summary = ", ".join(f"{count:,} {noun}" for noun, count in counts.items())
    print_done(f"exported {summary} to {file}", {"file": file, **counts}, output)


@wiring.command("graph", epilog="Example: ambermq wiring graph --dot --data ./data")
@click.option("--dot", is_flag=True, help="Print it in Graphviz's format.")
@at_option
@broker_options
@output_option
def graph(dot: bool, at: str | None, url: str | None, data: str | None, output: str) -> None:
    """Draw muxers with their attached queues and muxers as a tree."""
    rows = wiring_rows(url, data, at)
    if output == "json":
        print_json({"muxers": rows.muxers, "attachments": rows.attachments}, indent=True)
        return
    for line in dot_lines(rows) if dot else tree_lines(rows):
        print_words(line)
