"""The admission of a run to its queues: what each queue has room for decides how much of the run is stored.

Rule 1. A message goes to all its queues or to none. So the queue with the least room decides: the messages before the
        first one without room are stored, that one is rejected, and the rest is decided next.
Rule 2. A queue whose policy makes room removes its oldest messages in the same decision. If its dead-letter target
        takes no more, the message is rejected.
Rule 3. What this decision has added, and what open transactions keep, has taken its room already.
Rule 4. For very many queues the fan-out in parts looks for a queue without room (wide_fanout.py).
"""

from collections.abc import Sequence
from typing import Final

from ambermq.engine.commands import Publish
from ambermq.engine.decide.context import Decision, DecisionContext
from ambermq.engine.decide.end_nodes import context_after
from ambermq.engine.decide.messages.additions import due_us_of
from ambermq.engine.decide.messages.blocking import holds_back
from ambermq.engine.decide.messages.dead_letters import fate_of
from ambermq.engine.decide.messages.last_values import NO_KEYS, keys_of_run, room_of_replaced
from ambermq.engine.decide.messages.overflow import (
    NOTHING_ADDED,
    Added,
    bytes_room,
    capacity,
    displaced,
    fullness_text,
    makes_enough,
    refused_count,
    size_of_run,
)
from ambermq.engine.decide.messages.room.outcomes import rejected, take_unfinished
from ambermq.engine.decide.messages.stored import event_messages_max, head_bytes, stored
from ambermq.engine.decide.messages.transactions import posted
from ambermq.engine.effects import Unfinished
from ambermq.engine.entries.discard_reason import DiscardReason, MoveReason
from ambermq.engine.entries.entry_word import WORD_BYTES, size_code, size_of
from ambermq.engine.events import Discarded, Event
from ambermq.engine.model.queue import Queue
from ambermq.engine.model.queue_parts.levels import count_of
from ambermq.engine.model.state import State
from ambermq.engine.settings.queue_settings import DEAD_LETTER, DROP_HEAD, Settings
from ambermq.engine.time_budget import MatchUnfinished
from ambermq.log.config import BATCH_OVERHEAD_BYTES
from ambermq.log.format.record import RECORD

__all__ = ["count_max", "is_checked_later", "to_queues"]

_RECORD_BYTES: Final = RECORD.size
_CHECKED_MAX: Final = 10_000
"""The maximum of queues whose room a decision looks at, at up to 0.4 us each."""


def to_queues(
    state: State,
    command: Publish,
    queues: tuple[int, ...],
    context: DecisionContext,
    added: Added = NOTHING_ADDED,
) -> Decision:
    """Return the decision for a run to queues, by their maxima; `added` are messages not in `state`.

    It may end with Unfinished.
    """
    count = len(command.bodies)
    size = command.size + count * (_RECORD_BYTES + WORD_BYTES * len(queues))
    if command.upload is not None:
        size -= command.upload.size
    if len(queues) > 1 and len(queues) > (queues_max := _queues_max(command, context)):
        why = f"it would reach {len(queues)} queues: at most {queues_max} (message_queues_max)"
        return [], [rejected(command, "amqp:resource-limit-exceeded", why)]
    if context.room_bytes < size:
        why = "the broker has no room left on its disk"
        if context.room_keeper:
            why += f": the snapshot {context.room_keeper!r} keeps the history"
        return [], [rejected(command, "amqp:resource-limit-exceeded", why)]
    config = context.config
    # The first queue with the least room, if a queue has no room for all of the messages.
    fullest, room, held, yielding = None, count, added, list[Queue]()
    reserved, in_transaction = context.reserved, command.transaction is not None
    checked, is_wide, is_keyed = queues, False, False
    if len(queues) > _CHECKED_MAX and is_checked_later(queues, context):
        checked, is_wide = (context.full_queue,) if context.full_queue else (), True
        is_keyed = True
    for queue_id in checked:
        queue = state.queues[queue_id]
        # This is `queue.waiting` written out, because it runs once per message and queue.
        settings, known = queue.settings, added
        left = (settings.messages_max or config.queue_messages_max) - queue.ready.count - queue.returned.count
        left -= queue.aside.count + queue.delayed.count + queue.scheduled.count
        if queue.levels:
            left -= count_of(queue.levels)
        if added is not NOTHING_ADDED:
            left -= added.counts.get(queue_id, 0)
        if reserved is not None and queue_id in reserved.counts:
            known = added.with_reserved(queue_id, reserved)
            left -= reserved.counts[queue_id]
        if settings.message_bytes_max and (large := _first_large(command.sizes, settings.message_bytes_max)) < count:
            return _without_large(state, command, context, queues, added, queue, large)
        if settings.bytes_max:
            left = min(left, bytes_room(queue, command, known))
        if settings.last_value:
            is_keyed = True
            if left < count and not in_transaction and not is_wide:
                # A message that replaces a waiting one needs no room: each is looked at alone, in the present state.
                if count > 1:
                    return _first_alone(state, command, queues, context, added)
                if queue_id in added.counts:
                    return [], [Unfinished(command)]
                left = max(left, _room_with_replaced(queue, command, context, left))
        if left < count and not is_wide and _makes_room(settings, in_transaction=in_transaction):
            if in_transaction and (fits := _fitting(queue, command)) < room:
                fullest, room, held = queue, fits, known
            yielding.append(queue)
        elif left < room and (is_wide or not holds_back(state, command, queue)):
            fullest, room, held = queue, max(0, left), known
        elif left < count and settings.bytes_max and (large := _fitting(queue, command)) < count:
            return _without_large(state, command, context, queues, added, queue, large)
    if fullest is not None:
        return _in_part(state, command, context, queues, added, fullest, room, held)
    keys = keys_of_run(state, command, queues, context) if is_keyed else NO_KEYS
    if in_transaction:
        return [], posted(state, command, queues, context, keys)
    if yielding:
        return _displacing(state, command, context, queues, added, yielding)
    return stored(command, queues, context, size, keys)


