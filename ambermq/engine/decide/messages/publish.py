"""The decision on published messages: the router gives their queues, this module their records and outcomes.

Rule 1. A run has one route if its producer has one destination and no muxer on the path compares more than that. Else
        each message has its own route, and neighbours with equal routes are one run again.
Rule 2. A message that reaches no queue is released, or gets the outcome that its producer requests. A message that a
        LOSSY muxer drops is accepted, as if a network lost it after the broker.
Rule 3. A message is stored once for all its queues; a large one in chunks. Its record names all queues, which bounds
        their number, and the number of messages in a run.
Rule 4. A run has the same result as its messages one by one. So a decision ends after it creates a queue, because the
        next message may reach that queue too. It also ends at the changes of a tick, and when the time for matching is
        over. The rest is decided next.
Rule 5. A message for very many queues is decided alone. Its fan-out in parts looks for a queue without room
        (wide_fanout.py); if there is one, the message is decided again, and rejected.
"""

from itertools import groupby
from typing import Final, NamedTuple

from msgspec.structs import replace

from ambermq.engine.address import NodeKind, parse_address
from ambermq.engine.commands import Publish
from ambermq.engine.decide.context import Decision, DecisionContext, signed
from ambermq.engine.decide.end_nodes import context_after
from ambermq.engine.decide.messages.additions import due_us_of
from ambermq.engine.decide.messages.blocking import holds_back
from ambermq.engine.decide.messages.dead_letters import fate_of
from ambermq.engine.decide.messages.duplicates import IdWindows, deduplicated, windowed
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
from ambermq.engine.decide.messages.stored import event_messages_max, head_bytes, stored
from ambermq.engine.decide.messages.transactions import posted
from ambermq.engine.decide.node_names import message_destination, muxer_id, queue_muxer, topic_muxer
from ambermq.engine.decide.wiring import check_creatable, create_queue, not_creatable
from ambermq.engine.effects import AT_CLOSE, NOW, Effect, Posted, PublishDone, Unfinished
from ambermq.engine.entries.discard_reason import DiscardReason, MoveReason
from ambermq.engine.entries.entry_word import WORD_BYTES, size_code, size_of
from ambermq.engine.entries.outcome import OutcomeKind
from ambermq.engine.errors import Refused
from ambermq.engine.events import Discarded, Drawn, Event, Published
from ambermq.engine.model.publish_options import Unroutable
from ambermq.engine.model.queue import Queue
from ambermq.engine.model.queue_parts.levels import count_of
from ambermq.engine.model.state import Producer, State
from ambermq.engine.selectors.fields import Fields, text_of
from ambermq.engine.settings.queue_settings import DEAD_LETTER, DROP_HEAD, Settings
from ambermq.engine.time_budget import MatchUnfinished
from ambermq.log.config import BATCH_OVERHEAD_BYTES
from ambermq.log.format.record import RECORD

__all__ = ["publish"]

_RECORD_BYTES: Final = RECORD.size
_CHECKED_MAX: Final = 10_000
"""The maximum of queues whose room a decision looks at, at up to 0.4 us each."""
_JMS_TOPICS: Final = (1, 3)
"""The values of the annotation `x-opt-jms-dest` for a topic and a temporary topic."""


def publish(state: State, command: Publish, context: DecisionContext) -> Decision:
    """Return the events and effects of a run of messages."""
    producer = state.producers.get(command.producer)
    if producer is None:
        return [], [_rejected(command, "amqp:not-found", "the producer is gone")]
    if command.tag and (kept := _kept_outcome(state, command, context)) is not None:
        return [], [kept]
    if producer.sending.is_addressed:
        return _Each(state, command, context, producer).decide()
    queues = context.router.plain_route(state, producer.muxer, producer.destination)
    if queues is None:
        return _Each(state, command, context, producer).decide()
    if state.no_locals or producer.sending.is_immediate:
        queues = _eligible_queues(state, producer, queues)
    if not queues:
        return [], [_unroutable(command, producer)]
    if state.deduplicating and command.transaction is None and windowed(state, queues):
        windows = IdWindows(state, context.now_us)
        return deduplicated(state, command, queues, context, NOTHING_ADDED, windows, _to_queues)
    if len(queues) > 1 and len(command.bodies) > (count := _count_max(queues, context)):
        command, rest = command.split(count)
        events, effects = _to_queues(state, command, queues, context)
        return events, [*effects, Unfinished(rest)]
    return _to_queues(state, command, queues, context)


