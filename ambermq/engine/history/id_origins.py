"""The names of the ids in events. An id is the offset of the record that created the object; that record has its name.

Rule: the state at the horizon has the names of objects that are older. A name that neither has is None.
"""

from dataclasses import dataclass

from ambermq.engine.events import ConsumerAttached, MuxerDeclared, ProducerAttached, QueueDeclared
from ambermq.engine.history.past import Past
from ambermq.engine.model.state import Producer, State

__all__ = ["Link", "Origins"]


@dataclass(frozen=True, slots=True)
class Link:
    """The names of a producer or a consumer."""

    id: int
    """The offset of the record that attached it."""
    container: str
    """The peer's container-id."""
    link: str
    """The link's name."""
    muxer: int = 0
    """The muxer of a producer."""
    destination: str = ""
    """The destination of a producer."""
    is_addressed: bool = False
    """Whether each message of a producer names its own address."""
    queue: int = 0
    """The queue of a consumer."""
    user: str = ""
    """The user of its connection; empty if the history does not have it."""


class Origins:
    """A look-up of ids in a log, without a cache."""

    def __init__(self, past: Past, base: State | None) -> None:
        """Look ids up in `past`, and in `base`, the state at its horizon, if there is one."""
        self._past = past
        self._base = base

    def queue(self, queue: int) -> str | None:
        """Return the name of a queue."""
        event = self._past.event_at(queue)
        if type(event) is QueueDeclared:
            return event.name
        known = self._base.queues.get(queue) if self._base else None
        return known.name if known else None

    def muxer(self, muxer: int) -> str | None:
        """Return the name of a muxer."""
        event = self._past.event_at(muxer)
        if type(event) is MuxerDeclared:
            return event.name
        known = self._base.muxers.get(muxer) if self._base else None
        return known.name if known else None

    def link(self, link: int) -> Link | None:
        """Return the names of a producer or consumer."""
        event = self._past.event_at(link)
        if type(event) is ProducerAttached:
            return _producer(link, event)
        if type(event) is ConsumerAttached:
            return Link(link, event.container, event.link, queue=event.queue, user=event.user)
        return self._link_at_horizon(link)

    def _link_at_horizon(self, link: int) -> Link | None:
        producer = self._base.producers.get(link) if self._base else None
        if producer is not None:
            return _producer(link, producer)
        consumer = self._base.consumers.get(link) if self._base else None
        return None if consumer is None else Link(link, consumer.container, consumer.link, queue=consumer.queue)


def _producer(link: int, one: ProducerAttached | Producer) -> Link:
    is_addressed = one.sending.is_addressed
    user = one.user if isinstance(one, ProducerAttached) else ""
    names = (link, one.container, one.link, one.muxer, one.destination)
    return Link(*names, is_addressed=is_addressed, user=user)
