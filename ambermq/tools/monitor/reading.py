"""What a broker says of itself at one moment, and the rates between two moments."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, final

from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.client.link_client import LinkClient
from ambermq.tools.client.management_client import Management

__all__ = [
    "RATE_NAMES",
    "SORT_KEYS",
    "BrokerReading",
    "BrokerWatch",
    "deepest",
    "monitoring",
    "queues_by",
    "rates_between",
    "read_broker",
]

_BROKER_TYPE: Final = "org.ambermq.broker"
_QUEUE_TYPE: Final = "org.ambermq.queue"
RATE_NAMES: Final = (
    *("messages_in", "bytes_in", "messages_out", "bytes_out", "messages_accepted", "messages_released"),
    *("messages_failed", "messages_redelivered", "messages_rejected", "messages_refused", "messages_unroutable"),
)
"""The counters of the broker whose rates are shown."""


@dataclass(frozen=True, slots=True)
class BrokerReading:
    """The figures and queues of the virtual host at one moment."""

    time_s: float
    """By the monotonic clock of this process."""
    figures: Mapping[str, Any]
    queues: tuple[Mapping[str, Any], ...] = ()


@contextmanager
def monitoring(url: str) -> Iterator[Management]:
    """Yield the management of a broker; raise ToolError if it cannot be reached."""
    with LinkClient.connect(BrokerUrl.parse(url)) as client:
        yield Management(client)


@final
class BrokerWatch:
    """The readings of one broker, which may go away and return."""

    def __init__(self, url_of: Callable[[], str]) -> None:
        """`url_of` is called for each connection: a broker that starts again may have another port."""
        self._url_of = url_of
        self._client: LinkClient | None = None
        self._management: Management | None = None
        self._before: BrokerReading | None = None

    def read(self) -> tuple[BrokerReading, dict[str, float]]:
        """Return a reading, and the rates since the one before; raise ToolError if the broker does not answer."""
        try:
            if self._management is None:
                self._client = LinkClient.connect(BrokerUrl.parse(self._url_of()))
                self._management = Management(self._client)
            after = read_broker(self._management)
        except BaseException:
            self.close()
            raise
        before, self._before = self._before, after
        return after, rates_between(before or after, after)

    def close(self) -> None:
        """Close the connection; the next reading opens another one, and its rates begin anew."""
        client, self._client, self._management, self._before = self._client, None, None, None
        if client is not None:
            client.close()


def read_broker(management: Management, *, with_queues: bool = True) -> BrokerReading:
    """Return the figures of the broker, and those of every queue."""
    figures = management.request("READ", _BROKER_TYPE, {}, where="the broker")[1]
    now_s = time.monotonic()
    return BrokerReading(now_s, figures, tuple(management.rows(_QUEUE_TYPE)) if with_queues else ())


def rates_between(before: BrokerReading, after: BrokerReading) -> dict[str, float]:
    """Return the rates of the counters in a second. A counter that fell, as after a restart, has the rate 0."""
    seconds = max(after.time_s - before.time_s, 1e-9)
    pairs = {name: (before.figures.get(name) or 0, after.figures.get(name) or 0) for name in RATE_NAMES}
    return {name: round(max(new - old, 0) / seconds, 1) for name, (old, new) in pairs.items()}


def deepest(reading: BrokerReading, count: int) -> list[Mapping[str, Any]]:
    """Return the queues with the most messages, the deepest first."""
    return queues_by(reading, "depth")[:count]


def queues_by(reading: BrokerReading, key: str) -> list[Mapping[str, Any]]:
    """Return the queues in the order of one of SORT_KEYS: the largest first, names from A to Z."""
    value = SORT_KEYS[key]
    return sorted(reading.queues, key=lambda row: (-value(row), str(row["name"])))


def _depth(row: Mapping[str, Any]) -> int:
    return int(row["available"]) + int(row["acquired"])


SORT_KEYS: Final[Mapping[str, Callable[[Mapping[str, Any]], int]]] = {
    "depth": _depth,
    "queue": lambda _row: 0,
    "available": lambda row: int(row["available"]),
    "acquired": lambda row: int(row["acquired"]),
    "consumers": lambda row: int(row["consumers"]),
    "oldest": lambda row: int(row.get("oldest_age_us") or 0),
}
"""The orders of queues, and the value of a row by which each sorts."""
