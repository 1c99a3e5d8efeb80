"""`python -m bench.costs.overhead`: what metrics, audit and structured logging cost of the throughput.

Two brokers of this checkout run in turn, as in `bench.paired`, each with 1,000 queues:

    without    no HTTP listener, log lines of errors alone, at most one audit event waits
    with       a scrape of /metrics each second, the default level with JSON lines, the audit log
"""

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Final

from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.client.link_client import LinkClient
from ambermq.tools.client.management_client import Management, queue_declaration
from bench.brokers.broker import Broker, BrokerFailed
from bench.load import LOADS, LoadFailed
from bench.paired import Side, compare

__all__ = ["main"]

_COST_MAX: Final = 0.05
_LOADS: Final = ("one-1k", "one-100")


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
            f"CPU {row['cpu_without']:.3g} and {row['cpu_with']:.3g} us a message"
        )
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.costs.overhead", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--load", action="append", choices=LOADS, help="a load of `bench.paired`; may be repeated")
    parser.add_argument("--queues", type=int, default=1000, help="queues of each broker")
    parser.add_argument("--turns", type=int, default=40, help="number of windows for each side")
    parser.add_argument("--window", type=float, default=1.0, help="seconds of a window; a scrape comes each second")
    parser.add_argument("--warm", type=float, default=5.0, help="seconds of load before the first window")
    parser.add_argument("--output", choices=("table", "json"), default="table")
    return parser


def _measure(load: str, options: argparse.Namespace) -> dict[str, float | str | bool]:
    """Return the figures of both sides under a load."""

    def prepare(number: int, broker: Broker) -> None:
        # The scraped broker declares its queues itself.
        if not number:
            _declare(broker, options.queues)

    sides = [
        Side.parse('.,logging.level="error",audit.queue_max=1'),
        Side.parse(f'.,logging.level="info",logging.format="json",scraped={options.queues}'),
    ]
    without, watched = compare(
        sides,
        [LOADS[load]] * len(sides),
        turns=options.turns,
        window_seconds=options.window,
        warm_seconds=options.warm,
        prepare=prepare,
    )
    cost = 1 - watched["rate"] / without["rate"]
    return {
        "load": load,
        "rate_without": without["rate"],
        "rate_with": watched["rate"],
        "cost": cost,
        "is_met": cost <= _COST_MAX,
        "cpu_without": without["broker_cpu"],
        "cpu_with": watched["broker_cpu"],
    }


def _declare(broker: Broker, count: int) -> None:
    with LinkClient.connect(BrokerUrl.parse(broker.url)) as client:
        for refusal in Management(client).carry_out([queue_declaration(f"watched-{one}") for one in range(count)]):
            if refusal is not None:
                raise BrokerFailed(str(refusal))


if __name__ == "__main__":
    sys.exit(main())
