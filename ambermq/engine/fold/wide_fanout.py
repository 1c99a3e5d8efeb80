"""A fan-out to more queues than one tick takes: the message is on all of them or on none.

Rule 1. The fold does it at once, the loop in parts. Both use the same function, `spread`.
Rule 2. The state after the event is built as a separate value. The old state stays valid until the last queue is
        reached, and must not change meanwhile: the loop decides and dispatches nothing.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, final

from ambermq.engine.effects import Effect
from ambermq.engine.events import Event, Published
from ambermq.engine.model.entry import Entry
from ambermq.engine.model.queue import Queue
from ambermq.engine.model.state import State

if TYPE_CHECKING:
    from immutables import MapMutation

__all__ = ["WideFanout", "spread"]


def spread(queues: "MapMutation[int, Queue]", event: Published, reached: Iterable[int]) -> None:
    """Append a run of messages to those of its queues that exist."""
    for queue_id in reached:
        queue = queues.get(queue_id)
        if queue is not None:
            queue = queue.push(event.words, event.size)
            queues[queue_id] = queue.with_entry(event.offset, Entry(chunks=event.chunks)) if event.chunks else queue


@final
class WideFanout:
    """An event for more queues than a tick takes, and the rest of its decision."""

    __slots__ = ("_before", "_queues", "_reached", "answers", "command", "event", "events")

    def __init__(self, command: Any, event: Published, events: list[Event], answers: list[Effect]) -> None:
        """`events` are the events after it, `answers` the effects of the whole decision."""
        self.command = command
        self.event = event
        self.events = events
        self.answers = answers
        self._before: State | None = None
        self._reached = 0

    def go_on(self, state: State, changes_max: int) -> State | None:
        """Append to `changes_max` more queues; return the state after the event if all are reached, else None.

        `state` is the state before the event, the same object in each call.
        """
        if self._before is None:
            self._before, self._queues = state, state.queues.mutate()
        assert self._before is state, "the state does not change between the parts"
        start, self._reached = self._reached, self._reached + changes_max
        spread(self._queues, self.event, self.event.queues[start : self._reached])
        if self._reached < len(self.event.queues):
            return None
        return state.with_fields(time_us=self.event.time_us, queues=self._queues.finish())
