"""`python -m bench.costs.overhead`: what metrics, audit and structured logging cost of the throughput.

Two brokers of this checkout run in turn, as in `bench.paired`, each with 1,000 queues:

    without    no HTTP listener, log lines of errors alone, at most one audit event waits
    with       a scrape of /metrics each second, the default level with JSON lines, the audit log
"""

import sys
from collections.abc import Sequence
from typing import Any, Final

from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.client.link_client import LinkClient
from ambermq.tools.client.management_client import Management, queue_declaration
from bench.brokers.broker import Broker, BrokerFailed
from bench.costs.two_brokers import cost_of, options_of, report
from bench.paired import Side, compare

__all__ = ["main"]

_COST_MAX: Final = 0.05
_LOADS: Final = ("one-1k", "one-100")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure each load and print the figures; return 0, or 1 if a broker or a load failed."""
    # A scrape comes each second, so a window takes one.
    parser = options_of("python -m bench.costs.overhead", __doc__, turns=40, window=1.0, warm=5.0)
    parser.add_argument("--queues", type=int, default=1000, help="queues of each broker")
    options = parser.parse_args(arguments)
    sides = [
        Side.parse('.,logging.level="error",audit.queue_max=1'),
        Side.parse(f'.,logging.level="info",logging.format="json",scraped={options.queues}'),
    ]

    def prepare(number: int, broker: Broker) -> None:
        # The scraped broker declares its queues itself.
        if not number:
            _declare(broker, options.queues)

    def measure(load: str) -> dict[str, Any]:
        return cost_of(compare, sides, load, options, cost_max=_COST_MAX, prepare=prepare)

    return report(measure, options.load or _LOADS, cost_max=_COST_MAX, output=options.output)


def _declare(broker: Broker, count: int) -> None:
    with LinkClient.connect(BrokerUrl.parse(broker.url)) as client:
        for refusal in Management(client).carry_out([queue_declaration(f"watched-{one}") for one in range(count)]):
            if refusal is not None:
                raise BrokerFailed(str(refusal))


if __name__ == "__main__":
    sys.exit(main())
