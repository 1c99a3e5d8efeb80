"""The state of the loop: it follows the events that the draft of the log has.

Rule 1. An event is written to the draft and applied in one step: the two never differ between commands.
Rule 2. What an event changes beside the state follows at once: queues to dispatch, routes, and the state to free.
"""

from collections.abc import Iterable
from typing import Final

from ambermq.engine.config import EngineConfig
from ambermq.engine.decide.messages.last_values import replaced_words
from ambermq.engine.decide.release_parts import CHANGES_PER_RETURN
from ambermq.engine.dispatch.demand import RETURN_OUTCOMES, Demand
from ambermq.engine.dispatch.group_notes import note_groups
from ambermq.engine.dispatch.queue_blocks import QueueBlocks
from ambermq.engine.entries.discard_reason import DiscardReason, MoveReason
from ambermq.engine.entries.entry import PLAIN
from ambermq.engine.entries.entry_word import WORD_BYTES, pack_words, unpack_words
from ambermq.engine.entries.outcome import OutcomeKind
from ambermq.engine.events import (
    Acquired,
    Chunked,
    ConsumerDetached,
    Discarded,
    Due,
    Event,
    Grouped,
    Identified,
    Keyed,
    LinkEnded,
    LinkResumed,
    LinkSuspended,
    Moved,
    Prioritized,
    ProducerAttached,
    ProducerDetached,
    Published,
    QueueConfigured,
    QueueDeleted,
    Reset,
    Scheduled,
    SetAside,
    Settled,
    TagsKept,
    Timed,
)
from ambermq.engine.fold.apply import APPLY
from ambermq.engine.loop.dead_letters import DeadLetters
from ambermq.engine.loop.discarded_state import DiscardedState
from ambermq.engine.loop.pending_effects import PendingEffects
from ambermq.engine.loop.tick_work import LEAVES_PER_CHANGE
from ambermq.engine.loop.timers.due_timers import DueTimers
from ambermq.engine.loop.timers.expiry_timers import ExpiryTimers
from ambermq.engine.loop.timers.link_timers import LinkTimers
from ambermq.engine.loop.timers.lock_timers import LockTimers
from ambermq.engine.loop.timers.rate_timers import RateTimers
from ambermq.engine.loop.timers.unused_queues import UnusedQueues
from ambermq.engine.model.state import State
from ambermq.engine.model.suspended_link import SuspendedLink
from ambermq.engine.records.writer import WRITE
from ambermq.engine.routing.router import WIRING, Router
from ambermq.log.write.log import Log

__all__ = ["LoggedState"]

