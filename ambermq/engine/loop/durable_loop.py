"""The durable loop: the engine's step over a real log. It owns the state, the demand and the effects that wait.

    submit(command)       queue a command for the next tick
    step(now_us)          decide and apply the commands, dispatch, write once, request a sync; return effects
    completed(now_us)     a sync or a read has ended: return the effects that waited for it
    sync_or_mark(now_us)  request an overdue sync or write an overdue mark, without a step
    fileno()              readable when completed() has work

The loop has no callbacks and no event loop: the driver watches the file descriptor, and follows `schedule`.

Rule 1. The state follows each decision, the log's end each write, the durable end each sync.
Rule 2. No effect leaves before its batch was written. A tick without promises may be written lazy_write_ms later.
Rule 3. Effects leave in the order of ticks. Those that wait are in one queue, in the order of `after`.
Rule 4. A delivery whose message must be read from the disk waits in a queue of its consumer; no other consumer waits.
Rule 5. Only a decision may fail by itself. Any other exception leaves the state, the draft or the effects incomplete,
        so it is fatal. `failure` holds it, every later step and completed raise it, and the log is not written again.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from select import POLLIN, poll
from typing import Final, final

from ambermq.engine.commands import (
    Command,
    CompactionCommand,
    CutThrough,
    DetachConsumer,
    Publish,
    Settle,
    SnapshotCommand,
)
from ambermq.engine.compaction.commit import Compactor
from ambermq.engine.config import EngineConfig
from ambermq.engine.decide.context import DecisionContext
from ambermq.engine.decide.decide import started
from ambermq.engine.dispatch.demand import Want
from ambermq.engine.dispatch.dispatch import dispatch
from ambermq.engine.dispatch.large_message import assemble
from ambermq.engine.effects import Effect
from ambermq.engine.entries.entry import Entry
from ambermq.engine.entries.stored_message import Pieces, StoredMessage
from ambermq.engine.events import ClockStepped, Lost, Scheduled, Timed
from ambermq.engine.fold.data_loss import damage_of
from ambermq.engine.history.replay import Replay
from ambermq.engine.loop.clock_steps import ClockSteps, is_step_at_start
from ambermq.engine.loop.format_level import FormatLevel
from ambermq.engine.loop.schedule import FOREVER_US
from ambermq.engine.loop.timed_state import TimedState
from ambermq.engine.model.state import State
from ambermq.engine.records.writer import WRITE
from ambermq.engine.routing.router import FieldsOf, no_fields
from ambermq.engine.snapshots.snapshotter import Snapshotter
from ambermq.engine.time_budget import standing_clock
from ambermq.log.buffer import Buffer
from ambermq.log.manifest.manifest import note_clock_step
from ambermq.log.read.body_store import DAMAGED
from ambermq.log.write.body_holds import BodyHold
from ambermq.log.write.log import Log

__all__ = ["DurableLoop"]

_LOOPED_MAX: Final = 10
"""The queues that a report of loops names."""


@final
class DurableLoop(TimedState):
    """The engine of one virtual host over its log; one thread calls it."""

    def __init__(
        self,
        log: Log,
        state: State,
        config: EngineConfig,
        fields_of: FieldsOf = no_fields,
        clock_ns: Callable[[], int] = standing_clock,
    ) -> None:
        """Loop over `log` from `state`; `fields_of` decodes the fields of a message that muxers match.

        `clock_ns` measures the time that matching takes in a tick.
        """
        super().__init__(log, state, config, fields_of, clock_ns)
        self.failure: Exception | None = None
        """The exception that ended the loop; None while it runs."""
        self.snapshots = Snapshotter(log, config)
        self.format = FormatLevel(log)
        self._compactor = Compactor(log)
        self.compacted_us = 0
        """The time of the newest compaction since the start, 0 for none."""
        self._has_jobs = False
        self.correction_us = 0
        """The difference between the times of events and the `now_us` of the calls. Timers run by `now_us` alone."""
        self.clock_steps = ClockSteps()
        self.publish = self._command_queue.publish
        """Like `submit`, for messages."""
        self.settle = self._command_queue.settle
        """Like `submit`, for settlements."""

    def reconfigure(self, config: EngineConfig, now_us: int) -> None:
        """Use another configuration from the next tick on.

        The parts of the loop that copy a limit keep theirs: ticks, timers, the cache of routes, and chunks.
        """
        self.config = config
        self.snapshots.reconfigure(config, now_us)

    def start(self, now_us: int, lost: Sequence[tuple[int, int]] = ()) -> None:
        """Log the start of the broker, and wait until it is durable. Call it once, before serving.

        `lost` are the ranges of offsets, first and end, that a repair gave up since the last start. The messages of
        those ranges leave their queues.
        """
        if is_step_at_start(self.state.time_us, now_us):
            self._log_clock_step(self.state.time_us, now_us)
        event_us = max(now_us, self.state.time_us)
        for first, end in lost:
            self._log_and_apply([Lost(self.log.draft.next_offset, event_us, first, end)])
        log = self.log
        moment = DecisionContext(
            event_us, log.draft.next_offset, log.room_bytes(), self.config, self.router, log.config.batch_bytes_max
        )
        # After a crash between two parts, the next start does the rest.
        self._log_and_apply(started(self.state, moment))
        for damage in damage_of(self.state, lost, next_offset=self.log.draft.next_offset, time_us=event_us):
            self._log_and_apply([damage])
        self.router.prepare(self.state)
        self._start_timers()
        self._give_up_due(event_us)
        self.schedule.timer_us = self._next_timer_us()
        self.log.write(now_us)
        self.log.request_sync()
        poller = poll()
        poller.register(self.log.fileno(), POLLIN)
        while self.log.durable_end < self.log.log_end:
            poller.poll()
            self.log.completed()
        self.schedule.logged(now_us, self.log)

    def take_looped(self) -> list[tuple[str, int]]:
        """Return the queues whose messages have ended since the last call because their dead letters go round.

        Each with the number of messages, the queues with most first. An empty name stands for deleted queues, and for
        those beyond the first few.
        """
        counts: Counter[str] = Counter()
        for queue_id, count in self._dead_letters.take_looped().items():
            queue = self.state.queues.get(queue_id)
            counts["" if queue is None or len(counts) >= _LOOPED_MAX else queue.name] += count
        return counts.most_common()

    def submit(self, command: Command) -> None:
        """Queue a command for the next tick; it joins the one before if both are parts of one run."""
        command_queue = self._command_queue
        if type(command) is Settle:
            command_queue.settle(command)
        elif type(command) is Publish:
            command_queue.publish(command)
        elif type(command) is DetachConsumer:
            # Withdrawn now, not at the decision: a sync in between would release deliveries that no link takes.
            command.unsent += self._withdraw(command.consumer)
            command_queue.add(command)
        elif isinstance(command, SnapshotCommand):
            command_queue.make_due()
            self.snapshots.submit(command)
        elif isinstance(command, CompactionCommand):
            command_queue.make_due()
            self._has_jobs = True
            self._compactor.submit(command)
        else:
            command_queue.add(command)

    def make_due(self) -> None:
        """Make every queued command due: the next step writes them, and requests their sync."""
        self._command_queue.make_due()
        self.schedule.make_due()

    @property
    def is_waiting(self) -> bool:
        """Return whether an effect waits, or an event is not durable."""
        log = self.log
        unwritten = self._command_queue or log.draft.record_count
        return bool(self._pending.queue or self._release.queues or unwritten) or log.durable_end < log.log_end

    def fileno(self) -> int:
        """Return the file descriptor that is readable when `completed` has work."""
        return self.log.fileno()

    def step(self, now_us: int) -> list[Effect]:
        """Run a tick: decide the queued commands, dispatch, write. Return the released effects.

        Raises LogFailed if the log cannot be written, and any other `failure`: no further promise may leave.
        """
        if self.failure:
            raise self.failure
        try:
            command_queue, log, schedule = self._command_queue, self.log, self.schedule
            effects: list[Effect] = []
            if self.clock_steps.due and not self._is_fanning_out:
                self._step_clock(now_us)
            event_us = max(now_us + self.correction_us, self.state.time_us)
            if schedule.has_urgent or schedule.has_lazy:
                effects = self._decide_all(event_us, command_queue.take(now_us))
            if now_us >= schedule.timer_us and not self._is_fanning_out:
                if now_us >= self._dead_letters.next_us:
                    effects += self._try_again(now_us, event_us)
                effects += self._give_up_expired(event_us)
                effects += self._make_due(event_us)
                effects += self._end_late(event_us - self.state.stepped_us, event_us)
                effects += self._expire_locks(event_us)
                self._end_unused(event_us)
                self._end_suspended(event_us)
                self._refill_rates(event_us)
            if self.demand.dirty and not (command_queue.rest and self._is_fanning_out):
                self.matching.end_ns = None
                dispatched = dispatch(
                    self.state, self.demand, event_us, log.draft.next_offset, self.config, self._peek, self.matching
                )
                for event in dispatched.events:
                    offset = WRITE[type(event)](log.draft, event)
                    log.draft.end_command()
                    assert offset == event.offset, (offset, event)
                if self._blocks.watched:
                    for event in dispatched.events:
                        self._blocks.note(event)
                self.state = dispatched.state
                if self.demand.starved:
                    self._watch_rates()
                effects += dispatched.effects
                if dispatched.expired:
                    effects += self._give_up_found(dispatched.expired, event_us)
            if self._blocks.due:
                effects = [*self._blocks.changes(self.state, self.config), *effects]
            snapshots = self.snapshots
            may_snapshot = now_us >= snapshots.next_us or log.written_bytes >= snapshots.next_bytes
            may_snapshot |= log.log_end >= snapshots.next_end
            takes_snapshot = may_snapshot and snapshots.is_due(now_us)
            is_write_due = now_us >= schedule.write_by_us or log.draft.byte_count >= self.config.tick_bytes_max
            if (effects or takes_snapshot or is_write_due) and log.write(now_us) and self.demand.parked:
                self.demand.unpark()
            if takes_snapshot:
                effects += snapshots.step(self.state, now_us)
                self._has_jobs = True
            ready = self._pending.add(effects, log.log_end, log.durable_end) if effects else effects
            is_sync_due = len(ready) < len(effects) or now_us >= schedule.sync_by_us
            if is_sync_due or (now_us >= schedule.mark_by_us and log.write_mark(now_us)):
                log.request_sync()
            schedule.is_continued = schedule.has_urgent or bool(self.demand.dirty)
            has_timers = self._has_timers or self.transactions.begun
            schedule.timer_us = self._next_timer_us() if has_timers else self._dead_letters.next_us
            schedule.logged(now_us, log)
            released = self._release.release(ready) if ready else ready
            return self._with_locks(released, now_us) if self.demand.has_locks else released
        except Exception as error:
            self._stop(error)
            raise

    def sync_or_mark(self, now_us: int) -> list[Effect]:
        """Request a due sync, or write a due mark. Return no effects; raise as `step` does."""
        if self.failure:
            raise self.failure
        try:
            log, schedule = self.log, self.schedule
            if now_us >= schedule.sync_by_us or (now_us >= schedule.mark_by_us and log.write_mark(now_us)):
                log.request_sync()
            schedule.logged(now_us, log)
        except Exception as error:
            self._stop(error)
            raise
        return []

    def completed(self, now_us: int) -> list[Effect]:
        """Process the ends of syncs and reads; return the released effects.

        Raises LogFailed if a sync failed, and any other `failure`.
        """
        if self.failure:
            raise self.failure
        try:
            log, release, pending = self.log, self._release, self._pending
            log.completed()
            read = release.release_read() if release.queues else []
            if self.demand.parked:
                self.demand.unpark()
            ready = pending.release(log.durable_end) if pending.queue or pending.volatile.ends else []
            if pending.queue and pending.last_after > log.durable_end:
                log.request_sync()
            if self._discarded.tables:
                self._discarded.free()
            self.is_late = pending.is_late or bool(self._discarded.tables)
            if self._has_jobs:
                ready += self._continue_jobs(now_us)
            self.schedule.logged(now_us, log)
            released = release.release(ready) if ready else ready
            released = read + released if read else released
            return self._with_locks(released, now_us) if self.demand.has_locks else released
        except Exception as error:
            self._stop(error)
            raise

    def _with_locks(self, released: list[Effect], now_us: int) -> list[Effect]:
        """Begin the locks of the deliveries among effects that leave; return them after the locks that have expired."""
        expired, self._expired_locks = self._expired_locks, []
        self._start_locks(released, max(now_us + self.correction_us, self.state.time_us))
        schedule = self.schedule
        schedule.timer_us = min(schedule.timer_us, self._next_timer_us())
        schedule.next_us = min(schedule.next_us, schedule.timer_us)
        return expired + released

    def _continue_jobs(self, now_us: int) -> list[Effect]:
        """Continue snapshots and the requests of compactions; return the answers."""
        answers, record = self._compactor.completed(now_us + self.correction_us)
        if record is not None:
            self.submit(record)
            self.compacted_us = now_us + self.correction_us
        answers += self.snapshots.completed(now_us)
        self._has_jobs = self._compactor.is_busy or self.snapshots.is_busy
        return answers

    def _next_timer_us(self) -> int:
        """Return when the loop itself has something to do, by the driver's clock."""
        by_elapsed = self._timers, self._due_timers, self._unused, self._rates
        timers = *by_elapsed, self.transactions, self._locks, self._link_timers
        elapsed_us = min([one.next_us for one in timers])
        if elapsed_us < FOREVER_US:
            elapsed_us += self.state.stepped_us - self.correction_us
        return min(self._dead_letters.next_us, elapsed_us)

    def _note_scheduled(self, event: Scheduled) -> None:
        super()._note_scheduled(event)
        self.snapshots.note_scheduled()

    def _note_timed(self, event: Timed) -> None:
        super()._note_timed(event)
        self.snapshots.note_timed()

    def _watch_rates(self) -> None:
        """Set the timers of consumers whose rate holds back all of their credit."""
        for want in self.demand.starved:
            self._rates.watch(want)
        self.demand.starved.clear()

    def correct_clock(self, correction_us: int, step: tuple[int, int] | None = None) -> None:
        """Set the difference between the times of events and `now_us`.

        A `step` is the time before it and the time after it. It is logged in the next tick, before other events.
        """
        if step is not None:
            self.clock_steps.add(*step)
        self.correction_us = self.snapshots.correction_us = correction_us

    def _step_clock(self, now_us: int) -> None:
        """Log a step of the clock. It begins a batch, so that times never fall within one."""
        if self.log.write(now_us) and self.demand.parked:
            self.demand.unpark()
        old_us, new_us = self.clock_steps.take()
        self._log_clock_step(max(old_us, self.state.time_us), new_us)

    def _log_clock_step(self, old_us: int, new_us: int) -> None:
        step = ClockStepped(self.log.draft.next_offset, new_us, old_us)
        self._log_and_apply([step])
        self.clock_steps.logged(step)
        self.log.edit_manifest(partial(note_clock_step, offset=step.offset, time_us=new_us))

    def _stop(self, error: Exception) -> None:
        self.failure = error
        self.log.fail(error)

    def set_credit(self, consumer: int, credit: int, *, draining: bool = False) -> None:
        """Set how many more deliveries a consumer can take now."""
        want = self.demand.wants.get(consumer)
        if want is not None:
            # Its deliveries that have not left use the credit first.
            want.credit, want.draining = max(credit - want.held_count, 0), draining
            if want.rate is not None:
                self._limit_credit(want)
            queue = self.state.queues.get(want.queue)
            if draining or (
                credit and queue is not None and (queue.ready.count or queue.returned.count or queue.levels)
            ):
                self.demand.dirty[want.queue] = None

    def stop_cut_through(self, cut_through: CutThrough) -> None:
        """End the delivery of a message that arrives, which its link will not complete."""
        self.demand.end_cut_through(cut_through)

    def _limit_credit(self, want: Want) -> None:
        """Hold back the credit that a consumer's rate does not allow now, and set the timer for it."""
        want.grant(want.credit)
        self._rates.watch(want)
        schedule = self.schedule
        schedule.timer_us = min(schedule.timer_us, self._next_timer_us())
        schedule.next_us = min(schedule.next_us, schedule.timer_us)

    @property
    def durable_end(self) -> int:
        """The offset after the last durable event."""
        return self.log.durable_end

    def hold(self) -> BodyHold:
        """Keep every message that is in the log now readable until the hold is released, despite compactions."""
        return self.log.hold_bodies()

    def replay(self, first: int) -> Replay:
        """Return a reader of the durable events from offset `first` on, for another thread."""
        return Replay(self.log.tail_reader(first), self.log.manifest.horizon)

    def messages(
        self, words: Sequence[int], entries: Sequence[Entry | None] | None
    ) -> list[Buffer | StoredMessage | None] | None:
        """Return the bodies for a browsing link; an element is None if its message is damaged. Large ones are not read.

        `entries` are the entries of the messages, None if none has one. Return None if a body must be read from the
        disk, which is requested: call again after `completed`.
        """
        bodies = assemble(self.log.bodies, words, entries or (None,) * len(words))
        return None if bodies is None else [None if body is DAMAGED else body for body in bodies]

    def piece(self, message: Pieces, index: int) -> Buffer | None:
        """Return a piece of a large message: no bytes if it is damaged, None if it must be read from the disk first.

        In that case it is requested: call again after `completed`. The next piece is requested, too.
        """
        bodies, offsets = self.log.bodies, message.offsets
        piece = bodies.get(offsets[index])
        bodies.forget(offsets[index : index + 1])
        bodies.fetch([one for one in offsets[index + 1 : index + 2] if not bodies.has(one)])
        return piece
