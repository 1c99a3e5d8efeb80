"""docs/interop.md: the tables that the runner writes between two marks of the page.

There are three tables: the meanings of the behaviours, the matrix, and the details of its cells.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.interop.matrix.behaviours import BEHAVIOURS
from tests.interop.matrix.cells import Cell, Verdict
from tests.interop.matrix.clients import CLIENTS

__all__ = ["BEGIN", "END", "behaviour_table", "matrix_table", "reasons_table", "tables", "write_page"]

BEGIN = "<!-- begin: `make test-interop` writes this part -->"
END = "<!-- end: `make test-interop` writes this part -->"

_SHOWN = {Verdict.PASSED: "passed", Verdict.FAILED: "**failed**", Verdict.NOT_OFFERED: "not offered"}


def behaviour_table() -> str:
    """Return the meaning of each behaviour."""
    return _table(("behaviour", "passed means"), [(f"`{row.name}`", row.meaning) for row in BEHAVIOURS])


def matrix_table(cells: Sequence[Cell]) -> str:
    """Return the matrix: a row for each behaviour, a column for each client; a missing cell was not run."""
    known = _by_place(cells)
    heads = ("behaviour", *(f"{client.title} {client.version()}" for client in CLIENTS))
    return _table(heads, [(f"`{row.name}`", *_verdicts(known, row.name)) for row in BEHAVIOURS])


def reasons_table(cells: Sequence[Cell]) -> str:
    """Return the cells with details; one row if all cells of a client have the same."""
    return _table(("client", "behaviour", "verdict", "details"), list(_reasons(cells)))


def tables(cells: Sequence[Cell]) -> str:
    """Return the text between the marks."""
    return "\n\n".join((behaviour_table(), matrix_table(cells), reasons_table(cells)))


def write_page(page: Path, cells: Sequence[Cell]) -> None:
    """Write the tables between the marks of a page. Raises ValueError if it has none."""
    text = page.read_text(encoding="utf-8")
    head, begin, rest = text.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{page} has no lines {BEGIN!r} and {END!r} to write between")
    page.write_text(f"{head}{BEGIN}\n\n{tables(cells)}\n\n{END}{tail}", encoding="utf-8")


def _verdicts(known: Mapping[tuple[str, str], Cell], behaviour: str) -> Iterator[str]:
    for client in CLIENTS:
        cell = known.get((client.name, behaviour))
        yield "not run" if cell is None else _SHOWN.get(cell.verdict, str(cell.verdict))


def _reasons(cells: Sequence[Cell]) -> Iterator[tuple[str, ...]]:
    for client in CLIENTS:
        told = [cell for cell in cells if cell.client == client.name and cell.detail]
        if len(told) == len(BEHAVIOURS) and len({(cell.verdict, cell.detail) for cell in told}) == 1:
            yield client.title, "all", str(told[0].verdict), _plain(told[0].detail)
            continue
        for cell in told:
            yield client.title, f"`{cell.behaviour}`", str(cell.verdict), _plain(cell.detail)


def _by_place(cells: Sequence[Cell]) -> dict[tuple[str, str], Cell]:
    return {(cell.client, cell.behaviour): cell for cell in cells}


def _plain(text: str) -> str:
    return text.replace("|", "\\|")


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