def _room_with_replaced(queue: Queue, command: Publish, context: DecisionContext, left: int) -> int:
    """Return 1 if a queue has room for a message without the one that it replaces, else 0.

    A scheduled message replaces nothing before its time.
    """
    count, size = room_of_replaced(queue, command, context)
    if not count or due_us_of(command, context.now_us, context.now_us):
        return left
    settings, kept = queue.settings, context.reserved
    waiting = queue.waiting - count + (0 if kept is None else kept.counts.get(queue.id, 0))
    size = queue.waiting_size - size + (0 if kept is None else kept.sizes.get(queue.id, 0))
    fits = not settings.bytes_max or size + size_of_run(command) <= settings.bytes_max
    return int(fits and waiting < (settings.messages_max or context.config.queue_messages_max))


def _makes_room(settings: Settings, *, in_transaction: bool) -> bool:
    """Return whether the oldest messages of a queue make room.

    A commit cannot wait for a dead-letter target, so in a transaction that policy refuses.
    """
    return settings.overflow == DROP_HEAD if in_transaction else settings.makes_room


def _fitting(queue: Queue, command: Publish) -> int:
    """Return how many messages of a run come before one that the queue could not hold if it were empty."""
    bytes_max = queue.settings.bytes_max
    if not bytes_max:
        return len(command.bodies)
    return _first_large([size_of(size_code(size)) for size in command.sizes], bytes_max)


def _first_large(sizes: Sequence[int], bytes_max: int) -> int:
    """Return the index of the first of some sizes that is larger than a limit; their number without one."""
    return next((index for index, size in enumerate(sizes) if size > bytes_max), len(sizes))


def _without_large(
    state: State,
    command: Publish,
    context: DecisionContext,
    queues: tuple[int, ...],
    added: Added,
    queue: Queue,
    large: int,
) -> Decision:
    """Return the decision that publishes the messages before one that is too large for a queue, and rejects that."""
    if large:
        first, rest = command.split(large)
        events, effects = to_queues(state, first, queues, context, added)
        left = take_unfinished(effects)
        return events, [*effects, Unfinished(command.part(large - left, len(command.bodies)) if left else rest)]
    first, rest = command.split(1)
    limit, found, name = queue.settings.message_bytes_max, first.sizes[0], "message_bytes_max"
    if not limit or found <= limit:
        limit, name = queue.settings.bytes_max, "bytes_max"
    why = f"queue {queue.name!r} takes messages of at most {limit} bytes ({name}), this has {found}"
    done = rejected(first, "amqp:link:message-size-exceeded", why)
    return [], [done, *([Unfinished(rest)] if rest.bodies else [])]


def is_checked_later(queues: tuple[int, ...], context: DecisionContext) -> bool:
    """Return whether the fan-out looks for a queue without room, and not the decision."""
    return len(queues) > max(_CHECKED_MAX, context.config.tick_changes_max)


