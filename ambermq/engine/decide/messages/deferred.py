"""The decisions on deliveries that a request names.

Rule 1. A message is deferred if a consumer has returned it as undeliverable-here, and it waits.
Rule 2. A request is done wholly, or it is refused.
Rule 3. A delivery that another consumer holds than a request may name is as one that is not held: nothing tells of it.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from ambermq.engine.commands import SettleNamed, TakeDeferred
from ambermq.engine.decide.context import Decision, DecisionContext
from ambermq.engine.decide.end_nodes import with_queue_end
from ambermq.engine.decide.outcome_room import limit_outcomes
from ambermq.engine.decide.wiring import existing_queue
from ambermq.engine.effects import Answered
from ambermq.engine.entries.entry import PLAIN
from ambermq.engine.entries.entry_word import pack_words, unpack_words
from ambermq.engine.entries.outcome import ACCEPTED
from ambermq.engine.errors import Refused
from ambermq.engine.events import Acquired, Event, Settled
from ambermq.engine.model.deferred_word import deferred_word
from ambermq.engine.model.queue import Queue
from ambermq.engine.model.state import State

__all__ = ["DEFERRED_DECISIONS", "holders_of"]


def holders_of(
    queue: Queue, deliveries: Sequence[tuple[int, int]], consumers: frozenset[int] | None = None
) -> list[tuple[int, bytes]]:
    """Return consumers with the packed words that they hold of deliveries, each a word and its attempt.

    Raises Refused if one of them is not held in that attempt, by one of `consumers` if they are given.
    """
    attempts = dict(deliveries)
    wanted, found, count = pack_words(list(attempts)), list[tuple[int, bytes]](), 0
    for consumer, held in queue.acquired.items():
        if consumers is not None and consumer not in consumers:
            continue
        words = [word for word in unpack_words(held.remove(wanted)[0]) if _attempt_of(queue, word) == attempts[word]]
        if words:
            found.append((consumer, pack_words(words)))
            count += len(words)
    if count < len(attempts):
        why = f"{len(attempts) - count} of {len(attempts)} deliveries are not held any more"
        raise Refused("amqp:precondition-failed", why)
    return found


def _attempt_of(queue: Queue, word: int) -> int:
    return queue.entries.get(word >> 16, PLAIN).attempt


def _take_deferred(state: State, command: TakeDeferred, context: DecisionContext) -> Decision:
    consumer = state.consumers.get(command.consumer)
    queue = None if consumer is None else state.queues.get(consumer.queue)
    if queue is None:
        raise Refused("amqp:not-found", "the receiver has no queue any more")
    settings = queue.settings
    is_first = min(state.receivers.get(queue.id, ()), default=0) == command.consumer
    if settings.paused or (settings.exclusive and not is_first):
        why = "paused" if settings.paused else "exclusive, and another consumer is the active one"
        raise Refused("amqp:not-allowed", f"queue {queue.name!r:.80} is {why}")
    elapsed_us = state.elapsed_us(context.now_us)
    words = [deferred_word(queue, offset, elapsed_us) for offset in dict.fromkeys(command.offsets)]
    if missing := words.count(0):
        raise Refused("amqp:not-found", f"{missing} of {len(words)} messages are not deferred")
    packed = pack_words(sorted(words))
    events: list[Event] = [Acquired(context.next_offset, context.now_us, queue.id, (command.consumer,), packed)]
    if command.settles:
        settled = Settled(context.next_offset + 1, context.now_us, queue.id, command.consumer, ACCEPTED, packed)
        events.append(settled)
    lock_ms = 0 if command.settles else queue.settings.lock_ms
    until_ms = context.now_us // 1000 + lock_ms if lock_ms else 0
    answer = command.read(words, [queue.entries.get(word >> 16) for word in words], until_ms)
    return with_queue_end(state, events, queue, context, [Answered(command.key, answer)])


def _settle_named(state: State, command: SettleNamed, context: DecisionContext) -> Decision:
    queue = existing_queue(state, command.queue, context.config)
    events: list[Event] = []
    for consumer, words in holders_of(queue, command.deliveries, command.consumers):
        offset = context.next_offset + len(events)
        events.append(Settled(offset, context.now_us, queue.id, consumer, command.outcome, words))
    limit_outcomes(state, events, context.config)
    return with_queue_end(state, events, queue, context, [Answered(command.key, {})])


DEFERRED_DECISIONS: Final[dict[type, Callable[[State, Any, DecisionContext], Decision]]] = {
    TakeDeferred: _take_deferred,
    SettleNamed: _settle_named,
}
