"""`python -m bench.measures.calls [TREE]...`: count the broker's Python calls for one durable message at a time.

One sender, one queue and one receiver: each message of 100 bytes finds an idle broker. The count is from the read of
its transfer to the write of its settlement (call_probe.py); `with sync` adds the sync of that write. The figures are
medians, since a periodic job falls into some messages. A TREE is the directory of a checkout; default: this one.
`plain` is the client of the other measurements, `proton` the client of a library (client/proton_client.py).
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from bench.brokers.ambermq import AmberMQ, command_module
from bench.brokers.broker import BrokerFailed
from bench.load import Load, LoadFailed, start_load

__all__ = ["CLIENTS", "count_calls", "main"]

CLIENTS: Final = ("plain", "proton")
_LOAD: Final = Load(100, rate=10)
_MESSAGES: Final = 100
_FIGURES: Final = ("calls", "files", "file_changes", "ticks", "with_sync")
_WAIT_SECONDS: Final = 60.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Count for each tree and print the figures; return 0, or 1 if a broker failed."""
    parser = argparse.ArgumentParser(prog="python -m bench.measures.calls", description=__doc__)
    parser.add_argument("tree", nargs="*", type=Path, default=[Path(__file__).parents[2]])
    parser.add_argument("--client", choices=CLIENTS, action="append", help="default: each")
    parser.add_argument("--messages", type=int, default=_MESSAGES, help="number of messages to count")
    parser.add_argument("--functions", action="store_true", help="also print the calls of each function")
    options = parser.parse_args(arguments)
    table = Table("tree", "client", *(name.replace("_", " ") for name in _FIGURES))
    for client in options.client or CLIENTS:
        for tree in options.tree:
            try:
                counted = count_calls(tree, client, options.messages)
            except (BrokerFailed, LoadFailed) as failure:
                print(failure, file=sys.stderr)
                return 1
            figures = [statistics.median(one[name] for one in counted["messages"]) for name in _FIGURES]
            table.add_row(str(tree), client, *(f"{figure:g}" for figure in figures))
            if options.functions:
                _print_functions(counted["functions"], options.messages)
    Console().print(table)
    return 0


def count_calls(tree: Path, client: str, messages: int) -> dict[str, Any]:
    """Return the counts of each message, and of each function. Raises BrokerFailed and LoadFailed."""
    tree = tree.resolve()
    module = command_module(tree)
    if module is None:
        raise BrokerFailed(f"{tree} is no checkout: it holds no command")
    with tempfile.TemporaryDirectory(prefix="ambermq-calls-", ignore_cleanup_errors=True) as name:
        directory = Path(name)
        counts = directory / "counts.json"
        probe = str(Path(__file__).with_name("call_probe.py"))
        cli = "tools.cli" if module == "tools" else f"{module}.tools.cli"
        command = (sys.executable, "-P", probe, cli, str(counts), str(messages))
        broker = AmberMQ(directory / "data", command=command, tree=tree)
        try:
            broker.start()
            with _start_client(client, broker, directory):
                _await_file(counts)
        finally:
            broker.kill()
        counted: dict[str, Any] = json.loads(counts.read_text())
        return counted


@contextmanager
def _start_client(client: str, broker: AmberMQ, directory: Path) -> Iterator[None]:
    if client == "plain":
        with start_load(broker, _LOAD, directory):
            yield
        return
    command = [sys.executable, "-m", "bench.client.proton_client", broker.url]
    process = subprocess.Popen(command, cwd=Path(__file__).parents[2], stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def _await_file(file: Path) -> None:
    deadline = time.monotonic() + _WAIT_SECONDS
    while not file.exists() or not file.stat().st_size:
        if time.monotonic() > deadline:
            raise LoadFailed(f"the broker did not count the messages within {_WAIT_SECONDS:g} s")
        time.sleep(0.05)


def _print_functions(functions: dict[str, int], messages: int) -> None:
    for name, count in sorted(functions.items(), key=lambda one: -one[1]):
        print(f"{count / messages:8.2f} {name}")


if __name__ == "__main__":
    sys.exit(main())