def _kept_outcome(state: State, command: Publish, context: DecisionContext) -> PublishDone | None:
    """Return the outcome of a message whose tag is kept, which is stored already, or that has no room for its tag."""
    tags = state.tags.get(command.producer, ())
    if command.tag in tags:
        return _outcome(command, OutcomeKind.ACCEPTED, after=AT_CLOSE)
    tags_max = context.config.unsettled_tags_max
    if len(tags) < tags_max:
        return None
    why = f"the sender has not settled {tags_max} deliveries in receiver-settle-mode second (unsettled_tags_max)"
    return _rejected(command, "amqp:resource-limit-exceeded", why)


def _eligible_queues(state: State, producer: Producer, queues: tuple[int, ...]) -> tuple[int, ...]:
    """Return the queues of a route without no-local subscriptions of the producer's container.

    For an immediate producer also without queues that have no consumer.
    """
    excluded, container = state.no_locals, producer.container
    # Containers with an empty id are different ones, although a subscription in an older log may have an empty id.
    if excluded and container:
        queues = tuple([queue for queue in queues if excluded.get(queue) != container])
    if producer.sending.is_immediate:
        queues = tuple([queue for queue in queues if state.queues[queue].consumers])
    return queues


class _Verdict(NamedTuple):
    """The result for one message; neighbours with equal results are one run."""

    queues: tuple[int, ...] = ()
    is_lost: bool = False
    condition: str = ""
    """The condition of its refusal, empty for none."""
    description: str = ""
    creates: str = ""
    """The queue that must be created first."""


