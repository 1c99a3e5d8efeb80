"""A measured broker: what the scenarios need of it, whatever its kind."""

from typing import NamedTuple, Protocol

__all__ = ["Broker", "BrokerFailed", "Usage"]


class BrokerFailed(Exception):
    """A broker did not start or ended early; the message ends with its last output."""


class Usage(NamedTuple):
    """The CPU time and memory of a broker."""

    cpu_seconds: float
    """User and system time since it started."""
    rss_bytes: int
    """Resident memory now."""


class Broker(Protocol):
    """A broker with a directory, on which it can be started again."""

    name: str
    url: str

    def start(self) -> float:
        """Start the broker; return the seconds until it was ready. Raises BrokerFailed."""

    def address(self, queue: str) -> str:
        """Return the AMQP address of a durable queue, declared on first use."""

    def usage(self) -> Usage:
        """Return its CPU time and memory."""

    def kill(self) -> None:
        """Send SIGKILL to all its processes and wait."""
