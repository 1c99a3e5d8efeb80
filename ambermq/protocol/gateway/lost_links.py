"""The links of lost connections, whose producers and consumers are detached from the engine in turns.

One queue per virtual host has these links, and what must come after them: attaches and requests of other connections,
and the releases of the lost ones.

Rule 1. A link is closed for both sides at once, when its connection is lost. Only its detachment may come later.
Rule 2. A delivery that arrives before that was never sent. So it returns to its queue without a failed delivery.
Rule 3. A connection has up to 4,096 links (links_max), and each detachment takes 3 us. The first ones are detached at
        once, so a connection with few links leaves nothing behind.
Rule 4. No later attach or management request overtakes a detachment. A client that connects again finds its
        subscriptions without receivers, and what was not sent to its old links does not count as a failed delivery.
"""

from collections import deque
from collections.abc import Callable, Iterable
from typing import Final, Protocol, final

from ambermq.engine.commands import Command, DetachConsumer, DetachProducer, Suspension
from ambermq.protocol.gateway.consumers.consumer_link import ConsumerLink
from ambermq.protocol.gateway.engine_port import EnginePort
from ambermq.protocol.gateway.producers.producer_link import ProducerLink

__all__ = ["LOST_PER_TURN", "LostLinks"]

LOST_PER_TURN: Final = 250
"""The links that are detached in one turn of the event loop, and the commands after them."""


class _LostGateway(Protocol):
    """What lost links need of the gateway of their virtual host."""

    consumers: dict[int, ConsumerLink]
    producers: dict[int, ProducerLink]

    @property
    def engine(self) -> EnginePort:
        """The engine of the virtual host."""


@final
class LostLinks:
    """The lost links of one virtual host."""

    __slots__ = ("_gateway", "links")

    def __init__(self, gateway: _LostGateway) -> None:
        self._gateway = gateway
        self.links: deque[ProducerLink | ConsumerLink | Command | Callable[[], None]] = deque()
        """The links that are not detached, and between them what waits for those before it: commands and releases."""

    def add(self, producer_links: Iterable[ProducerLink], consumer_links: Iterable[ConsumerLink]) -> None:
        """Close the links of a connection, and detach them, at most LOST_PER_TURN at once."""
        is_first = not self.links
        for producer_link in producer_links:
            producer_link.is_open = False
            producer_link.close()
            self.links.append(producer_link)
        for consumer_link in consumer_links:
            consumer_link.lose()
            self.links.append(consumer_link)
        if is_first:
            self.detach()

    def submit(self, command: Command) -> None:
        """Submit a command after the detachments of the links that are lost."""
        if self.links:
            self.links.append(command)
        else:
            self._gateway.engine.submit(command)

    def then(self, release: Callable[[], None]) -> None:
        """Call a function that frees a connection when the links so far are detached, or now if they are."""
        if self.links:
            self.links.append(release)
        else:
            release()

    def detach(self) -> None:
        """Detach the next links from the engine, at most LOST_PER_TURN, and do what waits for them."""
        links, consumers, producers = self.links, self._gateway.consumers, self._gateway.producers
        submit = self._gateway.engine.submit
        for link in [links.popleft() for _ in range(min(len(links), LOST_PER_TURN))]:
            if isinstance(link, ConsumerLink):
                if link.consumer:
                    consumers.pop(link.consumer, None)
                    by = link.peer.closed_by
                    kept = Suspension.NONE if by else link.terms.kept.at_loss
                    submit(DetachConsumer(link.consumer, link.unsent(), suspension=kept, by=by))
            elif isinstance(link, ProducerLink):
                if link.producer:
                    producers.pop(link.producer, None)
                    by = link.peer.closed_by
                    kept = Suspension.NONE if by else link.terms.kept.at_loss
                    submit(DetachProducer(link.producer, suspension=kept, by=by))
            elif callable(link):
                link()
            else:
                submit(link)
