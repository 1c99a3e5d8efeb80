"""The decision on messages whose time has come.

Rule 1. A message whose redelivery was delayed is available again in its old place.
Rule 2. A scheduled message takes the tail of its queue. So it has a new place in the order: its event Moved.
"""

from ambermq.engine.commands import MakeDue
from ambermq.engine.decide.context import Decision, DecisionContext
from ambermq.engine.decide.messages.last_values import key_events
from ambermq.engine.entries.discard_reason import MoveReason
from ambermq.engine.entries.entry_word import pack_words
from ambermq.engine.events import Due, Event, Moved
from ambermq.engine.model.queue_parts.last_values import NO_KEY
from ambermq.engine.model.state import State

__all__ = ["make_due"]


def make_due(state: State, command: MakeDue, context: DecisionContext) -> Decision:
    """Return the decision on messages whose time has come."""
    queue = state.queues.get(command.queue)
    if queue is None:
        return [], []
    words = dict.fromkeys(command.words)
    delayed = [word for word in words if queue.delayed.holds(word)]
    scheduled = [word for word in words if queue.scheduled.holds(word)]
    events: list[Event] = []
    if delayed:
        events.append(Due(context.next_offset, context.now_us, queue.id, pack_words(sorted(delayed))))
    if scheduled:
        offset, moved = context.next_offset + len(events), pack_words(scheduled)
        events.append(Moved(offset, context.now_us, queue.id, (queue.id,), MoveReason.DUE, moved))
        if (values := queue.keyed) is not None:
            keys = b"".join([values.key_of(word) or NO_KEY for word in scheduled])
            events += key_events((((queue.id,), keys),), offset, offset + len(scheduled), context.now_us)
    return events, []
