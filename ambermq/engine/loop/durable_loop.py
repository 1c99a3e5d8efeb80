"""The durable loop: the engine's step over a real log. It owns State, Demand and the effects that wait.

    submit(command)      gathered until the tick
    step(now_us)         decide and apply each, dispatch, one write, ask for a sync; effects that may leave are returned
    completed(now_us)    a sync or a read has ended: effects that waited for it are returned
    sync_or_mark(now_us) what needs no step: a sync or a mark whose deadline has passed
    fileno()             readable when completed() has something to take

No callbacks and no event loop in here: the driver registers the file descriptor and obeys `schedule` (schedule.py).

Rule 1. State is at the end of what was decided; the log's end follows at the write; the durable end at the sync.
Rule 2. No effect leaves before its batch was written. A tick that promises nothing may be written lazy_write_ms later.
Rule 3. Effects leave in the order of ticks. What waits stands in one queue whose `after` never falls.
Rule 4. A delivery whose message must be read from the disk waits in its consumer's line; the other consumers go on.
Rule 5. Only a decision may fail by itself. Whatever else raises leaves State, draft or effects half done, so it is
        fatal: `failure` says what it was, every later step and completed raise it, and nothing more is written.
"""

from collections import deque
from collections.abc import Sequence
from select import POLLIN, poll
from typing import Final, final

from ambermq.engine.commands import (
    AttachConsumer,
    Command,
    CompactionCommand,
    DetachConsumer,
    Publish,
    Settle,
    SnapshotCommand,
)
from ambermq.engine.compaction.commit import Compactor
from ambermq.engine.config import EngineConfig
from ambermq.engine.decide.context import DecisionContext
from ambermq.engine.decide.decide import DECIDE, refused, started
from ambermq.engine.dispatch.demand import Demand, Want
from ambermq.engine.dispatch.dispatch import dispatch
from ambermq.engine.dispatch.large_message import assemble
from ambermq.engine.dispatch.message_peek import MessagePeek
from ambermq.engine.dispatch.selector_scan import SelectorScan
from ambermq.engine.effects import CommandFailed, ConsumerEnded, ConsumerReady, Effect, ProducersEnded, Unfinished
from ambermq.engine.errors import Refused
from ambermq.engine.events import Event, Lost, Published, Settled
from ambermq.engine.fold.apply import APPLY
from ambermq.engine.fold.lost_entries import damage_of
from ambermq.engine.fold.wide_fanout import WideFanout
from ambermq.engine.history.replay import Replay
from ambermq.engine.loop.command_queue import CommandQueue
from ambermq.engine.loop.effect_release import EffectRelease
from ambermq.engine.loop.pending_effects import PendingEffects
from ambermq.engine.loop.schedule import Schedule
from ambermq.engine.model.entry import Entry
from ambermq.engine.model.entry_word import pack_words
from ambermq.engine.model.outcome import OutcomeKind
from ambermq.engine.model.state import State
from ambermq.engine.records.writer import WRITE
from ambermq.engine.routing.router import WIRING, FieldsOf, Router, no_fields
from ambermq.engine.snapshots.snapshotter import Snapshotter
from ambermq.log.buffer import Buffer
from ambermq.log.read.body_store import DAMAGED
from ambermq.log.write.body_holds import BodyHold
from ambermq.log.write.log import Log

__all__ = ["DurableLoop"]

_GIVES_BACK: Final = (OutcomeKind.RELEASED, OutcomeKind.MODIFIED)


