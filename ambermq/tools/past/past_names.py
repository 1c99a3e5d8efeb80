"""Names for a part of the log: what began before it is looked up where it began.

Rule 1. An id is the offset of the record that created the thing, so an unknown one is found without reading the log.
Rule 2. Where that record is no more, below the horizon, the newest state before the part knows what still lived then.
"""

from collections.abc import Iterator
from functools import cached_property

from ambermq.engine.events import ConsumerAttached, Event, MuxerDeclared, ProducerAttached, QueueDeclared
from ambermq.engine.history.past import Past
from ambermq.engine.model.state import EMPTY_STATE, State
from ambermq.tools.past.id_names import IdNames

__all__ = ["PastNames", "living_names"]

_SINGLE = ("queue", "muxer", "member", "producer", "consumer")
_SEVERAL = ("queues", "consumers")
_NAMING = (QueueDeclared, MuxerDeclared, ProducerAttached, ConsumerAttached)


class PastNames(IdNames):
    """Names by id, as the log knows them."""

    __slots__ = ("__dict__", "_known", "_past")

    def __init__(self, past: Past) -> None:
        super().__init__()
        self._past = past
        self._known: set[int] = set()

    def hear(self, event: Event) -> None:
        """Look up what an event names, and remember what it names itself."""
        for named in _ids_of(event):
            if named not in self._known:
                self._learn(named)
        if isinstance(event, _NAMING):
            self._known.add(event.offset)
        super().hear(event)

    def _learn(self, named: int) -> None:
        self._known.add(named)
        event = self._past.event_at(named) or self._living.get(named)
        if isinstance(event, _NAMING):
            self.hear(event)

    @cached_property
    def _living(self) -> dict[int, Event]:
        """What lived at the horizon, as the events that are gone would have told it."""
        horizon = self._past.horizon.offset
        state = self._past.state_at(horizon - 1) if horizon else EMPTY_STATE
        return {event.offset: event for event in _told(state)}


def living_names(state: State) -> IdNames:
    """Return the names of what lives in a state."""
    names = IdNames()
    for event in _told(state):
        names.hear(event)
    return names


def _ids_of(event: Event) -> Iterator[int]:
    for name in _SINGLE:
        if (named := getattr(event, name, 0)) > 0:
            yield named
    for name in _SEVERAL:
        yield from getattr(event, name, ())


def _told(state: State) -> Iterator[Event]:
    for queue in state.queues.values():
        yield QueueDeclared(queue.id, 0, queue.name, queue.settings)
    for muxer in state.muxers.values():
        yield MuxerDeclared(muxer.id, 0, muxer.name, muxer.kind, muxer.options)
    for producer in state.producers.values():
        yield ProducerAttached(producer.id, 0, producer.muxer, producer.destination, producer.container, producer.link)
    for consumer in state.consumers.values():
        yield ConsumerAttached(consumer.id, 0, consumer.queue, consumer.container, consumer.link)
