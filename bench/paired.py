"""`python -m bench.paired SIDE SIDE...`: measure the same load on several brokers in turn, in short windows.

The speed of a shared machine doubles and halves within seconds, so measurements one after the other cannot show a
difference of five per cent. Here every side has its own broker, sender and receiver. All of them run all the time, but
only one side gets load in a window, and the order changes each turn. The sum of a side's windows is compared with that
of the first side.

A side is `artemis`, `rabbitmq`, or the directory of a checkout with options after commas: `.`, `../before`,
`.,engine.lazy_write_ms=20`, `.,python=/usr/bin/python3`. TABLE.KEY=VALUE goes into the broker's configuration file.
python= is the interpreter of the broker; it must have the packages. scraped=N declares N queues, and reads the metrics
each second: `python -m bench.paired . .,scraped=1000` shows what watching costs.
"""

import argparse
import json
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from bench.brokers.ambermq import AmberMQ, command_module
from bench.brokers.artemis import Artemis
from bench.brokers.broker import Broker, BrokerFailed
from bench.brokers.rabbitmq import RabbitMQ
from bench.brokers.scraped import ScrapedAmberMQ
from bench.client.counter_file import Phase
from bench.load import LOADS, Load, LoadFailed, Running, start_load

__all__ = ["Side", "compare", "main"]

_PEERS: Final[dict[str, Callable[[Path], Broker]]] = {Artemis.name: Artemis, RabbitMQ.name: RabbitMQ}
_SETTLE_SECONDS: Final = 0.03
"""The time after each window in which its last messages are delivered; they count for the window."""


@dataclass(frozen=True, slots=True)
class Side:
    """A broker to measure, from an argument of the command line."""

    word: str
    tree: Path | None
    """The checkout; None for a peer."""
    python: str
    config: str
    """The content of its configuration file."""
    scraped: int = 0
    """The queues of a broker whose metrics are read each second; 0: they are not read."""

    @classmethod
    def parse(cls, word: str) -> "Side":
        """Return the side of an argument. Raises ArgumentTypeError."""
        if word in _PEERS:
            return cls(word, None, "", "")
        directory, *options = word.split(",")
        tree, python, lines, scraped = Path(directory).resolve(), sys.executable, [], 0
        if command_module(tree) is None:
            raise argparse.ArgumentTypeError(f"{directory} is no checkout: there is no ambermq/__main__.py in it")
        for option in options:
            name, _, value = option.partition("=")
            table, _, key = name.partition(".")
            if name == "python" and value:
                python = shutil.which(value) or value
            elif name == "scraped" and value.isdigit():
                scraped = int(value)
            elif key and value:
                lines.append(f"{table}.{key} = {value}\n")
            else:
                raise argparse.ArgumentTypeError(f"{option!r} is neither TABLE.KEY=VALUE, python=FILE nor scraped=N")
        return cls(word, tree, python, "".join(lines), scraped)

    def broker(self, place: Path) -> Broker:
        """Return the broker before its start, with its files at and beside a path."""
        if self.tree is None:
            return _PEERS[self.word](place)
        config = place.with_suffix(".toml")
        config.write_text(self.config)
        options = ("--config", str(config))
        command = (self.python, "-m", command_module(self.tree) or "")
        if self.scraped:
            return ScrapedAmberMQ(place, queues=self.scraped, command=command, options=options, tree=self.tree)
        return AmberMQ(place, command=command, options=options, tree=self.tree)


@dataclass(slots=True)
class _Measured:
    """A running side, and the sums of its windows."""

    side: Side
    running: Running
    count: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0

    def measure(self, seconds: float) -> None:
        self.running.phase(Phase.MEASURE)
        before = self.running.read()
        time.sleep(seconds)
        self.running.phase(Phase.PAUSE)
        self.seconds += time.monotonic() - before.time
        time.sleep(_SETTLE_SECONDS)
        after = self.running.read()
        self.count += after.received - before.received
        self.cpu_seconds += after.broker_cpu - before.broker_cpu

    def figures(self) -> dict[str, float]:
        """End the load; return its rate a second, CPU in microseconds a message, and latencies in milliseconds."""
        latencies = self.running.end()
        count = max(self.count, 1)
        return {"rate": self.count / self.seconds, "broker_cpu": self.cpu_seconds / count * 1e6, **latencies}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure all sides and print the figures; return 0, or 1 if one failed."""
    options = _parser().parse_args(arguments)
    try:
        load = LOADS[options.load]
        figures = compare(
            options.side,
            [load] * len(options.side),
            turns=options.turns,
            window_seconds=options.window,
            warm_seconds=options.warm,
        )
    except (BrokerFailed, LoadFailed) as failure:
        print(failure, file=sys.stderr)
        return 1
    if options.output == "json":
        rows = [{"side": side.word, **one} for side, one in zip(options.side, figures, strict=True)]
        print(json.dumps(rows, indent=2))
    else:
        _print_table(options.side, figures)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.paired", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("side", nargs="+", type=Side.parse, help="artemis, rabbitmq, or DIRECTORY[,OPTION]...")
    parser.add_argument("--load", choices=LOADS, default="paced", help="a scenario of `python -m bench`")
    parser.add_argument("--turns", type=int, default=40, help="number of windows for each side")
    parser.add_argument("--window", type=float, default=0.5, help="seconds of a window")
    parser.add_argument("--warm", type=float, default=3.0, help="seconds of load on each side before the first turn")
    parser.add_argument("--output", choices=("table", "json"), default="table")
    return parser


def compare(
    sides: Sequence[Side],
    loads: Sequence[Load],
    *,
    turns: int,
    window_seconds: float,
    warm_seconds: float,
    prepare: Callable[[int, Broker], None] = lambda _number, _broker: None,
) -> list[dict[str, float]]:
    """Return the figures of each side under its load (`_Measured.figures`). Raises BrokerFailed or LoadFailed.

    `prepare` is called with the number of a side and its broker, before the load of the side begins.
    """
    with (
        tempfile.TemporaryDirectory(prefix="ambermq-paired-", ignore_cleanup_errors=True) as directory,
        ExitStack() as stack,
    ):
        running_sides: list[_Measured] = []
        for number, (side, load) in enumerate(zip(sides, loads, strict=True)):
            broker = side.broker(Path(directory) / f"side-{number}")
            stack.callback(broker.kill)
            broker.start()
            prepare(number, broker)
            running = stack.enter_context(start_load(broker, load, Path(directory)))
            time.sleep(warm_seconds)
            running.phase(Phase.PAUSE)
            running_sides.append(_Measured(side, running))
        for turn in range(turns):
            print(f"turn {turn + 1} of {turns}", file=sys.stderr, flush=True)
            for measured in random.sample(running_sides, len(running_sides)):
                measured.measure(window_seconds)
        return [measured.figures() for measured in running_sides]


def _print_table(sides: Sequence[Side], figures: Sequence[dict[str, float]]) -> None:
    table = Table("side", "messages/s", "ratio", "broker CPU, us/message", "ratio", "settle p50, ms", "settle p99, ms")
    first = figures[0]
    for side, one in zip(sides, figures, strict=True):
        table.add_row(
            side.word,
            f"{one['rate']:,.0f}",
            f"{one['rate'] / first['rate']:.3f}",
            f"{one['broker_cpu']:.3g}",
            f"{one['broker_cpu'] / first['broker_cpu']:.3f}",
            *(f"{one[name]:.2f}" if name in one else "" for name in ("settle_p50", "settle_p99")),
        )
    Console(width=None if sys.stdout.isatty() else 132).print(table)


if __name__ == "__main__":
    sys.exit(main())
