"""What time does to the state: what is late, expired, due or unused is decided, or submitted as a command.

Rule 1. The moment is that of the tick, an argument. Each step does about as much as a tick takes, and leaves the rest
        to the next ones.
Rule 2. It runs between two commands. What submits commands submits no more while a command is decided in parts.
"""

from collections import deque
from collections.abc import Iterable
from typing import Final

from ambermq.engine.commands import Command, EndSuspended, EndUnusedQueue, MakeDue, Settle
from ambermq.engine.decide.context import DecisionContext
from ambermq.engine.decide.decide import DECIDE
from ambermq.engine.decide.messages.transactions import rolled_back
from ambermq.engine.effects import Deliver, Effect, LocksExpired
from ambermq.engine.entries.discard_reason import MoveReason
from ambermq.engine.entries.entry_word import pack_words
from ambermq.engine.entries.outcome import LOCK_EXPIRED
from ambermq.engine.fold.wide_fanout import WideFanout
from ambermq.engine.loop.decided_state import DecidedState
from ambermq.engine.model.queue import Queue

__all__ = ["TimedState"]

_TIMED_PART: Final = 4
"""A message whose time has come is moved or put into its place: it counts as this many deliveries."""


class TimedState(DecidedState):
    """The state of one virtual host whose timers run. The durable loop extends it."""

    def _end_late(self, now_us: int, event_us: int) -> list[Effect]:
        """Roll back transactions that are too old, and give up what is returned too often; return the effects.

        The others are rolled back in the next ticks: each may have thousands of deliveries.
        """
        effects: list[Effect] = []
        changes_left = self.config.tick_changes_max
        while changes_left > 0 and (transaction := self.transactions.take_late(now_us)) is not None:
            changes_left -= 1 + len(transaction.posts) + len(transaction.retirements)
            moment = DecisionContext(
                event_us,
                self.log.draft.next_offset,
                0,
                self.config,
                self.router,
                self.log.config.batch_bytes_max,
            )
            self._log_and_apply(rolled_back(self.state, transaction, moment))
            self.transactions.end(transaction)
            effects += self._give_up_due(event_us)
        return effects

    def _end_unused(self, event_us: int) -> None:
        """Submit the ends of queues that were unused for too long; no more while the last ones are not decided."""
        if self._command_queue.rest:
            return
        now_us = self.state.elapsed_us(event_us)
        for queue in self._unused.take(self.state, now_us, self.config.tick_changes_max):
            self._command_queue.add(EndUnusedQueue(queue, self._unused.is_unused))

    def _end_suspended(self, event_us: int) -> None:
        """Submit the ends of suspended links whose time has come; no more while the last ones are not decided."""
        if self._command_queue.rest:
            return
        for link in self._link_timers.take(self.state.elapsed_us(event_us), self.config.tick_changes_max):
            self._command_queue.add(EndSuspended(link))

    def _refill_rates(self, event_us: int) -> None:
        """Refill the rates that hold back credit, of as many consumers as a tick serves."""
        now_us = self.state.elapsed_us(event_us)
        for consumer in self._rates.take(now_us, self.config.dispatch_messages_max):
            want = self.demand.wants.get(consumer)
            if want is not None and want.rate is not None:
                want.rate.refill(now_us)
                want.grant(want.credit + want.throttled)
                self.demand.touch(want.queue)
                self._rates.watch(want)

    @property
    def _timed_max(self) -> int:
        """About how many messages whose time has come a tick takes."""
        return max(1, self.config.dispatch_messages_max // _TIMED_PART)

    def _give_up_expired(self, event_us: int) -> list[Effect]:
        """Remove messages that have expired, as many as a tick takes; return the effects."""
        now_us, find = self.state.elapsed_us(event_us), self.state.queues.get
        for queue, words in self._timers.take(now_us, self._timed_max, find):
            self._dead_letters.add(queue, pack_words(words), MoveReason.EXPIRED)
        return self._give_up_due(event_us)

    def _give_up_found(self, expired: dict[int, list[int]], event_us: int) -> list[Effect]:
        """Remove expired messages that a dispatch has found, by queue; return the effects."""
        for queue, words in expired.items():
            self._dead_letters.add(queue, pack_words(words), MoveReason.EXPIRED)
        return self._give_up_due(event_us)

    def _give_up_due(self, event_us: int) -> list[Effect]:
        """Decide what is to be given up between two commands; return the effects."""
        commands: deque[Command | WideFanout] = deque()
        effects = self._give_up(event_us, commands)
        if commands:
            self._command_queue.give_back(commands)
        return effects

    def _make_due(self, event_us: int) -> list[Effect]:
        """Make messages available whose time has come, as many as a tick takes; return the effects."""
        now_us, find, effects = self.state.elapsed_us(event_us), self.state.queues.get, list[Effect]()
        for queue, words in self._due_timers.take(now_us, self._timed_max, find):
            moment = DecisionContext(event_us, self.log.draft.next_offset, 0, self.config, self.router)
            events, answers = DECIDE[MakeDue](self.state, MakeDue(queue, words), moment)
            self._log_and_apply(events)
            effects += answers
            if self._dead_letters.due:
                effects += self._give_up_due(event_us)
        return effects

    def _start_locks(self, released: Iterable[Effect], event_us: int) -> None:
        """Begin the locks of deliveries that leave now."""
        state = self.state
        for effect in released:
            if type(effect) is not Deliver or not effect.lock_ms or effect.consumer not in state.consumers:
                continue
            queue = state.queues.get(effect.queue)
            if queue is None:
                continue
            attempts = [] if effect.entries is None else [0 if one is None else one.attempt for one in effect.entries]
            elapsed_us, lock_ms = state.elapsed_us(event_us), effect.lock_ms
            self._locks.start(queue, effect.consumer, effect.words, attempts, elapsed_us, lock_ms)
            effect.locked_until_ms = event_us // 1000 + lock_ms
            self._has_timers = True

    def _expire_locks(self, event_us: int) -> list[Effect]:
        """Return messages to their queues whose locks have expired, about as many as a tick delivers; return effects.

        Messages with an outcome that is still to be decided, or in an open transaction, keep their locks.
        """
        state, now_us = self.state, self.state.elapsed_us(event_us)
        if self._locks.next_us > now_us:
            return []
        open_ones = [one.retirements for one in self.transactions.begun if one.retirements]
        settling = self._command_queue.settling()
        count_max = max(1, self.config.dispatch_messages_max // (1 + len(open_ones) // 16))

        def queue_of(consumer: int) -> Queue | None:
            known = state.consumers.get(consumer) or state.suspended.get(consumer)
            return None if known is None else state.queues.get(known.queue)

        def keeps(consumer: int, word: int) -> bool:
            key = consumer, word
            return key in settling or any(key in one for one in open_ones)

        for consumer, words in self._locks.take(now_us, count_max, queue_of, keeps):
            moment = DecisionContext(event_us, self.log.draft.next_offset, 0, self.config, self.router)
            events, _ = DECIDE[Settle](self.state, Settle(consumer, words, LOCK_EXPIRED), moment)
            self._log_and_apply(events)
            self._expired_locks.append(LocksExpired(consumer, words))
        return self._give_up_due(event_us)

    def _try_again(self, now_us: int, event_us: int) -> list[Effect]:
        """Try the messages again that are set aside; return the effects."""
        dead_letters, left = self._dead_letters, self.config.dispatch_messages_max
        next_us = now_us + 1000 * self.config.dead_letter_retry_ms
        while left > 0 and now_us >= dead_letters.next_us:
            queue_id = dead_letters.next_untried(next_us)
            queue = None if queue_id is None else self.state.queues.get(queue_id)
            if queue is not None and queue.aside:
                left -= dead_letters.try_again(queue, left)
            elif queue_id is not None:
                dead_letters.forget(queue_id)
                left -= 1
        return self._give_up_due(event_us)