@final
class DurableLoop:
    """The engine of one virtual host over its log; one thread calls it."""

    def __init__(self, log: Log, state: State, config: EngineConfig, fields_of: FieldsOf = no_fields) -> None:
        """`fields_of` reads out of a message what muxers match."""
        self.state = state
        self.router = Router(fields_of, cached_max=config.routes_cached_max)
        self.demand = Demand()
        self.config = config
        self.log = log
        self.failure: Exception | None = None
        """What has ended the loop, if anything has."""
        self.snapshots = Snapshotter(log, config)
        self._compactor = Compactor(log)
        self._has_jobs = False
        self._waiting = PendingEffects(self.demand)
        self.schedule = Schedule(config, dirty=self.demand.dirty, line=self._waiting.line)
        """When it is to be stepped."""
        self._gathered = CommandQueue(config, self.schedule, batch_bytes_max=log.config.batch_bytes_max)
        self._leaving = EffectRelease(log.bodies, self.demand, self.submit)
        self._peek = MessagePeek(log, fields_of, self.submit).at
        self.publish = self._gathered.publish
        """As `submit`, for messages."""
        self.settle = self._gathered.settle
        """As `submit`, for settlements."""

    def start(self, now_us: int, lost: Sequence[tuple[int, int]] = ()) -> None:
        """Log that the broker started, and wait until that is durable; call once, before serving.

        `lost` are ranges of offsets, first and end, that a repair has given up since the last start: messages on queues
        that lie in them are set aside.
        """
        event_us = max(now_us, self.state.time_us)
        for first, end in lost:
            self._happened(Lost(self.log.draft.next_offset, event_us, first, end))
            self.log.draft.end_part()
        log = self.log
        moment = DecisionContext(
            event_us, log.draft.next_offset, log.room_bytes(), self.config, self.router, log.config.batch_bytes_max
        )
        for event in started(self.state, moment):
            self._happened(event)
            # Cut between two parts, the next start does the rest.
            self.log.draft.end_part()
        self.log.draft.end_command()
        for damage in damage_of(self.state, lost, next_offset=self.log.draft.next_offset, time_us=event_us):
            self._happened(damage)
            self.log.draft.end_command()
        self.router.prepare(self.state)
        self.log.write(now_us)
        self.log.request_sync()
        news = poll()
        news.register(self.log.fileno(), POLLIN)
        while self.log.durable_end < self.log.log_end:
            news.poll()
            self.log.completed()
        self.schedule.logged(now_us, self.log)

    def submit(self, command: Command) -> None:
        """Gather a command for the next tick; it joins the one before it where both are parts of one run."""
        gathered = self._gathered
        if type(command) is Settle:
            gathered.settle(command)
        elif type(command) is Publish:
            gathered.publish(command)
        elif type(command) is DetachConsumer:
            # Now, not when it is decided: a sync that ends until then would let go what nobody takes any more.
            command.unsent += self._take_back(command.consumer)
            gathered.add(command)
        elif isinstance(command, SnapshotCommand):
            gathered.hurry()
            self.snapshots.submit(command)
        elif isinstance(command, CompactionCommand):
            gathered.hurry()
            self._has_jobs = True
            self._compactor.submit(command)
        else:
            gathered.add(command)

    def hurry(self) -> None:
        """Put off nothing: the next step writes all that was gathered, and asks for its sync."""
        self._gathered.hurry()
        self.schedule.hurry()

    @property
    def is_waiting(self) -> bool:
        """Whether something has not left yet, or is not on disk yet."""
        log = self.log
        unwritten = self._gathered or log.draft.record_count
        return bool(self._waiting.line or self._leaving.lines or unwritten) or log.durable_end < log.log_end

    def fileno(self) -> int:
        """Return the file descriptor that is readable when completed() has something to take."""
        return self.log.fileno()

    def step(self, now_us: int) -> list[Effect]:
        """End the tick: decide everything gathered, dispatch, write. Return the effects that may leave.

        Raises LogFailed when the log cannot be written, and whatever else made `failure`: nothing may be promised any
        more.
        """
        if self.failure:
            raise self.failure
        try:
            gathered, log, schedule = self._gathered, self.log, self.schedule
            effects: list[Effect] = []
            event_us = max(now_us, self.state.time_us)
            if schedule.has_urgent or schedule.has_lazy:
                effects = self._decide_all(event_us, gathered.take(now_us))
            if self.demand.dirty and not (gathered.rest and type(gathered.rest[0]) is WideFanout):
                dealt = dispatch(self.state, self.demand, event_us, log.draft.next_offset, self.config, self._peek)
                for event in dealt.events:
                    offset = WRITE[type(event)](log.draft, event)
                    log.draft.end_command()
                    assert offset == event.offset, (offset, event)
                self.state = dealt.state
                effects += dealt.effects
            snapshots = self.snapshots
            may_snapshot = now_us >= snapshots.next_us or log.written_bytes >= snapshots.next_bytes
            takes_snapshot = may_snapshot and snapshots.is_due(now_us)
            is_write_due = now_us >= schedule.write_by_us or log.draft.byte_count >= self.config.tick_bytes_max
            if (effects or takes_snapshot or is_write_due) and log.write(now_us) and self.demand.parked:
                self.demand.unpark()
            if takes_snapshot:
                effects += snapshots.step(self.state, now_us)
                self._has_jobs = True
            ready = self._waiting.add(effects, log.log_end, log.durable_end) if effects else effects
            is_sync_due = len(ready) < len(effects) or now_us >= schedule.sync_by_us
            if is_sync_due or (now_us >= schedule.mark_by_us and log.write_mark(now_us)):
                log.request_sync()
            schedule.logged(now_us, log)
            return self._leaving.release(ready) if ready else ready
        except Exception as error:
            self._failed(error)
            raise

    def sync_or_mark(self, now_us: int) -> list[Effect]:
        """Ask for the sync that is due, or write the mark that is due. Return no effects, and raise as `step` does."""
        if self.failure:
            raise self.failure
        try:
            log, schedule = self.log, self.schedule
            if now_us >= schedule.sync_by_us or (now_us >= schedule.mark_by_us and log.write_mark(now_us)):
                log.request_sync()
            schedule.logged(now_us, log)
        except Exception as error:
            self._failed(error)
            raise
        return []

    def completed(self, now_us: int) -> list[Effect]:
        """Take what the log has finished; return the effects that no longer wait.

        Raises LogFailed when a sync failed, and whatever else made `failure`.
        """
        if self.failure:
            raise self.failure
        try:
            log, leaving, waiting = self.log, self._leaving, self._waiting
            log.completed()
            thawed = leaving.thaw() if leaving.lines else []
            if self.demand.parked:
                self.demand.unpark()
            ready = waiting.release(log.durable_end) if waiting.line or waiting.volatile.ends else []
            if waiting.line:
                log.request_sync()
            if self._has_jobs:
                ready += self._go_on_with_jobs(now_us)
            self.schedule.logged(now_us, log)
            leaves = leaving.release(ready) if ready else ready
            return thawed + leaves if thawed else leaves
        except Exception as error:
            self._failed(error)
            raise

    def _go_on_with_jobs(self, now_us: int) -> list[Effect]:
        """Go on with snapshots, and with what compactions ask for; return the answers."""
        answers, record = self._compactor.completed(now_us)
        if record is not None:
            self.submit(record)
        answers += self.snapshots.completed(now_us)
        self._has_jobs = self._compactor.is_busy or self.snapshots.is_busy
        return answers

    def _failed(self, error: Exception) -> None:
        self.failure = error
        self.log.fail(error)

    def set_credit(self, consumer: int, credit: int, *, draining: bool = False) -> None:
        """Say how many more deliveries a consumer can take now; replaces what was said before."""
        want = self.demand.wants.get(consumer)
        if want is not None:
            # What is held for it leaves first.
            want.credit, want.draining = max(credit - want.held_count, 0), draining
            queue = self.state.queues.get(want.queue)
            if draining or (credit and queue is not None and (queue.ready.count or queue.returned.count)):
                self.demand.dirty[want.queue] = None

    @property
    def durable_end(self) -> int:
        """The offset after everything that is durable."""
        return self.log.durable_end

    def hold(self) -> BodyHold:
        """Let every message that is in the log now be read until the hold is released, compacted meanwhile or not."""
        return self.log.hold_bodies()

    def replay(self, first: int) -> Replay:
        """Return what reads events again beside the loop, the durable ones from offset `first` on."""
        return Replay(self.log.tail_reader(first), self.log.manifest.horizon)

    def messages(self, words: Sequence[int], entries: Sequence[Entry | None] | None) -> list[Buffer | None] | None:
        """Return messages for who takes nothing: None each where one is damaged, None where one must be read first.

        `entries` are their columns, None where none has any. What must be read is asked for: ask again right after
        `completed()`.
        """
        bodies = assemble(self.log.bodies, words, entries or (None,) * len(words))
        return None if bodies is None else [None if body is DAMAGED else body for body in bodies]

    def _decide_all(self, now_us: int, commands: deque[Command | WideFanout]) -> list[Effect]:
        """Decide and apply commands, as many as a tick takes; return the effects. The rest goes back to the queue."""
        effects: list[Effect] = []
        log, config, draft = self.log, self.config, self.log.draft
        changes_left = changes_max = config.tick_changes_max
        room_bytes: int | None = None
        while commands and changes_left > 0:
            command = commands.popleft()
            if type(command) is WideFanout:
                if not self._fan_out(command, changes_left):
                    commands.appendleft(command)
                    break
                # Dealing has its turn before the next of them.
                changes_left = 0
                command, events, answers = command.command, command.events, command.answers
            else:
                if type(command) is DetachConsumer:
                    changes_left -= self._coming_back(command.consumer)
                if room_bytes is None and type(command) is not Settle:
                    room_bytes = log.room_bytes()
                left = (room_bytes or 0) - draft.byte_count
                moment = DecisionContext(
                    now_us, draft.next_offset, left, config, self.router, log.config.batch_bytes_max
                )
                try:
                    events, answers = DECIDE[type(command)](self.state, command, moment)
                except Refused as refusal:
                    events, answers = refused(command, refusal)
                except Exception as error:  # noqa: BLE001 - our mistake, whatever it is, costs one connection and nothing else
                    events, answers = [], [CommandFailed(command, error)]
            stands_alone = type(command) is Publish
            for index, event in enumerate(events):
                changes = len(event.queues) if type(event) is Published else 1
                if changes > changes_max:
                    commands.appendleft(WideFanout(command, event, events[index + 1 :], answers))
                    answers = []
                    break
                self._happened(event)
                changes_left -= changes
                if stands_alone:
                    # As messages do, and a large one is more than a batch may hold.
                    draft.end_command()
                elif event is not events[-1]:
                    # So may be what deletes a muxer with all its attachments.
                    draft.end_part()
            if events and not stands_alone:
                draft.end_command()
            if answers and (not stands_alone or type(answers[-1]) is Unfinished):
                changes_left -= self._heed(command, answers, commands)
            effects += answers
        if commands:
            self._gathered.give_back(commands)
        return effects

    def _fan_out(self, fanout: WideFanout, changes_left: int) -> bool:
        """Go on with a message for very many queues; return whether all are reached."""
        after = fanout.go_on(self.state, changes_left)
        if after is None:
            return False
        self._happened(fanout.event, after)
        self.log.draft.end_command()
        return True

    def _heed(self, command: Command, answers: list[Effect], commands: deque[Command | WideFanout]) -> int:
        """Update the demand after a command, and put its rest back; return the changes beyond its events."""
        changes = 0
        for effect in answers:
            if type(effect) is ConsumerReady and type(command) is AttachConsumer:
                consumer = self.state.consumers[effect.consumer]
                scan = None if effect.selector is None else SelectorScan(effect.selector)
                self.demand.add(Want(effect.consumer, consumer.queue, command.key, command.settled, scan=scan))
            elif type(effect) is ConsumerEnded:
                self._take_back(effect.consumer)
                changes += 1
            elif type(effect) is ProducersEnded:
                changes += len(effect.producers)
        if type(last := answers[-1]) is Unfinished:
            commands.appendleft(last.command)
            del answers[-1]
            if type(command) is not Publish:
                # A part is what a tick takes, whatever its events come to.
                changes = self.config.tick_changes_max
        return changes

    def _coming_back(self, consumer: int) -> int:
        """Return how many messages come back where a consumer goes: each is a change, and the others may have it."""
        known = self.state.consumers.get(consumer)
        queue = None if known is None else self.state.queues.get(known.queue)
        if queue is None:
            return 0
        # Once more: the tick in which its wishes were forgotten may be over, and the queue dealt from without these.
        self.demand.touch(queue.id)
        return queue.held_by(consumer).count

    def _happened(self, event: Event, after: State | None = None) -> None:
        """Let an event be; `after` is the state after it, where that is known."""
        offset = WRITE[type(event)](self.log.draft, event)
        assert offset == event.offset, (offset, event)
        self.state = APPLY[type(event)](self.state, event) if after is None else after
        if type(event) is Published:
            if not event.durable:
                self._waiting.volatile.add(offset, len(event.bodies))
            for queue in event.queues:
                self.demand.touch(queue)
        elif type(event) is Settled:
            if event.outcome.kind in _GIVES_BACK:
                self.demand.touch(event.queue)
        elif isinstance(event, WIRING):
            self.router.apply_event(event, self.state)

    def _take_back(self, consumer: int) -> bytes:
        """Forget a consumer's wishes; return the words that were dealt to it and have not left."""
        want = self.demand.remove(consumer)
        self._leaving.forget(consumer)
        if want is None:
            return b""
        words: list[int] = []
        for effect in want.held:
            effect.cancelled = True
            if not effect.settled:
                words += effect.words
        # What it held comes back, sent or not: the others may have it at once.
        self.demand.touch(want.queue)
        return pack_words(words) if words else b""
