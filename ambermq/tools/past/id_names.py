"""The names for the ids in events. An id is the offset of the record that created the object, and never changes.

Rule: names come from the events that were added. An object without such an event is shown by its id.
"""

from dataclasses import dataclass

from ambermq.engine.events import (
    Chunked,
    ConsumerAttached,
    ConsumerDetached,
    Event,
    LinkEnded,
    LinkResumed,
    LinkSuspended,
    MuxerDeclared,
    ProducerAttached,
    ProducerDetached,
    QueueDeclared,
    TagsKept,
)
from ambermq.engine.records.event_fields import queues_of

__all__ = ["IdNames"]


@dataclass(frozen=True, slots=True)
class _Link:
    node: str
    """The consumer's queue, or the producer's destination."""
    name: str
    """Container id and link name of the peer."""


class IdNames:
    """Names by id, from the events that were added."""

    __slots__ = ("_links", "_muxers", "_queues")

    def __init__(self) -> None:
        self._queues: dict[int, str] = {}
        self._muxers: dict[int, str] = {}
        self._links: dict[int, _Link] = {}

    def add(self, event: Event) -> None:
        """Add the name in an event that creates an object."""
        match event:
            case QueueDeclared():
                self._queues[event.offset] = event.name
            case MuxerDeclared():
                self._muxers[event.offset] = event.name
            case ProducerAttached():
                self._links[event.offset] = _Link(event.destination, f"{event.container}/{event.link}")
            case ConsumerAttached():
                self._links[event.offset] = _Link(self.queue(event.queue), f"{event.container}/{event.link}")

    def queue(self, queue: int) -> str:
        """Return a queue's name."""
        return self._queues.get(queue, f"queue {queue}")

    def known_queue(self, queue: int) -> str | None:
        """Return a queue's name, None if it is unknown."""
        return self._queues.get(queue)

    def muxer(self, muxer: int) -> str:
        """Return a muxer's name."""
        return self._muxers.get(muxer, f"muxer {muxer}")

    def member(self, member: int) -> str:
        """Return the member of an attachment: its kind, and its name in quotes."""
        return f"muxer {self._muxers[member]!r}" if member in self._muxers else f"queue {self.queue(member)!r}"

    def link(self, link: int) -> str:
        """Return container and link name of a producer or consumer."""
        known = self._links.get(link)
        return f"link {link}" if known is None else known.name

    def queues_of(self, event: Event) -> tuple[str, ...]:
        """Return the names of the queues of an event, with the destination of a producer."""
        match event:
            case ProducerAttached():
                return (event.destination,)
            case ProducerDetached() | Chunked():
                return self._node(event.producer)
            case ConsumerDetached():
                return self._node(event.consumer)
            case LinkSuspended() | LinkResumed() | LinkEnded():
                return self._node(event.link)
            case TagsKept():
                return self._node(event.producer)
        return tuple(map(self.queue, queues_of(event)))

    def _node(self, link: int) -> tuple[str, ...]:
        known = self._links.get(link)
        return () if known is None else (known.node,)
