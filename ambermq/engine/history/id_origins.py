"""What the ids in events were called. An id is the offset of the record that created the thing, so one record tells.

Rule: what is older than the horizon is asked of the state there; what neither knows is None.
"""

from dataclasses import dataclass

from ambermq.engine.events import ConsumerAttached, MuxerDeclared, ProducerAttached, QueueDeclared
from ambermq.engine.history.past import Past
from ambermq.engine.model.state import Producer, State

__all__ = ["Link", "Origins"]


@dataclass(frozen=True, slots=True)
class Link:
    """A producer or a consumer, as its peer called it."""

    id: int
    """The offset of the record that attached it."""
    container: str
    """The peer's container-id."""
    link: str
    """The link's name."""
    muxer: int = 0
    """A producer's muxer."""
    destination: str = ""
    """A producer's destination."""
    is_addressed: bool = False
    """A producer's messages say themselves what they are for."""
    queue: int = 0
    """A consumer's queue."""


class Origins:
    """Looks ids up in a log; remembers none of them."""

    def __init__(self, past: Past, base: State | None) -> None:
        """Look into `past`, and into the state at its horizon where that is needed."""
        self._past = past
        self._base = base

    def queue(self, queue: int) -> str | None:
        """Return a queue's name."""
        event = self._past.event_at(queue)
        if type(event) is QueueDeclared:
            return event.name
        known = self._base.queues.get(queue) if self._base else None
        return known.name if known else None

    def muxer(self, muxer: int) -> str | None:
        """Return a muxer's name."""
        event = self._past.event_at(muxer)
        if type(event) is MuxerDeclared:
            return event.name
        known = self._base.muxers.get(muxer) if self._base else None
        return known.name if known else None

    def link(self, link: int) -> Link | None:
        """Return what is known of a producer or consumer."""
        event = self._past.event_at(link)
        if type(event) is ProducerAttached:
            return _producer(link, event)
        if type(event) is ConsumerAttached:
            return Link(link, event.container, event.link, queue=event.queue)
        return self._known(link)

    def _known(self, link: int) -> Link | None:
        producer = self._base.producers.get(link) if self._base else None
        if producer is not None:
            return _producer(link, producer)
        consumer = self._base.consumers.get(link) if self._base else None
        return None if consumer is None else Link(link, consumer.container, consumer.link, queue=consumer.queue)


def _producer(link: int, one: ProducerAttached | Producer) -> Link:
    is_addressed = one.sending.is_addressed
    return Link(link, one.container, one.link, muxer=one.muxer, destination=one.destination, is_addressed=is_addressed)
