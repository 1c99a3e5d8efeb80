"""The matrix with the clients of `make test`, what the runner does about bad drivers, and the page."""

import json
import re
import sys
from pathlib import Path

import pytest

from tests.interop.matrix.__main__ import main
from tests.interop.matrix.behaviours import BEHAVIOURS
from tests.interop.matrix.cells import Cell, Verdict, read_cell
from tests.interop.matrix.client import HERE, Client
from tests.interop.matrix.clients import CLIENTS
from tests.interop.matrix.page import BEGIN, END, behaviour_table, matrix_table, reasons_table, tables, write_page
from tests.interop.matrix.runner import run_client

NAMES = [behaviour.name for behaviour in BEHAVIOURS]
PAGE = Path(__file__).parents[3] / "docs" / "interop.md"


def client(name: str) -> Client:
    """The client of that name."""
    return next(client for client in CLIENTS if client.name == name)


def scripted(script: str, **fields: object) -> Client:
    """A client whose driver is a line of Python."""
    columns: dict[str, object] = {"tools": (), "builds": (), **fields}
    command = (sys.executable, "-u", "-c", script)
    return Client(name="x", title="X", version=lambda: "1", command=command, place=Path(), **columns)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["proton", "rhea"])
def test_every_behaviour_passes(name: str) -> None:
    """With Proton and rhea each cell is `passed`, but for what a client itself does not offer; none is left out."""
    asked = client(name)
    if asked.missing():
        pytest.skip(f"not on the path: {', '.join(asked.missing())}")
    if not asked.is_built() and asked.builds:
        pytest.skip("rhea is not installed: run `make rhea`")
    cells = run_client(asked)
    missing = {("rhea", "transaction")}
    left = [cell for cell in cells if (name, cell.behaviour) not in missing]
    assert [cell for cell in left if cell.verdict is not Verdict.PASSED] == []
    assert [cell.behaviour for cell in cells] == NAMES


def test_a_missing_toolchain_is_not_run() -> None:
    """Without its programs a client has no cell that passed; each says what is missing."""
    cells = run_client(scripted("", tools=("no-such-program",)))
    assert {(cell.verdict, cell.detail) for cell in cells} == {(Verdict.NOT_RUN, "not on the path: no-such-program")}
    assert [cell.behaviour for cell in cells] == NAMES


def test_a_driver_that_cannot_be_built_has_failed() -> None:
    """The toolchain is there, so nothing is excused; its last words are told."""
    build = (sys.executable, "-c", "raise SystemExit('no such library')")
    cells = run_client(scripted("", builds=(build,)), ["send", "drain"])
    assert [cell.verdict for cell in cells] == [Verdict.FAILED] * 2
    assert all("exit code 1: no such library" in cell.detail for cell in cells)


def test_a_driver_that_dies_costs_one_cell() -> None:
    """What it was at has failed, with its last words; another driver goes on behind that."""
    script = """
import json, sys
for name in sys.argv[2:]:
    if name == "drain":
        sys.exit("it fell")
    print("noise", json.dumps({"behaviour": name}))
    print(json.dumps({"behaviour": name, "verdict": "passed"}))
"""
    cells = run_client(scripted(script), ["credit", "drain", "send"])
    assert [cell.verdict for cell in cells] == [Verdict.PASSED, Verdict.FAILED, Verdict.PASSED]
    assert cells[1].detail == "its driver ended with exit code 1: it fell"


def test_a_driver_that_speaks_of_something_else_has_failed() -> None:
    """A verdict counts for the behaviour that was asked for, and for no other."""
    script = """
import json, sys
print(json.dumps({"behaviour": "send", "verdict": "passed"}))
"""
    (cell,) = run_client(scripted(script), ["drain"])
    assert (cell.verdict, cell.detail) == (Verdict.FAILED, "its driver spoke of 'send' instead")


def test_the_broker_is_killed_when_a_driver_asks_for_it() -> None:
    """Who says `restart` finds the broker at the same address when it is told so, and another process behind it."""
    script = """
import json, socket, sys
from urllib.parse import urlsplit
place = urlsplit(sys.argv[1])
before = socket.create_connection((place.hostname, place.port))
print("restart")
sys.stdin.readline()
try:
    ended = before.recv(1) == b""
except ConnectionResetError:
    ended = True
socket.create_connection((place.hostname, place.port)).close()
print(json.dumps({"behaviour": sys.argv[2], "verdict": "passed" if ended else "failed"}))
"""
    (cell,) = run_client(scripted(script), ["reconnect"])
    assert cell == Cell("x", "reconnect", Verdict.PASSED)