def count_max(queues: tuple[int, ...], context: DecisionContext) -> int:
    """Return how many messages for these queues stay within the changes of a tick; at least one."""
    if is_checked_later(queues, context):
        return 1
    return event_messages_max(queues, context) * max(1, context.config.tick_changes_max // len(queues))


def _queues_max(command: Publish, context: DecisionContext) -> int:
    """Return the maximum of queues for messages.

    Half of a batch, without its overhead, is for the ids of queues and chunks; the other half is for one chunk.
    """
    named_bytes = context.batch_bytes_max // 2 - BATCH_OVERHEAD_BYTES - 2 * _RECORD_BYTES
    chunk_bytes = context.config.chunk_bytes
    if command.size > chunk_bytes:
        named_bytes -= WORD_BYTES * (max(command.sizes) // chunk_bytes)
    return min(context.config.message_queues_max, named_bytes // WORD_BYTES)


def _in_part(
    state: State,
    command: Publish,
    context: DecisionContext,
    queues: tuple[int, ...],
    added: Added,
    fullest: Queue,
    room: int,
    held: Added,
) -> Decision:
    """Return the decision that publishes the first `room` messages of a run and rejects the others.

    `held` are the messages of the fullest queue that are not in `state`.
    """
    first, rest = command.split(room)
    events, effects = to_queues(state, first, queues, context, added) if room else ([], [])
    if left := take_unfinished(effects):
        # Another queue makes room for a part of the first messages; the others come after them.
        start = len(command.bodies) - len(rest.bodies) - left
        return events, [*effects, Unfinished(command.part(start, len(command.bodies)))]
    refused, rest = rest.split(refused_count(fullest, command, room, held, context.config))
    done = rejected(refused, "amqp:resource-limit-exceeded", fullness_text(fullest, command, room, held, context))
    done.is_queue_full = True
    return events, [*effects, done, *([Unfinished(rest)] if rest.bodies else [])]


def _displacing(
    state: State,
    command: Publish,
    context: DecisionContext,
    queues: tuple[int, ...],
    added: Added,
    yielding: list[Queue],
) -> Decision:
    """Return the decision that removes the oldest messages of queues, and publishes what has room then.

    What this decision has added to a queue is not in the state, so it ends before such a queue makes room.
    """
    config = context.config
    if any(queue.id in added.counts for queue in yielding):
        return [], [Unfinished(command)]
    count = min([capacity(queue, command, config) for queue in yielding])
    if not count:
        first, rest = command.split(1)
        least = min(yielding, key=lambda queue: capacity(queue, command, config))
        why = f"the message is larger than queue {least.name!r}: bytes_max is {least.settings.bytes_max}"
        return [], [rejected(first, "amqp:resource-limit-exceeded", why), *([Unfinished(rest)] if rest.bodies else [])]
    first, rest = command.split(count)
    events: list[Event] = []
    after, together = context, Added(dict(added.counts), dict(added.sizes))
    for queue_id in queues:
        together.add(queue_id, count, size_of_run(first))
    kept = context.reserved
    for queue in yielding:
        # What open transactions keep is not for this run.
        needed = count + (0 if kept is None else kept.counts.get(queue.id, 0))
        size = size_of_run(first) + (0 if kept is None else kept.sizes.get(queue.id, 0))
        words = displaced(queue, needed, size, config)
        is_whole = len(words) < WORD_BYTES * config.dispatch_messages_max
        if is_whole and not makes_enough(queue, words, needed, size, config):
            return _unmoved(command, queue) if count == 1 else _first_alone(state, command, queues, context, added)
        if words and queue.settings.overflow == DEAD_LETTER:
            moves, left, is_reading = fate_of(state, queue, words, MoveReason.LENGTH, after, together)
            if is_reading:
                # The next tick decides it again, when they are read.
                raise MatchUnfinished
            if left:
                return _unmoved(command, queue) if count == 1 else _first_alone(state, command, queues, context, added)
            events += moves
        elif words:
            events.append(Discarded(after.next_offset, context.now_us, queue.id, DiscardReason.LENGTH, words))
        after = context_after(context, events)
        if not is_whole:
            # There may be more to remove.
            return events, [Unfinished(command)]
    keys = keys_of_run(state, first, queues, context)
    events_of_run, effects = stored(first, queues, after, first.size + count * head_bytes(queues), keys)
    return [*events, *events_of_run], [*effects, *([Unfinished(rest)] if rest.bodies else [])]


def _first_alone(
    state: State, command: Publish, queues: tuple[int, ...], context: DecisionContext, added: Added
) -> Decision:
    """Return the decision on the first message of a run; the others are decided next."""
    first, rest = command.split(1)
    events, effects = to_queues(state, first, queues, context, added)
    return events, [*effects, Unfinished(command if take_unfinished(effects) else rest)]


def _unmoved(command: Publish, queue: Queue) -> Decision:
    """Return the decision that refuses the first message of a run, because the dead-letter target takes no more."""
    first, rest = command.split(1)
    why = f"queue {queue.name!r} is full, and its dead-letter target {queue.settings.dead_letter!r} takes no more now"
    done = rejected(first, "amqp:resource-limit-exceeded", why)
    done.is_queue_full = True
    return [], [done, *([Unfinished(rest)] if rest.bodies else [])]
