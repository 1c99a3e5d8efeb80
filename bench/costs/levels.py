"""`python -m bench.costs.levels`: what priorities and groups cost a queue whose messages are all of one kind.

Two brokers of this checkout run in turn, as in `bench.paired`. The queues of one have both settings, as new queues do,
and those of the other have none of them. Loads: messages without a priority, and those of Qpid JMS, which have one.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from bench.brokers.broker import BrokerFailed
from bench.load import LOADS, LoadFailed
from bench.paired import Side, compare

__all__ = ["main"]

_COST_MAX: Final = 0.03
_LOADS: Final = ("one-100", "jms-100")
_SIDES: Final = ("without", "with")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure each load and print the figures; return 0, or 1 if a broker or a load failed."""
    options = _parser().parse_args(arguments)
    try:
        rows = [_measure(load, options) for load in options.load or _LOADS]
    except (BrokerFailed, LoadFailed) as failure:
        print(failure, file=sys.stderr)
        return 1
    if options.output == "json":
        print(json.dumps(rows, indent=2))
        return 0
    for row in rows:
        print(
            f"{row['load']}: {row['rate_without']:,.0f} messages/s without, {row['rate_with']:,.0f} with: "
            f"{row['cost']:.1%} slower, at most {_COST_MAX:.0%}: {'met' if row['is_met'] else 'missed'}; "
            f"CPU {row['cpu_without']:.3g} and {row['cpu_with']:.3g} us a message, {row['cpu_cost']:+.1%}"
        )
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.costs.levels", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--load", action="append", choices=LOADS, help="a load of `bench.paired`; may be repeated")
    parser.add_argument("--turns", type=int, default=60, help="number of windows for each side")
    parser.add_argument("--window", type=float, default=0.5, help="seconds of a window")
    parser.add_argument("--warm", type=float, default=3.0, help="seconds of load before the first window")
    parser.add_argument("--output", choices=("table", "json"), default="table")
    return parser


def _measure(load: str, options: argparse.Namespace) -> dict[str, float | str | bool]:
    """Return the figures of both sides under a load."""
    without, levels = compare(
        [_side(word) for word in _SIDES],
        [LOADS[load]] * len(_SIDES),
        turns=options.turns,
        window_seconds=options.window,
        warm_seconds=options.warm,
    )
    cost = 1 - levels["rate"] / without["rate"]
    return {
        "load": load,
        "rate_without": without["rate"],
        "rate_with": levels["rate"],
        "cpu_without": without["broker_cpu"],
        "cpu_with": levels["broker_cpu"],
        "cost": cost,
        "cpu_cost": levels["broker_cpu"] / without["broker_cpu"] - 1,
        "is_met": cost <= _COST_MAX,
    }


def _side(word: str) -> Side:
    flag = "true" if word == "with" else "false"
    config = f'[[templates]]\nname = "measured"\npattern = "#"\npriorities = {flag}\ngroups = {flag}\n'
    return replace(Side.parse("."), word=word, config=config)


if __name__ == "__main__":
    sys.exit(main())
