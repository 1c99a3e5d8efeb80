"""`python -m bench.churn`: many connections that come and go beside a steady stream of 1,000 messages a second.

A child process holds 5,000 connections, each with a session and a receiver, from 32 addresses of the loopback. It
closes the oldest and opens a new one 200 times a second; every second one is closed without a goodbye. The stream is
measured alone and beside that, in turn. The memory of the broker is read with all connections open, before the first
replacement and after the last one of all runs: what churn leaks is the difference. It is read without them too, before
the first connection and after the last one; the system gets an arena of 1 MiB back only when none of its blocks is in
use, so the resident set stays higher then, and the interpreter's blocks in use tell of a leak.
"""

import argparse
import json
import resource
import select
import statistics
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.client.link_client import LinkClient
from ambermq.tools.client.management_client import Management
from bench.brokers.ambermq import AmberMQ
from bench.brokers.broker import BrokerFailed
from bench.client.connection import Connection
from bench.load import LOADS, LoadFailed, Window, run_load

__all__ = ["main"]

_P99_RATIO_MAX: Final = 3.0
_MEMORY_RATIO_MAX: Final = 1.10
"""Of the blocks in use, and of the resident set, after the last run to before the first one."""
_ADDRESSES: Final = 32
_SPARE: Final = 1_000
"""Descriptors and connections beyond those that are held."""
_WARM_SECONDS: Final = 3.0
_REST_SECONDS: Final = 5.0
"""The time after the last connection in which the broker frees what it held."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print the figures; return 0, or 1 if the broker or a load failed."""
    options = _parser().parse_args(arguments)
    _raise_open_files(options.connections + _SPARE)
    if options.peer:
        _churn(options)
        return 0
    try:
        _measure(options)
    except (BrokerFailed, LoadFailed) as failure:
        print(failure, file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.churn", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--connections", type=int, default=5000, help="connections at once")
    parser.add_argument("--rate", type=int, default=200, help="connections that are replaced each second")
    parser.add_argument("--seconds", type=float, default=60.0, help="length of a measurement")
    parser.add_argument("--runs", type=int, default=5, help="measurements alone and beside the churn, in turn")
    parser.add_argument("--output", choices=("table", "json"), default="table")
    parser.add_argument("--peer", metavar="URL", help=argparse.SUPPRESS)
    return parser


def _measure(options: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory(prefix="ambermq-churn-", ignore_cleanup_errors=True) as name:
        directory = Path(name)
        config = directory / "churn.toml"
        config.write_text(f"[server]\nconnections_max = {options.connections + _SPARE}\n")
        broker = AmberMQ(directory / "data", options=("--config", str(config)))
        broker.start()
        try:
            figures = _runs(broker, directory, options)
        finally:
            broker.kill()
    _print(figures, options.output)


def _runs(broker: AmberMQ, directory: Path, options: argparse.Namespace) -> dict[str, float]:
    """Return the figures of all runs."""
    load, window = LOADS["paced"], Window(_WARM_SECONDS, options.seconds)
    alone, beside, opened = [], [], []
    before = full = held = after_first = blocks = 0
    for number in range(options.runs):
        print(f"run {number + 1} of {options.runs}", file=sys.stderr, flush=True)
        alone.append(run_load(broker, load, window, directory)["settle_p99"])
        time.sleep(_REST_SECONDS)
        before = before or broker.usage().rss_bytes
        blocks = blocks or _blocks(broker.url)
        with _churning(broker, options) as churn:
            full = full or broker.usage().rss_bytes
            beside.append(run_load(broker, load, window, directory)["settle_p99"])
            held = broker.usage().rss_bytes
            opened.append(_end(churn)["opened_a_second"])
        time.sleep(_REST_SECONDS)
        after_first = after_first or broker.usage().rss_bytes
    after = broker.usage().rss_bytes
    return {
        "p99_alone_ms": statistics.median(alone),
        "p99_beside_ms": statistics.median(beside),
        "p99_ratio": statistics.median(beside) / statistics.median(alone),
        "opened_a_second": statistics.median(opened),
        "rss_before_bytes": before,
        "rss_full_bytes": full,
        "rss_held_bytes": held,
        "churn_rss_ratio": held / full,
        "rss_after_first_bytes": after_first,
        "rss_after_bytes": after,
        "rss_ratio": after / before,
        "blocks_before": blocks,
        "blocks_ratio": _blocks(broker.url) / blocks,
    }


def _blocks(url: str) -> int:
    """Return the number of memory blocks that the broker's interpreter uses."""
    with LinkClient.connect(BrokerUrl.parse(url)) as client:
        figures = Management(client).request("READ", "org.ambermq.broker", {}, where="the broker")[1]
    blocks: int = figures["interpreter_blocks"]
    return blocks


@contextmanager
def _churning(broker: AmberMQ, options: argparse.Namespace) -> Iterator[subprocess.Popen[str]]:
    """Start the child process, and wait until it holds all connections."""
    numbers = ("--connections", str(options.connections), "--rate", str(options.rate))
    command = [sys.executable, "-m", "bench.churn", "--peer", broker.url, *numbers]
    child = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parent.parent
    )
    try:
        assert child.stdout is not None
        if child.stdout.readline().strip() != "ready":
            raise LoadFailed("the connections could not be opened; the message is above")
        yield child
    finally:
        child.kill()
        child.communicate()


