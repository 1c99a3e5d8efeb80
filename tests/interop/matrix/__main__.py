"""`python -m tests.interop.matrix`: real clients against a real broker, as a table.

    python -m tests.interop.matrix [--client NAME]... [--behaviour NAME]... [--output table|json] [--write PAGE]

Exit code 0: nothing failed; 1: a cell failed; 2: the command line cannot be read.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Column, Table

from tests.interop.matrix.behaviours import BEHAVIOURS
from tests.interop.matrix.cells import Cell, Verdict
from tests.interop.matrix.clients import CLIENTS
from tests.interop.matrix.page import write_page
from tests.interop.matrix.runner import run_client

__all__ = ["main"]

_STYLES = {
    Verdict.PASSED: "green",
    Verdict.FAILED: "bold red",
    Verdict.NOT_OFFERED: "dim",
    Verdict.NOT_RUN: "yellow",
}
_BEHAVIOUR_COLUMNS: Final = max(len(behaviour.name) for behaviour in BEHAVIOURS) + 1
_VERDICT_COLUMNS: Final = max(len(verdict) for verdict in Verdict) + 1
"""The width of a column of the table: as many clients as fit stand side by side."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the matrix, print it, and return the exit code."""
    asked = _parser().parse_args(arguments)
    errors = Console(stderr=True)
    cells: list[Cell] = []
    for client in CLIENTS:
        if not asked.client or client.name in asked.client:
            errors.print(f"{client.title} {client.version()} ...", highlight=False)
            cells += run_client(client, asked.behaviour)
    if asked.output == "json":
        sys.stdout.write(json.dumps([cell.row() for cell in cells], indent=2) + "\n")
    else:
        _print(cells)
    if asked.write is not None:
        write_page(asked.write, cells)
    return int(any(cell.verdict is Verdict.FAILED for cell in cells))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.interop.matrix", description="Real clients, cell by cell.")
    parser.add_argument("--client", action="append", default=[], choices=[client.name for client in CLIENTS])
    parser.add_argument("--behaviour", action="append", default=[], choices=[row.name for row in BEHAVIOURS])
    parser.add_argument("--output", choices=["table", "json"], default="table")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="the page whose tables are written anew")
    return parser


def _print(cells: Sequence[Cell]) -> None:
    console = Console()
    shown = [client.name for client in CLIENTS if any(cell.client == client.name for cell in cells)]
    fitting = max(1, (console.width - _BEHAVIOUR_COLUMNS) // _VERDICT_COLUMNS)
    for first in range(0, len(shown), fitting):
        console.print(_table(cells, shown[first : first + fitting]))
    for cell in cells:
        if cell.verdict is not Verdict.PASSED:
            told = f"{cell.client} {cell.behaviour}: {cell.verdict}: {cell.detail}"
            console.print(told, highlight=False, markup=False, soft_wrap=True)


def _table(cells: Sequence[Cell], clients: Sequence[str]) -> Table:
    table = Table(Column("behaviour", no_wrap=True), *clients, box=None, padding=(0, 1, 0, 0))
    for behaviour in dict.fromkeys(cell.behaviour for cell in cells):
        table.add_row(behaviour, *(_verdict(cells, client, behaviour) for client in clients))
    return table


def _verdict(cells: Sequence[Cell], client: str, behaviour: str) -> str:
    for cell in cells:
        if (cell.client, cell.behaviour) == (client, behaviour):
            return f"[{_STYLES[cell.verdict]}]{cell.verdict}[/]"
    return ""


if __name__ == "__main__":
    sys.exit(main())
