"""The decision on messages whose time has come.

Rule: a message whose redelivery was delayed is available again in its old place.
"""

from ambermq.engine.commands import MakeDue
from ambermq.engine.decide.context import Decision, DecisionContext
from ambermq.engine.entries.entry_word import pack_words
from ambermq.engine.events import Due
from ambermq.engine.model.state import State

__all__ = ["make_due"]


def make_due(state: State, command: MakeDue, context: DecisionContext) -> Decision:
    """Return the decision on messages whose time has come."""
    queue = state.queues.get(command.queue)
    if queue is None:
        return [], []
    delayed = [word for word in command.words if queue.delayed.holds(word)]
    if not delayed:
        return [], []
    return [Due(context.next_offset, context.now_us, queue.id, pack_words(sorted(delayed)))], []
