"""The decisions of the loop: commands are decided, logged and applied, and the demand of consumers follows them.

Rule 1. A command that is decided in parts keeps its place: no other command comes between its parts.
Rule 2. What queues give up is decided right after the command that caused it.
"""

from collections import deque
from collections.abc import Callable
from typing import Final

from ambermq.engine.address import queue_name
from ambermq.engine.commands import (
    AttachConsumer,
    BeginTransaction,
    Command,
    CutThrough,
    DeclareQueue,
    DetachConsumer,
    Discharge,
    EditMessages,
    EndUpload,
    GiveUp,
    Inspect,
    NoteBrowser,
    Publish,
    RenewLocks,
    ScheduleMessages,
    Settle,
    StoreChunk,
    Transaction,
)
from ambermq.engine.config import EngineConfig
from ambermq.engine.decide.context import Decision, DecisionContext
from ambermq.engine.decide.decide import DECIDE, refused
from ambermq.engine.decide.messages.deferred import holders_of
from ambermq.engine.decide.messages.uploads import complete_cut_through
from ambermq.engine.decide.wiring import existing_queue
from ambermq.engine.dispatch.cut_through import begin_cut_through
from ambermq.engine.dispatch.demand import Want
from ambermq.engine.dispatch.message_peek import MessagePeek
from ambermq.engine.dispatch.selector_scan import SelectorScan
from ambermq.engine.dispatch.token_bucket import TokenBucket
from ambermq.engine.effects import (
    Answered,
    CommandFailed,
    ConsumerEnded,
    ConsumerReady,
    CutThroughEnded,
    Deliver,
    Effect,
    Posted,
    ProducersEnded,
    PublishDone,
    Unfinished,
)
from ambermq.engine.entries.entry_word import WORD_BYTES, pack_words, unpack_words
from ambermq.engine.entries.outcome import OutcomeKind
from ambermq.engine.entries.priority import PRIORITY_DEFAULT
from ambermq.engine.errors import Refused
from ambermq.engine.events import Committed, Event, Published, UploadEnded
from ambermq.engine.fold.wide_fanout import WideFanout
from ambermq.engine.loop.command_queue import CommandQueue
from ambermq.engine.loop.effect_release import EffectRelease
from ambermq.engine.loop.logged_state import LoggedState
from ambermq.engine.loop.schedule import Schedule
from ambermq.engine.loop.tick_work import EXPIRY_CHANGES, HIDDEN_WORK, MARK_CHANGES, hidden_work
from ambermq.engine.model.state import State
from ambermq.engine.routing.router import FieldsOf, Router
from ambermq.engine.time_budget import MatchUnfinished, TimeBudget
from ambermq.engine.transactions.open_transactions import OpenTransactions
from ambermq.log.write.log import Log

__all__ = ["DecidedState"]

_TOO_MUCH: Final = "amqp:resource-limit-exceeded"
_HOT_CHUNKS: Final = 4
"""The newest chunks of an arriving message that stay in memory for a quick delivery."""
_WHOLE: Final = frozenset({EditMessages, ScheduleMessages})
"""The commands whose events are in one batch."""
_USES: Final = frozenset({DeclareQueue, Inspect, NoteBrowser})
"""The commands that may use a queue and leave no event."""


