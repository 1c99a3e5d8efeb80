"""The room for what outcomes add to messages: the text of a rejection, and the annotations of the outcome modified.

Rule 1. The fold knows no limit, so an old log replays. A decision leaves out of its event what there is no room for.
Rule 2. A value that the queue holds already needs no room.
Rule 3. An eighth of the room is for conditions alone: they are few, and say most. Beyond the other seven eighths a
        description and annotations are left out; at the maximum a condition is, too.
Rule 4. What is left out of an outcome is left out for all messages of its event.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final, final

from ambermq.engine.config import EngineConfig
from ambermq.engine.entries.entry import PLAIN, merge_annotations
from ambermq.engine.entries.entry_word import unpack_words
from ambermq.engine.entries.marks import cut_description
from ambermq.engine.entries.outcome import REJECTED, Outcome, OutcomeKind
from ambermq.engine.events import Event, Settled
from ambermq.engine.model.queue import Queue
from ambermq.engine.model.queue_parts.columns import ANNOTATIONS_BYTES_MAX
from ambermq.engine.model.queue_parts.outcome_annotations import Value, cost_of
from ambermq.engine.model.state import State

__all__ = ["limit_outcomes"]

_CONDITIONS_PART: Final = 8


def limit_outcomes(state: State, events: Iterable[Event], config: EngineConfig) -> None:
    """Leave out of the outcomes of a decision's new events what there is no room for in `state`."""
    room: _Room | None = None
    for event in events:
        if type(event) is Settled and (event.outcome.annotations or event.outcome.kind is OutcomeKind.REJECTED):
            room = room or _Room(state, config)
            room.limit(event)


@final
class _Room:
    """The room that a decision has left."""

    def __init__(self, state: State, config: EngineConfig) -> None:
        self._queues = state.queues
        self._left = config.outcome_annotations_bytes_max - state.outcome_annotations_bytes
        self._for_conditions = config.outcome_annotations_bytes_max // _CONDITIONS_PART
        self._added: set[tuple[int, Value]] = set()
        """The queues and the values that the decision has added to them."""

    def limit(self, event: Settled) -> None:
        """Leave out of the outcome of an event what there is no room for."""
        queue, outcome = self._queues.get(event.queue), event.outcome
        if queue is None:
            return
        if outcome.annotations:
            event.outcome = self._modified(queue, outcome, event.words)
        elif queue.settings.dead_letter and (outcome.condition or outcome.description):
            event.outcome = self._rejected(queue, outcome)

    def _rejected(self, queue: Queue, outcome: Outcome) -> Outcome:
        if self._take(queue, [cut_description(outcome.condition, outcome.description)], spared=self._for_conditions):
            return outcome
        if outcome.condition and self._take(queue, [cut_description(outcome.condition, "")], spared=0):
            return replace(outcome, description="")
        return REJECTED

    def _modified(self, queue: Queue, outcome: Outcome, words: bytes) -> Outcome:
        before = {queue.entries.get(word >> 16, PLAIN).annotations for word in unpack_words(words)}
        after = {merge_annotations(one, outcome.annotations, bytes_max=ANNOTATIONS_BYTES_MAX) for one in before}
        if self._take(queue, after - before, spared=self._for_conditions):
            return outcome
        return replace(outcome, annotations=())

    def _take(self, queue: Queue, values: Iterable[Value], *, spared: int) -> bool:
        """Return whether there is more room than `spared` for values of a queue, and count them if so."""
        known = queue.outcome_annotations.known
        fresh = [value for value in values if value not in known and (queue.id, value) not in self._added]
        size = sum(map(cost_of, fresh))
        if size and size > self._left - spared:
            return False
        self._left -= size
        self._added.update([(queue.id, value) for value in fresh])
        return True
