"""Two brokers of one tree under the same loads in turn, one without what is measured and one with it."""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from typing import Any

from bench.brokers.broker import BrokerFailed
from bench.load import LOADS, LoadFailed
from bench.paired import Side

__all__ = ["Compare", "cost_of", "options_of", "report"]

Compare = Callable[..., Sequence[Any]]
"""`bench.paired.compare`: it takes sides and loads, and returns the figures of each side."""


def cost_of(
    compare: Compare, sides: Sequence[Side], load: str, options: argparse.Namespace, *, cost_max: float, **more: Any
) -> dict[str, Any]:
    """Return the figures of the side without and the side with, and what the second one costs of the rate."""
    without, with_it = compare(
        sides,
        [LOADS[load]] * len(sides),
        turns=options.turns,
        window_seconds=options.window,
        warm_seconds=options.warm,
        **more,
    )
    cost = 1 - with_it["rate"] / without["rate"]
    return {
        "load": load,
        "rate_without": without["rate"],
        "rate_with": with_it["rate"],
        "cpu_without": without["broker_cpu"],
        "cpu_with": with_it["broker_cpu"],
        "cost": cost,
        "cpu_cost": with_it["broker_cpu"] / without["broker_cpu"] - 1,
        "is_met": cost <= cost_max,
    }


def options_of(
    prog: str, description: str | None, *, turns: int, window: float, warm: float
) -> argparse.ArgumentParser:
    """Return a parser of the options that all commands have."""
    parser = argparse.ArgumentParser(
        prog=prog, description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--load", action="append", choices=LOADS, help="a load of `bench.paired`; may be repeated")
    parser.add_argument("--turns", type=int, default=turns, help="number of windows for each side")
    parser.add_argument("--window", type=float, default=window, help="seconds of a window")
    parser.add_argument("--warm", type=float, default=warm, help="seconds of load before the first window")
    parser.add_argument("--output", choices=("table", "json"), default="table")
    return parser


def report(measure: Callable[[str], dict[str, Any]], loads: Sequence[str], *, cost_max: float, output: str) -> int:
    """Measure each load and print the figures; return 0, or 1 if a broker or a load failed."""
    try:
        rows = [measure(load) for load in loads]
    except (BrokerFailed, LoadFailed) as failure:
        print(failure, file=sys.stderr)
        return 1
    if output == "json":
        print(json.dumps(rows, indent=2))
        return 0
    for row in rows:
        print(
            f"{row['load']}: {row['rate_without']:,.0f} messages/s without, {row['rate_with']:,.0f} with: "
            f"{row['cost']:.1%} slower, at most {cost_max:.0%}: {'met' if row['is_met'] else 'missed'}; "
            f"CPU {row['cpu_without']:.3g} and {row['cpu_with']:.3g} us a message, {row['cpu_cost']:+.1%}"
        )
    return 0
