"""The state of the loop: it follows the events that the draft of the log has.

Rule 1. An event is written to the draft and applied in one step: the two never differ between commands.
Rule 2. What an event changes beside the state follows at once: queues to dispatch, routes, and the state to free.
"""

from ambermq.engine.config import EngineConfig
from ambermq.engine.decide.release_parts import CHANGES_PER_RETURN
from ambermq.engine.dispatch.demand import RETURN_OUTCOMES, Demand
from ambermq.engine.entries.discard_reason import MoveReason
from ambermq.engine.entries.entry import PLAIN
from ambermq.engine.entries.entry_word import WORD_BYTES, pack_words, unpack_words
from ambermq.engine.entries.outcome import OutcomeKind
from ambermq.engine.events import (
    ConsumerDetached,
    Discarded,
    Event,
    Moved,
    Published,
    QueueConfigured,
    Reset,
    SetAside,
    Settled,
)
from ambermq.engine.fold.apply import APPLY
from ambermq.engine.loop.dead_letters import DeadLetters
from ambermq.engine.loop.discarded_state import DiscardedState
from ambermq.engine.loop.pending_effects import PendingEffects
from ambermq.engine.loop.tick_work import LEAVES_PER_CHANGE
from ambermq.engine.model.state import State
from ambermq.engine.records.writer import WRITE
from ambermq.engine.routing.router import WIRING, Router
from ambermq.log.write.log import Log

__all__ = ["LoggedState"]


class LoggedState:
    """The state of one virtual host, with its log and what is derived from both. The durable loop extends it."""

    def __init__(self, log: Log, state: State, config: EngineConfig, router: Router) -> None:
        """Begin with `state`, the fold of `log`; `router` follows the events of the wiring."""
        self.log = log
        self.state = state
        self.config = config
        self.router = router
        self.demand = Demand()
        self._pending = PendingEffects(self.demand)
        self._discarded = DiscardedState()
        self._dead_letters = DeadLetters()
        self.is_late = False
        """Whether `completed` has more to do now: effects that may leave, or a discarded state to free."""

    def _note_detached(self, before: State, consumer: int) -> None:
        """Note what a consumer has returned that was delivered too often; `before` is the state before its end."""
        known = before.consumers.get(consumer)
        queue = None if known is None else before.queues.get(known.queue)
        if queue is not None and queue.settings.delivery_count_max:
            self._note_exhausted(queue.id, queue.held_by(consumer).to_bytes())

    def _note_exhausted(self, queue_id: int, words: bytes) -> None:
        """Note those of returned words whose deliveries have failed as often as their queue allows."""
        queue = self.state.queues.get(queue_id)
        if queue is None or not (count_max := queue.settings.delivery_count_max):
            return
        entries = queue.entries
        exhausted = [word for word in unpack_words(words) if entries.get(word >> 16, PLAIN).count >= count_max]
        if exhausted:
            self._dead_letters.add(queue_id, pack_words(exhausted), MoveReason.DELIVERY_COUNT)

    def _note_rejected(self, event: Settled) -> None:
        """Note rejected messages whose queue has a dead-letter target: they are set aside now."""
        queue = self.state.queues.get(event.queue)
        if queue is not None and queue.settings.dead_letter:
            self._dead_letters.add(event.queue, event.words, MoveReason.REJECTED)

    def _log_and_apply(
        self, events: list[Event], *, ends_each: bool = False, after: State | None = None
    ) -> tuple[int, tuple[Published, list[Event]] | None]:
        """Log and apply the events of a command, up to one for more queues than a tick takes.

        Return the number of changes, and that event with the events after it. With `ends_each` each event ends a
        command. `after` is the state after the only event, if it is known; then the event is not too wide.
        """
        draft, changes_max, changes = self.log.draft, self.config.tick_changes_max, 0
        for index, event in enumerate(events):
            if type(event) is not Published:
                changes += 1
            elif after is None and len(event.queues) > changes_max:
                return changes, (event, events[index + 1 :])
            else:
                changes += len(event.queues)
            offset = WRITE[type(event)](draft, event)
            assert offset == event.offset, (offset, event)
            if self.demand.journals:
                self.demand.note_returns(event, self.state)
            before = self.state
            self.state = APPLY[type(event)](self.state, event) if after is None else after
            if type(event) is Published:
                if not event.durable:
                    self._pending.volatile.add(offset, len(event.bodies))
                # The parts of a fan-out have touched theirs.
                for queue in event.queues if after is None else ():
                    self.demand.touch(queue)
            elif type(event) is Settled:
                count = len(event.words) // WORD_BYTES
                if event.outcome.kind in RETURN_OUTCOMES:
                    changes += count * CHANGES_PER_RETURN
                    self.demand.touch(event.queue)
                    if event.outcome.delivery_failed:
                        self._note_exhausted(event.queue, event.words)
                else:
                    changes += count // LEAVES_PER_CHANGE
                    if event.outcome.kind is OutcomeKind.REJECTED:
                        self._note_rejected(event)
            elif type(event) is ConsumerDetached:
                self._note_detached(before, event.consumer)
            elif type(event) is Moved:
                changes += (len(event.words) // WORD_BYTES) * len(event.targets)
                for queue in event.targets:
                    self.demand.touch(queue)
            elif type(event) is SetAside:
                self._dead_letters.note_aside(event.queue)
            elif type(event) is Discarded:
                changes += len(event.words) // WORD_BYTES // LEAVES_PER_CHANGE
            elif type(event) is QueueConfigured:
                # It may have been paused.
                self.demand.touch(event.queue)
            elif isinstance(event, WIRING):
                if type(event) is Reset:
                    self._discarded.add(before)
                    self.is_late |= bool(self._discarded.tables)
                self.router.apply_event(event, self.state)
            if ends_each or event is events[-1]:
                # Each message ends a command, since a large one may exceed a batch.
                draft.end_command()
            elif type(event) is not Moved:
                # The events of a command may exceed a batch, as the deletion of a muxer with its attachments. All moves
                # of a command are in one.
                draft.end_part()
        return changes, None
