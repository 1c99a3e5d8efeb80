"""What a broker says of itself at one moment, and the rates between two moments."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.client.link_client import LinkClient
from ambermq.tools.client.management_client import Management

__all__ = ["RATE_NAMES", "BrokerReading", "deepest", "monitoring", "rates_between", "read_broker"]

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
    return sorted(reading.queues, key=lambda row: (-_depth(row), str(row["name"])))[:count]


def _depth(row: Mapping[str, Any]) -> int:
    return int(row["available"]) + int(row["acquired"])
