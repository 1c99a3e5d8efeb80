"""`python -m bench`: measure AmberMQ, Artemis and RabbitMQ in one run with the same client."""

import argparse
import resource
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from bench.load import Window
from bench.report import print_json, print_table
from bench.rounds import BrokerPool, run_scenario
from bench.scenarios import SCENARIOS

__all__ = ["main"]

_OPEN_FILES = 65_536


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the scenarios; return 0, or 1 if one failed on a broker."""
    options = _parser().parse_args(arguments)
    _raise_open_files()
    signal.signal(signal.SIGTERM, _unwind)
    chosen = [scenario for scenario in SCENARIOS if not options.only or scenario.name in options.only]
    window = Window(warm_seconds=options.warm, seconds=options.seconds)
    with (
        tempfile.TemporaryDirectory(prefix="ambermq-bench-", ignore_cleanup_errors=True) as directory,
        BrokerPool(Path(directory), with_peer=not options.no_peer) as brokers,
    ):
        outcomes = [run_scenario(scenario, brokers, window, options.rounds) for scenario in chosen]
    if options.output == "json":
        print_json(outcomes)
    else:
        print_table(outcomes, Console(width=None if sys.stdout.isatty() else 132))
    return int(any(outcome.failures for outcome in outcomes))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="number of measurements of each broker, in turn")
    parser.add_argument("--seconds", type=float, default=8.0, help="length of a measurement")
    parser.add_argument("--warm", type=float, default=3.0, help="seconds of load before a measurement")
    parser.add_argument("--only", nargs="+", choices=[scenario.name for scenario in SCENARIOS], metavar="NAME")
    parser.add_argument("--output", choices=("table", "json"), default="table")
    parser.add_argument("--no-peer", action="store_true", help="measure only AmberMQ")
    return parser


def _raise_open_files() -> None:
    """Raise the soft limit of open files, which brokers and clients inherit: 2,000 connections need it.

    The hard limit may be a million, which is too much: Erlang sizes a table by it.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, _OPEN_FILES)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _unwind(signal_number: int, _frame: object) -> None:
    """Exit through every `finally`, so that no broker and no directory is left."""
    sys.exit(128 + signal_number)


if __name__ == "__main__":
    sys.exit(main())