class _Each:
    """The decision on a run whose messages have routes of their own, up to the limit of one decision."""

    def __init__(self, state: State, command: Publish, context: DecisionContext, producer: Producer) -> None:
        self._state = state
        self._command = command
        self._context = context
        self._producer = producer
        self._events: list[Event] = []
        self._added = Added({}, {})
        self._drawn: dict[int, int] = {}
        self._windows = IdWindows(state, context.now_us)

    def decide(self) -> Decision:
        command, effects = self._command, list[Effect]()
        verdicts, creates = self._verdicts()
        start = 0
        for verdict, alike in groupby(verdicts):
            end = start + len(list(alike))
            effects += self._run(verdict, command.part(start, end))
            start = end
            if left := _take_unfinished(effects):
                # A queue makes room for a part of the run.
                start, creates = end - left, ""
                break
        for muxer, count in self._drawn.items():
            self._emit([Drawn(self._context.next_offset, self._context.now_us, muxer, count)])
        if creates:
            self._emit(signed(create_queue(self._state, creates, self._context), command.by))
        if start < len(command.bodies):
            effects.append(Unfinished(command.part(start, len(command.bodies))))
        return self._events, effects

    def _verdicts(self) -> tuple[list[_Verdict], str]:
        """Return the results for messages of this decision, and the queue that must be created for the next message."""
        verdicts: list[_Verdict] = []
        changes_left = self._context.config.tick_changes_max
        for body in self._command.heads:
            try:
                verdict = self._verdict(body)
            except MatchUnfinished:
                if verdicts:
                    # The rest of the run is decided in the next tick.
                    break
                raise
            if verdict.creates:
                return verdicts, verdict.creates
            count = len(verdict.queues)
            if verdicts and _is_checked_later(verdict.queues, self._context):
                break
            is_alike = bool(verdicts) and verdict == verdicts[-1]
            changes_left -= count // event_messages_max(verdict.queues, self._context) if is_alike else count
            verdicts.append(verdict)
            if changes_left <= 0:
                break
        return verdicts, ""

    def _emit(self, events: list[Event]) -> None:
        """Add events to the decision, and count them for the next messages."""
        self._events += events
        for event in events:
            if type(event) is Published:
                count = len(event.words) // WORD_BYTES
                if len(event.queues) > self._context.config.tick_changes_max:
                    # No message of this decision comes after it.
                    continue
                for queue in event.queues:
                    self._added.add(queue, count, event.size)
        self._context = context_after(self._context, events)

    def _keep(self, effects: list[Effect]) -> None:
        """Count the messages that a transaction takes for the next ones."""
        for effect in effects:
            if type(effect) is Posted:
                count, size = len(effect.post.messages.bodies), size_of_run(effect.post.messages)
                for queue in effect.post.reserving:
                    self._added.add(queue, count, size)

    def _run(self, verdict: _Verdict, part: Publish) -> list[Effect]:
        if verdict.condition:
            return [_misaddressed(part, verdict)]
        if verdict.queues:
            args = self._state, part, verdict.queues, self._context, self._added
            if self._state.deduplicating and part.transaction is None and windowed(self._state, verdict.queues):
                events, effects = deduplicated(*args, self._windows, _to_queues)
            else:
                events, effects = _to_queues(*args)
            self._emit(events)
            self._keep(effects)
            size = part.size + len(part.bodies) * head_bytes(verdict.queues)
            self._context = replace(self._context, room_bytes=self._context.room_bytes - size)
            return effects
        if verdict.is_lost:
            return [_outcome(part, OutcomeKind.ACCEPTED, after=AT_CLOSE)]
        return [_unroutable(part, self._producer)]

    def _verdict(self, body: object) -> _Verdict:
        fields = self._context.router.fields_of(body)  # type: ignore[arg-type]  # a buffer, as all bodies are
        producer = self._producer
        muxer, destination, creates = producer.muxer, producer.destination, False
        if producer.sending.is_addressed:
            try:
                if muxer:
                    destination = self._destination(fields, muxer)
                else:
                    muxer, destination, creates = self._addressed(fields)
            except Refused as refusal:
                if producer.sending.unroutable is Unroutable.DISCARD:
                    return _Verdict()
                return _Verdict(condition=refusal.condition, description=refusal.description)
        if creates:
            may_create = self._command.may_create
            if may_create is not None and not may_create(destination):
                refused = not_creatable(f"queue {destination!r:.80}")
                return _Verdict(condition=refused.condition, description=refused.description)
            return _Verdict(creates=destination)
        try:
            route = self._context.router.route(self._state, muxer, destination, fields, self._drawn)
        except Refused as refusal:
            return _Verdict(condition=refusal.condition, description=refusal.description)
        queues = _eligible_queues(self._state, producer, route.queues)
        return _Verdict(queues, route.is_lost or (not queues and self._is_for_topic(fields)))

    def _destination(self, fields: Fields, muxer: int) -> str:
        to, subject = text_of(fields, "properties.to"), text_of(fields, "properties.subject")
        name, name_bytes_max = self._state.muxers[muxer].name, self._context.config.name_bytes_max
        return message_destination(name, to, subject, name_bytes_max=name_bytes_max)

    def _is_for_topic(self, fields: Fields) -> bool:
        """Return whether a message on the anonymous terminus is for a topic, by the annotation of JMS clients.

        A topic needs no subscriber, so the message is accepted. On a link to a topic the target's capability says so.
        """
        sending = self._producer.sending
        if self._producer.muxer or sending.unroutable is not Unroutable.RELEASE:
            return False
        return fields.get("annotations.x-opt-jms-dest") in _JMS_TOPICS

    def _addressed(self, fields: Fields) -> tuple[int, str, bool]:
        """Return the muxer and the destination of a message, and whether its queue must be created.

        Its `to` is the address. If that names a muxer without a destination, the subject is the destination.
        """
        address = text_of(fields, "properties.to")
        if not address:
            raise Refused("amqp:invalid-field", "a message to the anonymous terminus names no address in `to`")
        config, state = self._context.config, self._state
        node = parse_address(address, name_bytes_max=config.name_bytes_max)
        if node.kind is NodeKind.QUEUE:
            first = queue_muxer(state, node.name)
            is_new = node.name not in state.queue_names
            if is_new and self._producer.sending.is_immediate:
                # A new queue has no consumer, so none is created. Another queue that is attached for the name may have.
                check_creatable(state, node.name, self._context)
                return first, node.name, False
            if is_new:
                create_queue(state, node.name, self._context)
            return first, node.name, is_new
        if node.kind is NodeKind.TOPIC:
            return topic_muxer(state, node.name), node.name, False
        muxer = muxer_id(state, node.name)
        subject = text_of(fields, "properties.subject") or ""
        return muxer, subject if node.destination is None else node.destination, False


