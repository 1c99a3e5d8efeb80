"""A fan-out to more queues than one tick takes: the message is on all of them or on none.

Rule 1. The fold does it at once, the loop in parts. Both use the same function, `spread`.
Rule 2. The state after the event is built as a separate value. The old state stays valid until the last queue is
        reached, and must not change meanwhile: the loop decides and dispatches nothing.
Rule 3. A queue that has no room ends the fan-out. The event is not logged then, and its command is decided again.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, final

from ambermq.engine.effects import Effect
from ambermq.engine.entries.entry import Entry
from ambermq.engine.events import Event, Published
from ambermq.engine.model.queue import Queue
from ambermq.engine.model.queue_parts.levels import count_of
from ambermq.engine.model.state import State

if TYPE_CHECKING:
    from immutables import MapMutation

__all__ = ["WideFanout", "spread"]


def spread(queues: "MapMutation[int, Queue]", event: Published, reached: Iterable[int], now_us: int) -> None:
    """Append a run of messages to those of its queues that exist; `now_us` is the elapsed time."""
    for queue_id in reached:
        queue = queues.get(queue_id)
        if queue is not None:
            queue = queue.push(event.words, event.size, now_us)
            queues[queue_id] = queue.with_entry(event.offset, Entry(chunks=event.chunks)) if event.chunks else queue


@final
class WideFanout:
    """An event for more queues than a tick takes, and the rest of its decision."""

    __slots__ = ("_before", "_queues", "_reached", "answers", "command", "event", "events", "full_queue", "part")

    def __init__(self, command: Any, event: Published, events: list[Event], answers: list[Effect]) -> None:
        """`events` are the events after it, `answers` the effects of the whole decision."""
        self.command = command
        self.event = event
        self.events = events
        self.answers = answers
        self.full_queue = 0
        """A queue that has no room for the messages; 0 while none is known."""
        self.part: Sequence[int] = ()
        """The queues of the last part."""
        self._before: State | None = None
        self._reached = 0

    def go_on(self, state: State, changes_max: int, messages_max: int = 1 << 62) -> State | None:
        """Append to `changes_max` more queues; return the state after the event if all are reached, else None.

        `state` is the state before the event, the same object in each call; `messages_max` is the maximum length of a
        queue without one of its own.
        """
        if self._before is None:
            self._before, self._queues = state, state.queues.mutate()
        assert self._before is state, "the state does not change between the parts"
        start, self._reached = self._reached, self._reached + changes_max
        self.part = self.event.queues[start : self._reached]
        spread(self._queues, self.event, self.part, state.elapsed_us(self.event.time_us))
        self.full_queue = self._overfull(self.part, messages_max)
        if self.full_queue or self._reached < len(self.event.queues):
            return None
        if self.event.chunks:
            state = state.without_upload(self.event.chunks[0])
        return state.with_fields(time_us=self.event.time_us, queues=self._queues.finish())

    def _overfull(self, reached: Iterable[int], messages_max: int) -> int:
        """Return a queue that is above a maximum now; 0 if there is none."""
        for queue_id in reached:
            queue = self._queues.get(queue_id)
            if queue is None:
                continue
            settings = queue.settings
            # This is `queue.waiting` written out, because it runs once per queue.
            waiting = queue.ready.count + queue.returned.count + queue.aside.count + queue.delayed.count
            waiting += queue.scheduled.count
            if queue.levels:
                waiting += count_of(queue.levels)
            if waiting > (settings.messages_max or messages_max):
                return queue_id
            if settings.bytes_max and queue.waiting_size > settings.bytes_max:
                return queue_id
        return 0