@pytest.mark.parametrize("line", ["", "[]", "1", '{"behaviour": "send"}', '{"behaviour": "send", "verdict": "maybe"}'])
def test_what_is_no_verdict_is_none(line: str) -> None:
    """Only a whole line with a known verdict counts."""
    assert read_cell("x", line) is None


def test_rows_and_exit_code(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The listing has a row a cell; a failed cell makes the exit code 1, one that was not run does not."""
    verdict = Verdict.NOT_RUN
    monkeypatch.setattr(
        "tests.interop.matrix.__main__.run_client", lambda client, names: [Cell(client.name, "send", verdict, "why")]
    )
    assert main(["--client", "go", "--output", "json"]) == 0
    row = {"client": "go", "behaviour": "send", "verdict": "not run", "detail": "why"}
    assert json.loads(capsys.readouterr().out) == [row]
    verdict = Verdict.FAILED
    assert main(["--client", "go"]) == 1
    assert "go send: failed: why" in capsys.readouterr().out


def test_every_verdict_is_whole_in_80_columns(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As many clients as fit stand side by side; the others have a table below."""
    monkeypatch.setenv("COLUMNS", "80")
    verdict = Verdict.NOT_OFFERED
    monkeypatch.setattr(
        "tests.interop.matrix.__main__.run_client", lambda client, names: [Cell(client.name, "send", verdict)]
    )
    assert main([]) == 0
    tables = [line for line in capsys.readouterr().out.splitlines() if ": " not in line]
    assert max(map(len, tables)) <= 80
    assert " ".join(tables).count("not offered") == len(CLIENTS)


def test_every_module_of_the_jvm_is_a_client() -> None:
    """Each module of the Maven project has a column, but for the one that they share."""
    text = (HERE / "jvm" / "pom.xml").read_text(encoding="utf-8")
    modules = set(re.findall(r"<module>(\w+)</module>", text)) - {"driver"}
    assert modules == {client.name for client in CLIENTS if client.place == HERE / "jvm"}


def test_what_has_no_cell_was_not_run() -> None:
    """In the matrix nothing is `passed` but what passed."""
    table = matrix_table([Cell("go", "drain", Verdict.PASSED)])
    assert (table.count("passed"), table.count("not run")) == (1, len(CLIENTS) * len(NAMES) - 1)


def test_reasons() -> None:
    """A client that says the same of all behaviours has one row, others one a cell that has something to say."""
    missing = [Cell("go", name, Verdict.NOT_RUN, "no go") for name in NAMES]
    other = [Cell("jms", "send", Verdict.PASSED), Cell("jms", "drain", Verdict.FAILED, "a | b")]
    assert reasons_table([*missing, *other]).splitlines()[2:] == [
        "| Qpid JMS, Java | `drain` | failed | a \\| b |",
        "| go-amqp, Go | all | not run | no go |",
    ]


def test_the_page_is_written_between_its_marks(tmp_path: Path) -> None:
    """What people wrote stays; a page without marks is refused."""
    page = tmp_path / "page.md"
    page.write_text(f"head\n{BEGIN}\nold\n{END}\ntail\n")
    cells = [Cell("go", "drain", Verdict.PASSED)]
    write_page(page, cells)
    write_page(page, cells)
    assert page.read_text() == f"head\n{BEGIN}\n\n{tables(cells)}\n\n{END}\ntail\n"
    page.write_text("head\n")
    with pytest.raises(ValueError, match="has no lines"):
        write_page(page, cells)


def test_the_page_is_of_this_matrix() -> None:
    """docs/interop.md has the behaviours and clients of the code, a verdict in each cell, and none that failed."""
    written = PAGE.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]
    meanings, matrix, _ = written.strip().split("\n\n")
    assert meanings == behaviour_table()
    heads, _, *rows = ([cell.strip() for cell in line.strip("| ").split("|")] for line in matrix.splitlines())
    assert [head.rpartition(" ")[0] for head in heads[1:]] == [client.title for client in CLIENTS]
    assert [row[0] for row in rows] == [f"`{name}`" for name in NAMES]
    assert {cell for row in rows for cell in row[1:]} <= {"passed", "not offered", "not run"}
