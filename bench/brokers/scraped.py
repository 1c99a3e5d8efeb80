"""AmberMQ with many queues, and a scrape of its metrics each second: what watching costs.

Rule: a thread of the bench scrapes, in the windows of all sides. A scrape that fails ends the measurement at its end.
"""

import threading
from collections.abc import Sequence
from pathlib import Path
from urllib.request import urlopen

from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.client.link_client import LinkClient
from ambermq.tools.client.management_client import Management, queue_declaration
from bench.brokers.ambermq import AmberMQ
from bench.brokers.broker import BrokerFailed

__all__ = ["ScrapedAmberMQ"]

_PERIOD_SECONDS = 1.0
_TIMEOUT_SECONDS = 10.0


class ScrapedAmberMQ(AmberMQ):
    """`ambermq serve --http` with a number of queues."""

    def __init__(
        self, directory: Path, *, queues: int, command: Sequence[str], options: Sequence[str], tree: Path | None
    ) -> None:
        """Run on a directory, as AmberMQ; `queues` are declared before the load."""
        super().__init__(directory, command=command, options=(*options, "--http", "127.0.0.1:0"), tree=tree)
        self._queues = queues
        self._is_over = threading.Event()
        self._thread: threading.Thread | None = None
        self.scrapes = 0
        """The scrapes that succeeded."""

    def start(self, *, probe: Path | None = None) -> float:
        """Start it, declare the queues, and begin to scrape."""
        seconds = super().start(probe=probe)
        with LinkClient.connect(BrokerUrl.parse(self.url)) as client:
            requests = [queue_declaration(f"watched-{number}") for number in range(self._queues)]
            for refusal in Management(client).carry_out(requests):
                if refusal is not None:
                    raise BrokerFailed(str(refusal))
        metrics = f"{self.further['http']}/metrics"
        self._thread = threading.Thread(target=self._scrape, args=(metrics,), daemon=True)
        self._thread.start()
        return seconds

    def kill(self) -> None:
        """End the scrapes, send SIGKILL and wait."""
        self._is_over.set()
        if self._thread is not None:
            self._thread.join()
        super().kill()
        if self._thread is not None and not self.scrapes:
            raise BrokerFailed("no scrape of /metrics succeeded")

    def _scrape(self, url: str) -> None:
        while not self._is_over.wait(_PERIOD_SECONDS):
            with urlopen(url, timeout=_TIMEOUT_SECONDS) as answer:  # noqa: S310 - the URL of the broker's ready line
                answer.read()
            self.scrapes += 1
