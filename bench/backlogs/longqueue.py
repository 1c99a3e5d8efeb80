"""`python -m bench.backlogs.longqueue`: the memory of a broker with very many messages in one queue.

Two queues, one after the other: with default settings, and with a time to live. Each is filled with messages of 100
bytes; the resident set is read all the time. Then a receiver attaches with a credit of one, and the broker is killed by
SIGKILL and started again, which is measured the same way.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Final

from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.client.link_client import LinkClient
from ambermq.tools.client.management_client import QueueManagement
from bench.brokers.ambermq import AmberMQ
from bench.brokers.broker import BrokerFailed
from bench.client import wire
from bench.client.connection import Connection, PeerClosed
from bench.load import LoadFailed, fill_queue

__all__ = ["main"]

_RSS_MAX: Final = 200 << 20
_BODY_BYTES: Final = 100
_REST_SECONDS: Final = 3.0
"""The time after a load in which recent bodies leave memory."""
_READ_SECONDS: Final = 0.05
_DELIVERIES: Final = 9
_TTL_MS: Final = 86_400_000


def main() -> int:
    """Measure; return 0, or 1 if the broker or the load failed."""
    parser = argparse.ArgumentParser(prog="python -m bench.backlogs.longqueue", description=__doc__)
    parser.add_argument("--messages", type=int, default=20_000_000, help="messages of 100 bytes that wait")
    options = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    for title, settings in (("default settings", {}), ("a time to live", {"message_ttl_ms": _TTL_MS})):
        with tempfile.TemporaryDirectory(prefix="ambermq-longqueue-") as name:
            os.environ["PYTHONPYCACHEPREFIX"] = str(Path(name) / "bytecode")
            broker = AmberMQ(Path(name) / "data")
            try:
                _measure(broker, Path(name), title, options.messages, settings)
            except (BrokerFailed, LoadFailed, PeerClosed, OSError) as failure:
                sys.stderr.write(f"{failure}\n")
                return 1
            finally:
                broker.kill()
    return 0


def _measure(broker: AmberMQ, directory: Path, title: str, count: int, settings: dict[str, int]) -> None:
    broker.start()
    # The first start has compiled the modules.
    broker.kill()
    empty_s = broker.start()
    idle = broker.usage().rss_bytes
    with LinkClient.connect(BrokerUrl.parse(broker.url)) as client:
        QueueManagement(client).declare("waiting", settings)
    with _peak(broker) as loaded:
        fill_queue(broker, "waiting", count, _BODY_BYTES, directory)
        time.sleep(_REST_SECONDS)
        rest = broker.usage().rss_bytes
    first_ms = _first_delivery_ms(broker)
    broker.kill()
    with _peak(broker) as restarted:
        restart_s = broker.start()
        restarted_first_ms = _first_delivery_ms(broker)
        time.sleep(_REST_SECONDS)
    highest = max(*loaded, *restarted)
    verdict = "met" if highest <= _RSS_MAX else "missed"
    lines = (
        f"{count:,} messages wait, {title}",
        f"  rss_idle          {_mib(idle)}",
        f"  rss_waiting       {_mib(rest)}   {(rest - idle) / count:.2f} bytes a message more than idle",
        f"  rss_highest       {_mib(highest)}   at most {_mib(_RSS_MAX)}: {verdict}",
        f"  rss_restarted     {_mib(restarted[-1])}",
        f"  first_delivery    {first_ms:.1f} ms after the attach; {restarted_first_ms:.1f} ms after a restart",
        f"  restart           {restart_s:.2f} s to the ready line; {empty_s:.2f} s with no message",
    )
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


def _mib(size: int) -> str:
    return f"{size / (1 << 20):.0f} MiB"


@contextmanager
def _peak(broker: AmberMQ) -> Iterator[list[int]]:
    """Yield a list that gets the resident set again and again, until the block ends."""
    readings, is_over = [broker.usage().rss_bytes], Event()

    def read() -> None:
        while not is_over.wait(_READ_SECONDS):
            readings.append(broker.usage().rss_bytes)

    reader = Thread(target=read, daemon=True)
    reader.start()
    try:
        yield readings
    finally:
        is_over.set()
        reader.join()


def _first_delivery_ms(broker: AmberMQ) -> float:
    """Return the median time from a receiver's attach to its first message. The messages return to the queue."""
    times = []
    for number in range(_DELIVERIES):
        connection = Connection(broker.url, container="first")
        connection.begin()
        began = time.perf_counter()
        connection.attach(f"first-{number}", "waiting", receives=True, credit=1)
        connection.expect(wire.TRANSFER)
        times.append((time.perf_counter() - began) * 1000)
        connection.close()
    return statistics.median(times)


if __name__ == "__main__":
    sys.exit(main())