def _to_queues(
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
        return [], [_rejected(command, "amqp:resource-limit-exceeded", why)]
    if context.room_bytes < size:
        why = "the broker has no room left on its disk"
        if context.room_keeper:
            why += f": the snapshot {context.room_keeper!r} keeps the history"
        return [], [_rejected(command, "amqp:resource-limit-exceeded", why)]
    config = context.config
    # The first queue with the least room, if a queue has no room for all of the messages.
    fullest, room, held, yielding = None, count, added, list[Queue]()
    reserved, in_transaction = context.reserved, command.transaction is not None
    checked, is_wide, is_keyed = queues, False, False
    if len(queues) > _CHECKED_MAX and _is_checked_later(queues, context):
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
        if settings.message_bytes_max and (large := _first_large(command, settings.message_bytes_max)) < count:
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
    sizes = [size_of(size_code(size)) for size in command.sizes] if bytes_max else []
    return next((index for index, size in enumerate(sizes) if size > bytes_max), len(command.bodies))


def _first_large(command: Publish, bytes_max: int) -> int:
    """Return the index of the first message of a run that is larger than a limit; their number without one."""
    return next((index for index, size in enumerate(command.sizes) if size > bytes_max), len(command.bodies))


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
        events, effects = _to_queues(state, first, queues, context, added)
        left = _take_unfinished(effects)
        return events, [*effects, Unfinished(command.part(large - left, len(command.bodies)) if left else rest)]
    first, rest = command.split(1)
    limit, found, name = queue.settings.message_bytes_max, first.sizes[0], "message_bytes_max"
    if not limit or found <= limit:
        limit, name = queue.settings.bytes_max, "bytes_max"
    why = f"queue {queue.name!r} takes messages of at most {limit} bytes ({name}), this has {found}"
    done = _rejected(first, "amqp:link:message-size-exceeded", why)
    return [], [done, *([Unfinished(rest)] if rest.bodies else [])]


def _is_checked_later(queues: tuple[int, ...], context: DecisionContext) -> bool:
    """Return whether the fan-out looks for a queue without room, and not the decision."""
    return len(queues) > max(_CHECKED_MAX, context.config.tick_changes_max)


def _count_max(queues: tuple[int, ...], context: DecisionContext) -> int:
    """Return how many messages for these queues stay within the changes of a tick; at least one."""
    if _is_checked_later(queues, context):
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
    events, effects = _to_queues(state, first, queues, context, added) if room else ([], [])
    if left := _take_unfinished(effects):
        # Another queue makes room for a part of the first messages; the others come after them.
        start = len(command.bodies) - len(rest.bodies) - left
        return events, [*effects, Unfinished(command.part(start, len(command.bodies)))]
    refused, rest = rest.split(refused_count(fullest, command, room, held, context.config))
    done = _rejected(refused, "amqp:resource-limit-exceeded", fullness_text(fullest, command, room, held))
    done.is_queue_full = True
    return events, [*effects, done, *([Unfinished(rest)] if rest.bodies else [])]


def _take_unfinished(effects: list[Effect]) -> int:
    """Remove the effect Unfinished at the end of effects; return how many messages it has, 0 if there is none."""
    if not effects or not isinstance(last := effects[-1], Unfinished):
        return 0
    del effects[-1]
    assert isinstance(last.command, Publish), "it is the rest of a run"
    return len(last.command.bodies)


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
        return [], [_rejected(first, "amqp:resource-limit-exceeded", why), *([Unfinished(rest)] if rest.bodies else [])]
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
    events, effects = _to_queues(state, first, queues, context, added)
    return events, [*effects, Unfinished(command if _take_unfinished(effects) else rest)]


def _unmoved(command: Publish, queue: Queue) -> Decision:
    """Return the decision that refuses the first message of a run, because the dead-letter target takes no more."""
    first, rest = command.split(1)
    why = f"queue {queue.name!r} is full, and its dead-letter target {queue.settings.dead_letter!r} takes no more now"
    done = _rejected(first, "amqp:resource-limit-exceeded", why)
    done.is_queue_full = True
    return [], [done, *([Unfinished(rest)] if rest.bodies else [])]


def _outcome(command: Publish, kind: OutcomeKind, *, after: int) -> PublishDone:
    return PublishDone(command.link, command.first_id, len(command.bodies), kind, command.settled, after=after)


def _unroutable(command: Publish, producer: Producer) -> PublishDone:
    """Return the outcome of messages that reach no queue."""
    unroutable = producer.sending.unroutable
    if unroutable is Unroutable.REJECT:
        return _rejected(command, "amqp:not-found", "no queue is attached for it")
    kind = OutcomeKind.ACCEPTED if unroutable is Unroutable.DISCARD else OutcomeKind.RELEASED
    # An accepted outcome promises the state that it was decided on: the missing attachment must be durable as well.
    return _outcome(command, kind, after=NOW if kind is OutcomeKind.RELEASED else AT_CLOSE)


def _rejected(command: Publish, condition: str, description: str) -> PublishDone:
    count = len(command.bodies)
    return PublishDone(
        command.link, command.first_id, count, OutcomeKind.REJECTED, command.settled, condition, description, after=NOW
    )


def _misaddressed(command: Publish, verdict: _Verdict) -> PublishDone:
    """Return the outcome of messages whose `to` names no address."""
    done = _rejected(command, verdict.condition, verdict.description)
    done.is_misaddressed = True
    return done
