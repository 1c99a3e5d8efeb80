"""A message on its way to very many queues: it is in all of them or in none, and a tick takes only so many.

Rule 1. What a fold does at once and the loop in parts is the same function, `spread`.
Rule 2. The state after the event is prepared beside the one before it, which stays what everybody sees until the last
        queue is reached. So nobody may change that meanwhile: nothing is decided, and nothing dealt.
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
    """Put a run of messages on those of its queues that are there."""
    for queue_id in reached:
        queue = queues.get(queue_id)
        if queue is not None:
            queue = queue.push(event.words, event.size)
            queues[queue_id] = queue.with_entry(event.offset, Entry(chunks=event.chunks)) if event.chunks else queue


@final
class WideFanout:
    """An event of more queues than a tick takes, and what is left of the decision that it is of."""

    __slots__ = ("_before", "_queues", "_reached", "answers", "command", "event", "events")

    def __init__(self, command: Any, event: Published, events: list[Event], answers: list[Effect]) -> None:
        """`events` are those behind it, `answers` the effects of the whole decision."""
        self.command = command
        self.event = event
        self.events = events
        self.answers = answers
        self._before: State | None = None
        self._reached = 0

    def go_on(self, state: State, changes_max: int) -> State | None:
        """Reach so many queues more; return the state after the event once all are, which it is for the caller to take.

        `state` is that before the event, the same each time.
        """
        if self._before is None:
            self._before, self._queues = state, state.queues.mutate()
        assert self._before is state, "nothing happens meanwhile"
        start, self._reached = self._reached, self._reached + changes_max
        spread(self._queues, self.event, self.event.queues[start : self._reached])
        if self._reached < len(self.event.queues):
            return None
        return state.with_fields(time_us=self.event.time_us, queues=self._queues.finish())
