"""`python -m bench.scale`: what idle queues and more connections cost each message, and how fast queues are made.

Two brokers of this checkout run in turn, as in `bench.paired`:

    queues        one sender and receiver, 1 KiB: a broker with no other queue, and one with 10,000 idle queues
    connections   100 B, 1,000 senders and receivers against 5,000, each on a connection and a queue of its own
    declare       a broker alone: 5,000 queues by management, and 5,000 by attaches on one connection
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.client.link_client import LinkClient
from ambermq.tools.client.management_client import QueueManagement
from bench.brokers.ambermq import AmberMQ
from bench.brokers.broker import Broker, BrokerFailed
from bench.load import LOADS, LoadFailed
from bench.paired import Side, compare

__all__ = ["main"]

_IDLE_COUNT: Final = 10_000
_DECLARED_COUNT: Final = 5_000


def main() -> int:
    """Measure the named rows, or all; return 0, or 1 if a broker or a load failed."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.scale", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("row", nargs="*", help="queues, connections, declare; none: all")
    parser.add_argument("--turns", type=int, default=12, help="number of windows for each side")
    options = parser.parse_args()
    rows: dict[str, Callable[[int], None]] = {
        "queues": _measure_queues,
        "connections": _measure_connections,
        "declare": _measure_declarations,
    }
    try:
        for name in options.row or rows:
            rows[name](options.turns)
    except (BrokerFailed, LoadFailed) as failure:
        print(failure, file=sys.stderr)
        return 1
    return 0


def _measure_queues(turns: int) -> None:
    def prepare(number: int, broker: Broker) -> None:
        if number:
            _declare(broker, _IDLE_COUNT)

    for load in ("paced", "one-1k"):
        _compare(f"{load}, with {_IDLE_COUNT:,} idle queues", (load, load), turns, prepare)


def _measure_connections(turns: int) -> None:
    _compare("100 B, 1,000 connections and 5,000", ("thousand-100", "five-thousand-100"), turns)


def _measure_declarations(_turns: int) -> None:
    with tempfile.TemporaryDirectory(prefix="ambermq-scale-") as directory:
        broker = AmberMQ(Path(directory) / "data")
        broker.start()
        try:
            print(f"{_DECLARED_COUNT:,} queues by management: {_declare(broker, _DECLARED_COUNT):.2f} s", flush=True)
            began = time.monotonic()
            with LinkClient.connect(BrokerUrl.parse(broker.url)) as client:
                for number in range(_DECLARED_COUNT):
                    client.attach_sender(f"attached-{number}").detach()
            print(f"{_DECLARED_COUNT:,} queues by attaches: {time.monotonic() - began:.2f} s", flush=True)
        finally:
            broker.kill()


def _declare(broker: Broker, count: int) -> float:
    """Return the seconds for so many new queues, one request after the other."""
    began = time.monotonic()
    with LinkClient.connect(BrokerUrl.parse(broker.url)) as client:
        management = QueueManagement(client)
        for number in range(count):
            management.declare(f"idle-{number}")
    return time.monotonic() - began


def _compare(
    title: str,
    loads: tuple[str, str],
    turns: int,
    prepare: Callable[[int, Broker], None] = lambda _number, _broker: None,
) -> None:
    sides = [Side.parse("."), Side.parse(".")]
    few, many = compare(
        sides, [LOADS[load] for load in loads], turns=turns, window_seconds=1.0, warm_seconds=5.0, prepare=prepare
    )
    cpu = many["broker_cpu"] / few["broker_cpu"]
    print(
        f"{title}: {few['rate']:,.0f} and {many['rate']:,.0f} messages/s ({many['rate'] / few['rate']:.3f}), "
        f"CPU {few['broker_cpu']:.3g} and {many['broker_cpu']:.3g} us a message ({cpu:.3f})",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