class DecidedState(LoggedState):
    """The state of one virtual host with its commands. The timed state extends it."""

    def __init__(
        self, log: Log, state: State, config: EngineConfig, fields_of: FieldsOf, clock_ns: Callable[[], int]
    ) -> None:
        """Begin with `state`, the fold of `log`; the durable loop explains the others."""
        self.matching = TimeBudget(clock_ns, duration_us=config.matching_us_max)
        """The time for matching, in a tick and in a turn of the browsing links."""
        router = Router(
            fields_of,
            cached_max=config.routes_cached_max,
            budget=self.matching,
            selectors_max=config.selectors_per_message_max,
        )
        super().__init__(log, state, config, router)
        self.transactions = OpenTransactions(config, batch_bytes_max=log.config.batch_bytes_max)
        """The open transactions."""
        self.room_keeper = ""
        """The requested snapshot that keeps history on a full disk, for refusals; the owner of the loop sets it."""
        self.change_count = 0
        """The changes since the driver has set it to 0. Each may have made objects that garbage collection visits."""
        self.schedule = Schedule(config, dirty=self.demand.dirty, queue=self._pending.queue)
        """When the driver steps the loop."""
        self._command_queue = CommandQueue(config, self.schedule, batch_bytes_max=log.config.batch_bytes_max)
        self._release = EffectRelease(log.bodies, self.demand, self.submit)
        self._fields_of = fields_of
        reader = MessagePeek(log, fields_of, self.submit)
        self._peek, self._read = reader.at, reader.whole
        self._expired_locks: list[Effect] = []
        """The locks that have expired in this tick."""

    def submit(self, command: Command) -> None:
        """Queue a command for the next tick."""
        self._command_queue.add(command)

    @property
    def _is_fanning_out(self) -> bool:
        """Whether a message for very many queues has reached some of them: nothing else may be decided."""
        rest = self._command_queue.rest
        return bool(rest) and type(rest[0]) is WideFanout

    def _decide_all(self, now_us: int, commands: deque[Command | WideFanout]) -> list[Effect]:
        """Decide and apply commands, as many as a tick takes; return the effects. The rest goes back to the queue."""
        effects: list[Effect] = []
        log, config, draft = self.log, self.config, self.log.draft
        changes_left = config.tick_changes_max
        room_bytes: int | None = None
        self.matching.end_ns = None
        while commands and changes_left > 0:
            queued = command = commands.popleft()
            full_queue = 0
            if type(command) is WideFanout and command.full_queue:
                command, full_queue = command.command, command.full_queue
            if type(command) is WideFanout:
                if not self._fan_out(command, changes_left, commands):
                    break
                # A dispatch comes before the next part.
                changes_left = 0
                command, events, answers = command.command, command.events, command.answers
            elif type(command) is BeginTransaction:
                self.transactions.begin(command.transaction, now_us - self.state.stepped_us)
                continue
            elif type(command) is RenewLocks:
                effects += self._renew_locks(command, now_us)
                changes_left -= 1 + len(command.deliveries)
                continue
            else:
                if type(command) is DetachConsumer:
                    changes_left -= self._returned_count(command.consumer)
                if room_bytes is None and type(command) is not Settle:
                    room_bytes = log.room_bytes()
                left = (room_bytes or 0) - draft.byte_count
                moment = DecisionContext(
                    now_us,
                    draft.next_offset,
                    left,
                    config,
                    self.router,
                    log.config.batch_bytes_max,
                    self.room_keeper,
                    full_queue,
                    self._peek,
                    self.transactions.kept,
                    self._read,
                )
                try:
                    events, answers = DECIDE[type(command)](self.state, command, moment)
                except MatchUnfinished:
                    # The router goes on in the next tick; no other command may come before this one.
                    commands.appendleft(queued)
                    break
                except Exception as error:  # noqa: BLE001 - a bug ends one connection and nothing else
                    events, answers = _failure(command, error)
            is_publish = is_whole = False
            if type(command) is Publish:
                is_publish = True
                if command.ttl_ms or command.expires_ms:
                    changes_left -= EXPIRY_CHANGES
                if command.priority != PRIORITY_DEFAULT or command.time_ms or command.delay_ms:
                    changes_left -= MARK_CHANGES
                if command.transaction is not None:
                    answers = self._hold(command.transaction, answers)
                if command.upload is not None:
                    self._close_upload(command, events, answers, now_us)
                    if command.upload.cut_through is not None and type(answers[-1]) is not Unfinished:
                        self._complete(command.upload.cut_through, events, answers, now_us)
            elif type(command) is Discharge:
                is_whole = bool(events) and type(events[-1]) is Committed
                self.transactions.end(command.transaction)
            elif type(command) is StoreChunk and not events:
                command.upload.is_refused |= not command.upload.is_ended
            elif type(command) is StoreChunk:
                command.upload.add(events[0].offset, len(command.piece))
                log.bodies.forget(command.upload.chunks[-1 - _HOT_CHUNKS : -_HOT_CHUNKS])
                if command.upload.may_cut_through and command.upload.cut_through is None:
                    self._begin_cut_through(command, answers, now_us)
            elif type(command) is EndUpload and command.upload.cut_through is not None:
                self._complete(command.upload.cut_through, [], answers, now_us)
            elif type(command) in _WHOLE:
                is_whole = True
            changes, wide = self._log_and_apply(events, ends_each=is_publish, is_whole=is_whole)
            changes_left -= changes
            if type(command) in HIDDEN_WORK:
                changes_left -= hidden_work(command)
            if type(command) in _USES:
                self._note_use(command, now_us)
            if wide:
                commands.appendleft(WideFanout(command, *wide, answers))
                continue
            if answers and (not is_publish or type(answers[-1]) is Unfinished):
                changes_left -= self._update_demand(command, answers, commands)
            effects += answers
            if self._dead_letters.due:
                effects += self._give_up(now_us, commands)
        self.change_count += config.tick_changes_max - changes_left
        if commands:
            self._command_queue.give_back(commands)
        return effects

    def _close_upload(self, command: Publish, events: list[Event], answers: list[Effect], now_us: int) -> None:
        """Add the end of an upload to the events, unless its message is published, posted or decided later."""
        upload = command.upload
        assert upload is not None, "the caller has checked it"
        if type(answers[-1]) is Unfinished or any(type(event) is Published for event in events):
            return
        transaction = command.transaction
        if transaction is not None and any(post.messages.upload is upload for post in transaction.posts):
            return
        if upload.id in self.state.uploads:
            events.append(UploadEnded(self.log.draft.next_offset + len(events), now_us, upload.id))

    def _begin_cut_through(self, command: StoreChunk, answers: list[Effect], now_us: int) -> None:
        """Begin the delivery of a message of which a piece is stored, if its queue and a consumer are ready for it."""
        state, producer = self.state, self.state.producers[command.producer]
        queues = self.router.plain_route(state, producer.muxer, producer.destination)
        if queues is None or len(queues) != 1 or queues[0] in state.no_locals or producer.sending.is_addressed:
            return
        queue, elapsed_us = state.queues[queues[0]], state.elapsed_us(now_us)
        begun = begin_cut_through(self.demand, queue, command.upload, self._fields_of, elapsed_us)
        if begun is not None:
            answers.append(begun)

    def _complete(self, cut_through: CutThrough, events: list[Event], answers: list[Effect], now_us: int) -> None:
        """Add to a publish what a delivery that has begun makes of it: its consumer acquires the message, or not."""
        offset = self.log.draft.next_offset
        taken, ended = complete_cut_through(cut_through, events, first_offset=offset, now_us=now_us)
        events += taken
        answers.append(ended)
        if ended.word and not cut_through.settled:
            self.demand.wants[cut_through.consumer].held.append(ended)
        self.demand.end_cut_through(cut_through)

    def _hold(self, transaction: Transaction, answers: list[Effect]) -> list[Effect]:
        """Add the messages of a decision to their transaction, and return its answers."""
        left: list[Effect] = []
        refusal = ""
        for answer in answers:
            if type(answer) is Posted:
                refusal = self.transactions.add(transaction, answer.post)
                continue
            if type(answer) is PublishDone:
                answer.transaction = transaction
                if refusal:
                    answer.kind, answer.condition = OutcomeKind.REJECTED, transaction.end or _TOO_MUCH
                    answer.description, refusal = refusal, ""
                if answer.settled and answer.kind is OutcomeKind.REJECTED:
                    transaction.doom(answer.description)
            left.append(answer)
        return left

    def _note_use(self, command: Command, now_us: int) -> None:
        """Note that a request or a browsing link uses a queue."""
        if type(command) is NoteBrowser:
            self._unused.browse(command.queue, command.count)
            queue = self.state.queues.get(command.queue)
        elif not self._unused.used_us:
            return
        elif type(command) is DeclareQueue:
            try:
                queue = self.state.queue_named(queue_name(command.name, name_bytes_max=self.config.name_bytes_max))
            except Refused:
                return
        else:
            queue = self.state.queue_named(command.queue) if type(command) is Inspect else None
        self._unused.note_use(queue, self.state.elapsed_us(now_us))

    def _give_up(self, now_us: int, commands: deque[Command | WideFanout]) -> list[Effect]:
        """Decide what becomes of the messages that their queues give up, before they are offered again."""
        effects: list[Effect] = []
        while self._dead_letters.due:
            command = self._dead_letters.take(WORD_BYTES * self.config.dispatch_messages_max)
            moment = DecisionContext(
                now_us,
                self.log.draft.next_offset,
                0,
                self.config,
                self.router,
                self.log.config.batch_bytes_max,
                peek=self._peek,
                reserved=self.transactions.kept,
            )
            events, answers = DECIDE[GiveUp](self.state, command, moment)
            self._log_and_apply(events)
            if answers:
                self._update_demand(command, answers, commands)
            effects += answers
            queue = self.state.queues.get(command.queue)
            if queue is not None and queue.aside:
                self._dead_letters.note_aside(queue.id)
        return effects

    def _renew_locks(self, command: RenewLocks, event_us: int) -> list[Effect]:
        """Renew the locks of deliveries, all or none; return the answer."""
        state = self.state
        try:
            queue = existing_queue(state, command.queue, self.config)
            lock_ms = queue.settings.lock_ms
            if not lock_ms:
                raise Refused("amqp:precondition-failed", f"queue {queue.name!r:.80} has no locks (lock_ms)")  # noqa: TRY301
            holders = holders_of(queue, command.deliveries, command.consumers)
        except Refused as refusal:
            return refused(command, refusal)[1]
        attempts = dict(command.deliveries)
        for consumer, words in holders:
            for word in unpack_words(words):
                self._locks.renew(consumer, word, attempts[word], state.elapsed_us(event_us) + 1000 * lock_ms)
        self._has_timers = True
        return [Answered(command.key, command.read(event_us // 1000 + lock_ms))]

    def _fan_out(self, fanout: WideFanout, changes_left: int, commands: deque[Command | WideFanout]) -> bool:
        """Go on with a message for very many queues; return whether all are reached, else put the rest back."""
        after = fanout.go_on(self.state, changes_left, self.config.queue_messages_max)
        for queue in fanout.part:
            self.demand.touch(queue)
        if self._unused.used_us:
            self._note_published(fanout.part, fanout.event.time_us)
        if after is None:
            commands.appendleft(fanout)
            return False
        self._discarded.add_table(self.state.queues)
        self.is_late |= bool(self._discarded.tables)
        self._log_and_apply([fanout.event], after=after)
        return True

    def _update_demand(self, command: Command, answers: list[Effect], commands: deque[Command | WideFanout]) -> int:
        """Update the demand by a command's answers, and put its rest back; return the changes beyond its events."""
        changes = 0
        for effect in answers:
            if type(effect) is ConsumerReady and effect.follows:
                # Its link reads the messages, so it has no demand.
                continue
            if type(effect) is ConsumerReady and type(command) is AttachConsumer:
                consumer = self.state.consumers[effect.consumer]
                scan = None if effect.selector is None else SelectorScan(effect.selector)
                want = Want(effect.consumer, consumer.queue, command.key, command.settled, scan=scan)
                want.may_cut_through = command.may_cut_through
                want.priority = command.priority
                if command.rate:
                    # The newest event is the attach.
                    want.rate = TokenBucket(command.rate, self.state.elapsed_us(self.state.time_us))
                    self._has_timers = True
                self.demand.add(want)
                if want.queue in self.demand.groups and self.state.queues[want.queue].settings.group_rebalance:
                    self.demand.groups[want.queue].note_attached()
                    self.demand.touch(want.queue)
                if self.state.queues[want.queue].settings.exclusive:
                    self.demand.await_active(want)
            elif type(effect) is Deliver:
                self._resend(effect)
            elif type(effect) is ConsumerEnded:
                self._withdraw(effect.consumer)
                changes += 1
            elif type(effect) is ProducersEnded:
                changes += len(effect.producers)
        if type(last := answers[-1]) is Unfinished:
            commands.appendleft(last.command)
            del answers[-1]
            if type(command) is not Publish:
                # A part ends the tick, however few events it has.
                changes = self.config.tick_changes_max
        return changes

    def _resend(self, effect: Deliver) -> None:
        """Note a delivery that a resumed link gets again, so that the end of its consumer cancels it."""
        want = self.demand.wants.get(effect.consumer)
        if want is not None:
            want.held.append(effect)
            want.held_count += len(effect.words)

    def _returned_count(self, consumer: int) -> int:
        """Return how many messages a detached consumer gives back: each is a change, and goes to other consumers."""
        known = self.state.consumers.get(consumer)
        queue = None if known is None else self.state.queues.get(known.queue)
        if queue is None:
            return 0
        # Again, since a dispatch may have run between the withdrawal and this decision.
        self.demand.touch(queue.id)
        return queue.held_by(consumer).count

    def _withdraw(self, consumer: int) -> bytes:
        """Remove a consumer's demand; return the packed words of its deliveries that have not left."""
        want = self.demand.remove(consumer)
        self._release.forget(consumer)
        if want is None:
            return b""
        if want.rate is not None:
            self._rates.forget(consumer)
        words: list[int] = []
        for effect in want.held:
            if type(effect) is CutThroughEnded:
                # Its first frames may have left, but not if the receiver's window was closed.
                words += () if effect.cut_through.is_sent else (effect.word,)
                continue
            effect.cancelled = True
            # Its peer knows a resumed one.
            if not effect.settled and not effect.is_resumed:
                words += effect.words
        want.held.clear()
        # Other consumers may get all that it held, sent or not.
        self.demand.touch(want.queue)
        if want.queue in self.demand.active:
            self.demand.check_active(want.queue)
        return pack_words(words) if words else b""


def _failure(command: Command, error: Exception) -> Decision:
    """Return the decision for a command that failed: the answer to a refusal, or the end of one connection."""
    if isinstance(error, Refused) and hasattr(command, "key"):
        return refused(command, error)
    return [], [CommandFailed(command, error)]
