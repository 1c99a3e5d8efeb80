"""A client's cells: a broker of its own, its driver, and what the driver says.

Rule 1. A driver that dies or hangs costs the behaviour that it was at; another one goes on behind it.
Rule 2. The broker keeps its port over a restart, as a client that reconnects must find it.
"""

import socket
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from ambermq.tools.broker.child_broker import ChildBroker
from tests.interop.matrix.behaviours import BEHAVIOURS
from tests.interop.matrix.cells import Cell, Verdict, read_cell
from tests.interop.matrix.client import BuildFailed, Client
from tests.interop.matrix.driver import CELL_SECONDS, RESTART, Driver

__all__ = ["run_client"]


def run_client(client: Client, behaviours: Sequence[str] = ()) -> list[Cell]:
    """Return a client's cells, for all behaviours or for these: not run without its toolchain, failed where unbuilt."""
    names = list(behaviours) or [behaviour.name for behaviour in BEHAVIOURS]
    missing = client.missing()
    if missing:
        why = f"not on the path: {', '.join(missing)}"
        return [Cell(client.name, name, Verdict.NOT_RUN, why) for name in names]
    try:
        client.build()
    except BuildFailed as failed:
        return [Cell(client.name, name, Verdict.FAILED, f"not built: {failed}") for name in names]
    with tempfile.TemporaryDirectory(prefix="ambermq-interop-") as place:
        return _run(client, names, Path(place))


def _run(client: Client, names: Sequence[str], place: Path) -> list[Cell]:
    broker = ChildBroker(place / "data", arguments=["--port", str(_free_port())])
    broker.start()
    cells: list[Cell] = []
    try:
        while len(cells) < len(names):
            cells += _session(client, names[len(cells) :], broker, place)
    finally:
        broker.kill()
    return cells


def _session(client: Client, names: Sequence[str], broker: ChildBroker, place: Path) -> list[Cell]:
    """Run one driver; returns its cells in order, the last of which may be the one that it died of."""
    driver = Driver([*client.command, broker.url, *names], client.place, place / "driver.stderr")
    cells = list(_cells(client, names, driver, broker))
    code = driver.end()
    if len(cells) < len(names):
        ended = f"no word for {CELL_SECONDS:.0f} s" if code is None else f"its driver ended with exit code {code}"
        why = f"{ended}: {driver.last_words()}"
        cells.append(Cell(client.name, names[len(cells)], Verdict.FAILED, why))
    return cells


def _cells(client: Client, names: Sequence[str], driver: Driver, broker: ChildBroker) -> Iterator[Cell]:
    due = iter(names)
    for line in driver.lines():
        if line == RESTART:
            broker.kill()
            broker.start()
            driver.tell()
            continue
        cell = read_cell(client.name, line)
        if cell is None:
            continue
        name = next(due)
        if cell.behaviour != name:
            yield Cell(client.name, name, Verdict.FAILED, f"its driver spoke of {cell.behaviour!r} instead")
            return
        yield cell
        if name == names[-1]:
            return


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port
