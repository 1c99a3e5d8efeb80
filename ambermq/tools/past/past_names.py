"""Names for a part of the log: the name of an object from before that part is read from its own record.

Rule 1. An id is the offset of the record that created the object, so an unknown id needs one read, not a scan.
Rule 2. If a compaction has removed that record, the state at the horizon has the name.
"""

from collections.abc import Iterator
from functools import cached_property

from ambermq.engine.events import ConsumerAttached, Event, MuxerDeclared, ProducerAttached, QueueDeclared
from ambermq.engine.history.past import Past
from ambermq.engine.model.state import EMPTY_STATE, State
from ambermq.tools.past.id_names import IdNames

__all__ = ["PastNames", "names_in"]

_SINGLE = ("queue", "muxer", "member", "producer", "consumer")
_SEVERAL = ("queues", "consumers")
_NAMING = (QueueDeclared, MuxerDeclared, ProducerAttached, ConsumerAttached)


class PastNames(IdNames):
    """Names by id, read from the log when an event refers to them."""

    __slots__ = ("__dict__", "_known", "_past")

    def __init__(self, past: Past) -> None:
        super().__init__()
        self._past = past
        self._known: set[int] = set()

    def add(self, event: Event) -> None:
        """Add the name in an event, and the names of the ids that it refers to."""
        for object_id in _ids_of(event):
            if object_id not in self._known:
                self._look_up(object_id)
        if isinstance(event, _NAMING):
            self._known.add(event.offset)
        super().add(event)

    def _look_up(self, object_id: int) -> None:
        self._known.add(object_id)
        event = self._past.event_at(object_id) or self._horizon_objects.get(object_id)
        if isinstance(event, _NAMING):
            self.add(event)

    @cached_property
    def _horizon_objects(self) -> dict[int, Event]:
        """The objects of the state at the horizon, as the events that created them."""
        horizon = self._past.horizon.offset
        state = self._past.state_at(horizon - 1) if horizon else EMPTY_STATE
        return {event.offset: event for event in _creations(state)}


def names_in(state: State) -> IdNames:
    """Return the names of all objects in a state."""
    names = IdNames()
    for event in _creations(state):
        names.add(event)
    return names


def _ids_of(event: Event) -> Iterator[int]:
    for name in _SINGLE:
        if (object_id := getattr(event, name, 0)) > 0:
            yield object_id
    for name in _SEVERAL:
        yield from getattr(event, name, ())


def _creations(state: State) -> Iterator[Event]:
    for queue in state.queues.values():
        yield QueueDeclared(queue.id, 0, queue.name, queue.settings)
    for muxer in state.muxers.values():
        yield MuxerDeclared(muxer.id, 0, muxer.name, muxer.kind, muxer.options)
    for producer in state.producers.values():
        yield ProducerAttached(producer.id, 0, producer.muxer, producer.destination, producer.container, producer.link)
    for consumer in state.consumers.values():
        yield ConsumerAttached(consumer.id, 0, consumer.queue, consumer.container, consumer.link)
