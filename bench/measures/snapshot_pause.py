"""The cost of a snapshot for the broker's clients: pauses of its event loop, and latency of deliveries.

One broker with the probe (broker_probe.py): 100 queues hold 5,000,000 messages of 100 B, and another queue moves
messages at half of its maximum rate. Two windows of equal length follow: one without snapshots, one with snapshots
one after the other. Then SIGKILL, and a start from the newest snapshot.
"""

import threading
import time
from pathlib import Path
from typing import Final, Self

from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.client.link_client import LinkClient
from ambermq.tools.client.management_client import SnapshotManagement
from bench.brokers.ambermq import AmberMQ
from bench.brokers.broker import Broker
from bench.load import Load, Window, fill_queue, run_load
from bench.measures.broker_probe import LatenessFile

__all__ = ["measure_pause"]

_QUEUES: Final = 100
_WAITING: Final = 5_000_000
_BODY_BYTES: Final = 100
_TOP_WINDOW: Final = Window(1.0, 3.0)


def measure_pause(broker: Broker, window: Window, directory: Path) -> dict[str, float]:
    """Return pauses and latencies in ms, the size in bytes for each waiting message, the restart in seconds."""
    assert isinstance(broker, AmberMQ)
    broker.kill()
    lateness = LatenessFile(directory / "lateness")
    broker.start(probe=directory / "lateness")
    fill_queue(broker, "bench-held-{}", _WAITING, _BODY_BYTES, directory, connections=_QUEUES)
    top = run_load(broker, Load(_BODY_BYTES), _TOP_WINDOW, directory)["received"]
    load = Load(_BODY_BYTES, rate=int(top / 2))
    without = _window(broker, load, window, directory, lateness)
    with _Snapshots(broker.url) as snapshots:
        during = _window(broker, load, window, directory, lateness)
    broker.kill()
    restart = broker.start()
    return {
        "rate": during["received"],
        "snapshots": float(snapshots.count),
        "snapshot_s": snapshots.seconds / max(snapshots.count, 1),
        "pause_without": without["pause"],
        "pause_with": during["pause"],
        "pause": during["pause"] - without["pause"],
        "p99_without": without["delivery_p99"],
        "p99_with": during["delivery_p99"],
        "p99": during["delivery_p99"] / without["delivery_p99"],
        "bytes": snapshots.size / _WAITING,
        "restart": restart,
    }


def _window(broker: Broker, load: Load, window: Window, directory: Path, lateness: LatenessFile) -> dict[str, float]:
    """Measure the load; the longest pause is that of its window."""
    timer = threading.Timer(window.warm_seconds, lateness.reset)
    timer.start()
    figures = run_load(broker, load, window, directory)
    timer.join()
    return figures | {"pause": lateness.longest_ms}


class _Snapshots:
    """Takes snapshots one after the other beside the load, in a thread that mostly waits for answers."""

    def __init__(self, url: str) -> None:
        self.count = 0
        self.seconds = 0.0
        self.size = 0
        self._url = url
        self._failure: Exception | None = None
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        try:
            self._take()
        except Exception as failure:  # noqa: BLE001 - raised where the thread is joined
            self._failure = failure

    def _take(self) -> None:
        with LinkClient.connect(BrokerUrl.parse(self._url)) as client:
            management = SnapshotManagement(client)
            while not self._is_over.is_set():
                began = time.monotonic()
                name = f"bench-{self.count}"
                self.size = int(management.create(name)["bytes"])
                self.count += 1
                self.seconds += time.monotonic() - began
                if self.count > 1:
                    management.delete(f"bench-{self.count - 2}")
