"""A virtual host, as its metrics see it: its state, its figures, and what only a walk over its links shows."""

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Final, Protocol, final

from ambermq.engine.model.queue import Queue
from ambermq.engine.model.state import State
from ambermq.protocol.gateway.gateway import Gateway
from ambermq.protocol.http.histogram import Histogram

__all__ = ["MeasuredVhost", "VhostDriver"]

_LINKS_PER_TURN: Final = 1000


class VhostDriver(Protocol):
    """The driver of a virtual host, as this module needs it."""

    @property
    def gateway(self) -> Gateway:
        """The gateway."""

    @property
    def sync_latency(self) -> Histogram:
        """The durations of syncs."""

    def age_us(self, queue: Queue) -> int | None:
        """Return the age of the oldest message that waits on a queue; 0 without one, None if it is not known."""


@final
class MeasuredVhost:
    """The figures of one virtual host."""

    __slots__ = ("_driver", "_gateway", "state")

    def __init__(self, driver: VhostDriver) -> None:
        """Keep the state of this moment."""
        self._driver = driver
        self._gateway = driver.gateway
        self.state: State = driver.gateway.engine.state
        """The state at the moment of creation."""

    @property
    def figures(self) -> Mapping[str, Callable[[], object]]:
        """The figures of the management type `org.ambermq.broker`."""
        return self._gateway.figures

    @property
    def sync_latency(self) -> Histogram:
        """The durations of syncs."""
        return self._driver.sync_latency

    def age_us(self, queue: Queue) -> int | None:
        """Return the age of the oldest message that waits on a queue; 0 without one, None if it is not known."""
        return self._driver.age_us(queue)

    def starved(self) -> Iterator[tuple[int, int]]:
        """Yield the numbers of consumers without credit whose queue has messages, and of producers without credit.

        Each pair is of at most 1,000 links: the work of a turn of the event loop.
        """
        # Copies, since links come and go between the turns.
        consumers = iter(list(self._gateway.consumers.items()))
        while part := list(islice(consumers, _LINKS_PER_TURN)):
            yield sum(not link.link.credit and self._has_messages(consumer) for consumer, link in part), 0
        producers = iter(list(self._gateway.producers.values()))
        while links := list(islice(producers, _LINKS_PER_TURN)):
            yield 0, sum(not link.link.credit for link in links)

    def _has_messages(self, consumer: int) -> bool:
        known = self.state.consumers.get(consumer)
        queue = None if known is None else self.state.queues.get(known.queue)
        return queue is not None and queue.available > 0