_FEW_QUEUES: Final = 1000


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
        self._timers = ExpiryTimers()
        self._unused = UnusedQueues()
        self._rates = RateTimers()
        self._due_timers = DueTimers()
        self._blocks = QueueBlocks()
        self._locks = LockTimers()
        self._link_timers = LinkTimers()
        self._has_ttl = False
        """Whether a queue has a time to live, or has had one."""
        self._has_timers = False
        """Whether a timer was set since the start."""
        self.is_late = False
        """Whether `completed` has more to do now: effects that may leave, or a discarded state to free."""

    def _note_detached(self, before: State, consumer: int, time_us: int) -> None:
        """Note the end of a consumer, and what it has returned that its queue gives up.

        `before` is the state before its end.
        """
        known = before.consumers.get(consumer)
        queue = None if known is None else before.queues.get(known.queue)
        if queue is None:
            return
        self._unused.note_use(queue, self.state.elapsed_us(time_us))
        self._locks.forget(consumer)
        settings = queue.settings
        if settings.exclusive:
            # The next one waited for what this one held.
            self.demand.check_active(queue.id)
        if settings.delivery_count_max or settings.redelivery_delay_ms or queue.is_timed or queue.keyed:
            words = queue.held_by(consumer).to_bytes()
            self._note_replaced(queue.id, words)
            self._note_delayed(queue.id, words)
            self._note_exhausted(queue.id, words)
            self._note_expired(queue.id, words, time_us)

    def _note_suspended(self, before: State, event: LinkSuspended | LinkEnded) -> None:
        """Note a link that is suspended, or that ends; `before` is the state before that."""
        if type(event) is LinkSuspended and event.link not in before.suspended:
            if event.link in before.producers:
                self._unused.detach_producer(
                    self.state, before.producers[event.link], self.state.elapsed_us(event.time_us)
                )
            elif event.link in before.consumers:
                self._unused.note_use(
                    before.queues.get(before.consumers[event.link].queue), self.state.elapsed_us(event.time_us)
                )
        if type(event) is LinkEnded:
            self._locks.forget(event.link)
        until_us = event.until_us if type(event) is LinkSuspended else 0
        self._link_timers.watch(event.link, until_us)
        self._has_timers |= bool(until_us)
        known = before.suspended.get(event.link)
        if known is not None and known.queue:
            # The next consumer of an exclusive queue waited for what this one held.
            self.demand.check_active(known.queue)

    def _note_published(self, queues: Iterable[int], time_us: int) -> None:
        """Note that messages came to queues."""
        now_us = self.state.elapsed_us(time_us)
        for queue in queues:
            self._unused.note_publish(queue, now_us)

    def _note_configured(self, event: QueueConfigured) -> None:
        """Note what other settings of a queue change beside the state."""
        if not event.settings.priorities:
            # It may have had some: then its messages have other places now.
            self.demand.restart_walks(event.queue)
        if not event.settings.lock_ms and self.demand.has_locks:
            self._forget_locks(self.state, event.queue)
        # It may have been paused, or exclusive.
        self.demand.touch(event.queue)
        if event.settings.exclusive or event.queue in self.demand.active:
            self.demand.check_active(event.queue)
        self._has_ttl |= bool(event.settings.message_ttl_ms)
        self._has_timers |= bool(event.settings.expires_ms)
        queue = self.state.queues.get(event.queue)
        if queue is not None:
            self._blocks.configure(queue, event.settings)
            self._unused.configure(queue, self.state.elapsed_us(event.time_us))

    def _forget_times(self, queues: Iterable[int]) -> None:
        """Forget when messages of deleted queues expire, or are due."""
        for queue in queues:
            self._timers.forget(queue)
            self._due_timers.forget(queue)

    def _forget_locks(self, state: State, queue: int) -> None:
        """End the locks of a queue that has none any more."""
        for consumer in state.receivers.get(queue, ()):
            self._locks.forget(consumer)
        for link in state.suspended.values():
            if link.queue == queue:
                self._locks.forget(link.id)

    def _note_producer(self, before: State, event: ProducerAttached | ProducerDetached) -> None:
        """Note a producer that has come or gone; `before` is the state before that."""
        if type(event) is ProducerAttached:
            self._unused.attach_producer(self.state, self.state.producers[event.offset])
        elif type(event) is ProducerDetached and event.producer in before.producers:
            gone = before.producers[event.producer]
            self._unused.detach_producer(self.state, gone, self.state.elapsed_us(event.time_us))

    def _note_delayed(self, queue_id: int, words: bytes) -> None:
        """Set the timers of those of returned words whose redelivery is delayed."""
        queue = self.state.queues.get(queue_id)
        if queue is None or not queue.delayed.count:
            return
        by_time: dict[int, list[int]] = {}
        for word in unpack_words(words):
            due_us = queue.entries.get(word >> 16, PLAIN).due_us
            if due_us:
                by_time.setdefault(due_us, []).append(word >> 16)
        for due_us, entries in by_time.items():
            self._has_timers = True
            self._due_timers.delay(queue, entries, due_us)

    def _note_expired(self, queue_id: int, words: bytes, time_us: int) -> None:
        """Note those of returned words that have expired while a consumer had them."""
        queue = self.state.queues.get(queue_id)
        if queue is None or not queue.is_timed:
            return
        now_us = self.state.elapsed_us(time_us)
        expired = [word for word in unpack_words(words) if 0 < queue.expiry_of(word) <= now_us]
        if expired:
            self._dead_letters.add(queue_id, pack_words(expired), MoveReason.EXPIRED)

    def _note_replaced(self, queue_id: int, words: bytes) -> None:
        """Note those of returned words that newer messages have replaced while a consumer had them."""
        queue = self.state.queues.get(queue_id)
        values = None if queue is None else queue.keyed
        if values is not None and values.replaced:
            replaced = [word for word in unpack_words(words) if values.replaced.holds(word)]
            if replaced:
                self._dead_letters.add(queue_id, pack_words(replaced), DiscardReason.REPLACED)

    def _note_keyed(self, before: State, event: Keyed) -> None:
        """Note the messages that newer ones replace; those that consumers hold end later."""
        for queue, words in replaced_words(before, self.state, event).items():
            self._dead_letters.add(queue, words, DiscardReason.REPLACED)

    def _watch(self, queues: Iterable[int], time_us: int) -> None:
        """Set the timers of queues whose messages expire."""
        for queue_id in queues:
            queue = self.state.queues.get(queue_id)
            if queue is not None and queue.runs:
                self._has_timers = True
                self._timers.watch(queue, self.state.elapsed_us(time_us))

    def _start_timers(self) -> None:
        """Set the timers of a state that was recovered; the messages that wait have passed some time without them."""
        self._blocks.start(self.state)
        self._link_timers.start(self.state)
        self._has_timers |= bool(self.state.suspended)
        for link in self.state.suspended.values():
            self._lock_suspended(link)
            queue = self.state.queues.get(link.queue)
            if queue is not None and queue.has_groups:
                self.demand.lines(queue.id, self.config.groups_max).note_kept(link.id, queue)
        for queue in self.state.queues.values():
            self._has_ttl |= bool(queue.runs or queue.settings.message_ttl_ms)
            if queue.aside:
                self._dead_letters.note_aside(queue.id)
            if queue.keyed is not None and queue.keyed.replaced:
                self._dead_letters.add(queue.id, queue.keyed.replaced.to_bytes(), DiscardReason.REPLACED)
            if queue.settings.expires_ms:
                self._unused.configure(queue, self.state.elapsed_us(self.state.time_us))
            self._has_timers |= queue.is_timed or bool(queue.settings.expires_ms) or bool(queue.timer_count)
            if queue.timer_count:
                self._due_timers.start(queue)
            if queue.runs:
                self._timers.watch(queue, 0)
            if queue.expiries.count:
                self._timers.start(queue)

    def _note_timed(self, event: Timed) -> None:
        """Set the timers of messages that have times to live of their own."""
        self._has_timers = True
        times = unpack_words(event.elapsed_expiries(self.state.stepped_us))
        for queue_id in event.queues:
            queue = self.state.queues.get(queue_id)
            if queue is not None:
                self._timers.add(queue, event.first, times)

    def _note_scheduled(self, event: Scheduled) -> None:
        """Set the timers of messages that are scheduled for later."""
        self._has_timers = True
        entries = [word >> 16 for word in unpack_words(event.words)]
        dues = unpack_words(event.elapsed_dues(self.state.stepped_us))
        for queue_id in event.queues:
            queue = self.state.queues.get(queue_id)
            if queue is not None:
                self._due_timers.schedule(queue, entries, dues)

    def _note_delivered(self, event: Moved) -> None:
        """Set the timers of scheduled messages that are available now, and expire by their own time to live."""
        queue = self.state.queues.get(event.source)
        if queue is None or not queue.expiries.count:
            return
        entries = range(event.offset, event.offset + len(event.words) // WORD_BYTES)
        for entry, expires_us in zip(entries, queue.expiries.values_of(entries), strict=True):
            if expires_us:
                self._timers.add(queue, entry, (expires_us,))

    def _note_taken(self, event: Acquired) -> None:
        """Begin the locks of messages that a request has taken: their answer is their delivery."""
        queue = self.state.queues.get(event.queue)
        if queue is None or not (lock_ms := queue.settings.lock_ms):
            return
        self.demand.has_locks = self._has_timers = True
        words = unpack_words(event.words)
        attempts = [queue.entries.get(word >> 16, PLAIN).attempt for word in words]
        self._locks.start(queue, event.consumers[0], words, attempts, self.state.elapsed_us(event.time_us), lock_ms)

    def _lock_suspended(self, link: SuspendedLink) -> None:
        """Begin the locks of what a link keeps over a start: nothing says when they began."""
        queue = self.state.queues.get(link.queue)
        if queue is not None and queue.settings.lock_ms:
            self.demand.has_locks = True
            words = unpack_words(queue.held_by(link.id).to_bytes())
            attempts = [queue.entries.get(word >> 16, PLAIN).attempt for word in words]
            now_us = self.state.elapsed_us(self.state.time_us)
            self._locks.start(queue, link.id, words, attempts, now_us, queue.settings.lock_ms)

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
        self, events: list[Event], *, ends_each: bool = False, is_whole: bool = False, after: State | None = None
    ) -> tuple[int, tuple[Published, list[Event]] | None]:
        """Log and apply the events of a command, up to one for more queues than a tick takes.

        Return the number of changes, and that event with the events after it. With `ends_each` each event ends a
        command. With `is_whole` all events but pieces of messages go into one batch. `after` is the state after the
        only event, if it is known; then the event is not too wide.
        """
        draft, changes_max, changes = self.log.draft, self.config.tick_changes_max, 0
        for index, event in enumerate(events):
            if type(event) is not Published:
                changes += 1
            elif after is None and not is_whole and len(event.queues) > changes_max:
                return changes, (event, events[index + 1 :])
            else:
                changes += len(event.queues)
            offset = WRITE[type(event)](draft, event)
            assert offset == event.offset, (offset, event)
            if self.demand.journals:
                self.demand.note_returns(event, self.state)
            before = self.state
            self.state = APPLY[type(event)](self.state, event) if after is None else after
            if self._blocks.watched:
                self._blocks.note(event)
            if self.demand.groups and (offering := note_groups(self.demand.groups, event, before, self.state)):
                self.demand.touch(offering)
            if type(event) is Published:
                if not event.durable:
                    self._pending.volatile.add(offset, len(event.bodies))
                # The parts of a fan-out have touched theirs.
                for queue in event.queues if after is None else ():
                    self.demand.touch(queue)
                if self._unused.used_us and after is None:
                    self._note_published(event.queues, event.time_us)
                if self._has_ttl:
                    self._watch(event.queues, event.time_us)
            elif type(event) is Timed:
                self._note_timed(event)
            elif type(event) is Keyed:
                self._note_keyed(before, event)
            elif type(event) is Scheduled:
                self._note_scheduled(event)
            elif type(event) is Settled:
                count = len(event.words) // WORD_BYTES
                if event.outcome.kind in RETURN_OUTCOMES:
                    changes += count * CHANGES_PER_RETURN
                    self.demand.touch(event.queue)
                    self._note_replaced(event.queue, event.words)
                    if event.outcome.delivery_failed:
                        self._note_delayed(event.queue, event.words)
                        self._note_exhausted(event.queue, event.words)
                    self._note_expired(event.queue, event.words, event.time_us)
                else:
                    changes += count // LEAVES_PER_CHANGE
                    if event.outcome.kind is OutcomeKind.REJECTED:
                        self._note_rejected(event)
            elif type(event) is ConsumerDetached:
                self._note_detached(before, event.consumer, event.time_us)
            elif isinstance(event, (LinkSuspended, LinkEnded)):
                self._note_suspended(before, event)
            elif type(event) is LinkResumed:
                self._locks.succeed(event.link, event.successor)
            elif type(event) is Moved:
                changes += (len(event.words) // WORD_BYTES) * len(event.targets)
                for queue in event.targets:
                    self.demand.touch(queue)
                self._note_published(event.targets, event.time_us)
                if self._has_ttl:
                    self._watch(event.targets, event.time_us)
                if event.reason is MoveReason.DUE:
                    self._note_delivered(event)
            elif type(event) is Acquired:
                self._note_taken(event)
            elif type(event) is SetAside:
                self._dead_letters.note_aside(event.queue)
            elif type(event) is Due:
                changes += len(event.words) // WORD_BYTES
                self.demand.touch(event.queue)
            elif type(event) is Discarded:
                count = len(event.words) // WORD_BYTES
                changes += count // LEAVES_PER_CHANGE
                if event.reason is DiscardReason.LOOP:
                    self._dead_letters.note_looped(event.queue, count)
            elif type(event) is QueueConfigured:
                self._note_configured(event)
            elif type(event) is ProducerAttached or type(event) is ProducerDetached:
                self._note_producer(before, event)
            elif type(event) is QueueDeleted:
                self._unused.forget(event.queue)
                self._forget_locks(before, event.queue)
                self._forget_times((event.queue,))
            elif isinstance(event, WIRING):
                if type(event) is Reset:
                    self._discarded.add(before)
                    self._unused.clear()
                    self._locks.clear()
                    self._forget_times(before.queues)
                    self.is_late |= bool(self._discarded.tables)
                self.router.apply_event(event, self.state)
            if ends_each and index + 1 < len(events) and _is_about_messages(events[index + 1]):
                # It is about the messages of this event, so both are in one batch. A message whose delivery has begun
                # is acquired there.
                continue
            if ends_each or event is events[-1]:
                # Each message ends a command, since a large one may exceed a batch.
                draft.end_command()
            elif is_whole:
                if type(event) is Chunked:
                    draft.end_command()
            elif type(event) is not Moved and type(event) is not Keyed:
                # The events of a command may exceed a batch, as the deletion of a muxer with its attachments. All moves
                # of a command are in one.
                draft.end_part()
        return changes, None


_ABOUT_ONE: Final = frozenset({TagsKept, Acquired, Settled})
_ABOUT_MESSAGES: Final = (Timed, Scheduled, Grouped, Prioritized, Keyed, Identified)


def _is_about_messages(event: Event) -> bool:
    """Return whether an event is about the messages before it, and is too small to matter for a batch."""
    if type(event) in _ABOUT_ONE:
        return True
    return isinstance(event, _ABOUT_MESSAGES) and len(event.queues) <= _FEW_QUEUES