def _end(child: subprocess.Popen[str]) -> dict[str, float]:
    """End the churn; return its report. Raises LoadFailed."""
    output, _ = child.communicate("\n")
    if child.returncode:
        raise LoadFailed(f"the churn ended with code {child.returncode}; the message is above")
    report: dict[str, float] = json.loads(output)
    return report


def _churn(options: argparse.Namespace) -> None:
    """Hold the connections, and replace the oldest ones until standard input has a line."""
    held = deque(_connect(options.peer, number) for number in range(options.connections))
    print("ready", flush=True)
    began, count, ended = time.monotonic(), 0, _InputWatch()
    while not ended.is_ready(max(0.0, began + count / options.rate - time.monotonic())):
        _close(held.popleft(), is_polite=bool(count % 2))
        held.append(_connect(options.peer, options.connections + count))
        count += 1
    print(json.dumps({"opened_a_second": count / (time.monotonic() - began)}), flush=True)
    for connection in held:
        _close(connection, is_polite=True)


class _InputWatch:
    """Standard input, which ends the churn."""

    def __init__(self) -> None:
        self._selector = select.poll()
        self._selector.register(sys.stdin, select.POLLIN)

    def is_ready(self, seconds: float) -> bool:
        """Wait until the input has a line, or the time is over; return whether it has one."""
        return bool(self._selector.poll(round(seconds * 1000)))


def _connect(url: str, number: int) -> Connection:
    """Open a connection with a session and a receiver, from one of the addresses of the loopback."""
    source = f"127.0.0.{2 + number % _ADDRESSES}"
    connection = Connection(url, container=f"churn-{number}", source=source)
    connection.begin()
    connection.attach(f"churn-{number}", f"churned-{number % _ADDRESSES}", receives=True, credit=10)
    return connection


def _close(connection: Connection, *, is_polite: bool) -> None:
    if is_polite:
        connection.close()
    else:
        connection.socket.close()


def _print(figures: dict[str, float], output: str) -> None:
    ratios = {
        "p99_ratio": _P99_RATIO_MAX,
        "churn_rss_ratio": _MEMORY_RATIO_MAX,
        "rss_ratio": _MEMORY_RATIO_MAX,
        "blocks_ratio": _MEMORY_RATIO_MAX,
    }
    bars = {name: "met" if figures[name] <= most else "missed" for name, most in ratios.items()}
    if output == "json":
        print(json.dumps(figures | {"bars": bars}, indent=2))
        return
    for name, value in figures.items():
        shown = f"{value / (1 << 20):.1f} MiB" if name.endswith("_bytes") else f"{value:.2f}"
        bar = f"   at most {ratios[name]:g}: {bars[name]}" if name in ratios else ""
        print(f"{name:22} {shown:>12}{bar}")


def _raise_open_files(wanted: int) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = wanted if hard == resource.RLIM_INFINITY else min(hard, wanted)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


if __name__ == "__main__":
    sys.exit(main())
