"""The return of what an ended consumer holds, in parts: a consumer may hold more messages than a tick takes changes.

Rule 1. A part is a Settled event with the outcome that the end of the consumer has: one more failed delivery. So the
        state after all parts and the end is the state after the end alone.
Rule 2. The consumer has no demand any more when the first part is decided: else the next dispatch would deliver the
        messages to it again.
"""

from typing import Final

from ambermq.engine.decide.context import DecisionContext
from ambermq.engine.entries.outcome import MODIFIED_FAILED, RELEASED
from ambermq.engine.events import Event, Settled
from ambermq.engine.model.state import State

__all__ = ["CHANGES_PER_RETURN", "release_part", "release_unsent"]

CHANGES_PER_RETURN: Final = 2
"""The changes of a tick that a returned message counts for. Among millions of others it takes up to 10 us."""


def release_part(state: State, consumer: int, context: DecisionContext) -> list[Event]:
    """Return the event for the first messages of a consumer that holds more than a tick takes; else no event."""
    known = state.consumers.get(consumer)
    queue = None if known is None else state.queues.get(known.queue)
    count_max = max(context.config.tick_changes_max // CHANGES_PER_RETURN, 1)
    if queue is None or queue.held_by(consumer).count <= count_max:
        return []
    words = queue.held_by(consumer).head(count_max)
    return [Settled(context.next_offset, context.now_us, queue.id, consumer, MODIFIED_FAILED, words)]


def release_unsent(state: State, consumer: int, unsent: bytes, context: DecisionContext) -> list[Event]:
    """Return the event for those of `unsent` that an attached consumer holds: they count as no failed delivery."""
    queue = state.queues[state.consumers[consumer].queue]
    words, _ = queue.held_by(consumer).remove(unsent)
    return [Settled(context.next_offset, context.now_us, queue.id, consumer, RELEASED, words)] if words else []
