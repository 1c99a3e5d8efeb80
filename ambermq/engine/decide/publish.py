"""Deciding what becomes of messages that are published. Where they go is routing's; how they are kept is decided here.

Rule 1. A run goes as a whole where nothing on its way looks into messages, and where its producer says once what it is
        for. Else each message has a route of its own, and neighbours that fare alike are one run again.
Rule 2. What reaches no queue is released, or what its producer asked for. What a LOSSY muxer dropped counts as
        accepted: the sender sees what it would see of a network that loses messages behind the broker.
Rule 3. A message is stored once, whatever the number of its queues; a large one in pieces. Its record names them all,
        which bounds their number, and that of messages in a run.
Rule 4. A run fares as its messages would one by one. So a decision ends where it has made a queue, for the next message
        may go there by other ways too, and where it is as many changes as a tick takes: the rest is decided next.
"""

from collections.abc import Mapping
from itertools import groupby
from typing import Final, NamedTuple

from msgspec.structs import replace

from ambermq.engine.address import NodeKind, parse_address
from ambermq.engine.commands import Publish
from ambermq.engine.decide.context import Decision, DecisionContext
from ambermq.engine.decide.node_names import destination_said, muxer_id, queue_muxer, topic_muxer
from ambermq.engine.decide.wiring import check_creatable, create_queue
from ambermq.engine.effects import AT_CLOSE, NOW, Effect, PublishDone, Unfinished
from ambermq.engine.errors import Refused
from ambermq.engine.events import Chunked, Drawn, Event, Published
from ambermq.engine.model.entry_word import WORD_BYTES, make_run
from ambermq.engine.model.outcome import OutcomeKind
from ambermq.engine.model.publish_options import Unroutable
from ambermq.engine.model.queue import Queue
from ambermq.engine.model.state import Producer, State
from ambermq.engine.selectors.fields import ABSENT, Fields
from ambermq.log.config import BATCH_OVERHEAD_BYTES
from ambermq.log.format.record import RECORD

__all__ = ["publish"]

_RECORD_BYTES: Final = RECORD.size
_NOTHING: Final[Mapping[int, int]] = {}
_JMS_TOPICS: Final = (1, 3)
"""What the annotation `x-opt-jms-dest` has for a topic and a temporary topic."""


def publish(state: State, command: Publish, context: DecisionContext) -> Decision:
    """Return what a run of messages makes happen."""
    producer = state.producers.get(command.producer)
    if producer is None:
        return [], [_undone(command, "amqp:not-found", "the producer is gone")]
    if producer.sending.is_addressed:
        return _Each(state, command, context, producer).decide()
    queues = context.router.plain_route(state, producer.muxer, producer.destination)
    if queues is None:
        return _Each(state, command, context, producer).decide()
    if state.no_locals or producer.sending.is_immediate:
        queues = _wanting(state, producer, queues)
    if not queues:
        return [], [_unroutable(command, producer)]
    if len(queues) > 1 and len(command.bodies) > (count := _count_max(queues, context)):
        command, rest = command.split(count)
        events, effects = _to_queues(state, command, queues, context)
        return events, [*effects, Unfinished(rest)]
    return _to_queues(state, command, queues, context)


def _wanting(state: State, producer: Producer, queues: tuple[int, ...]) -> tuple[int, ...]:
    """Return those of a route's queues that a producer's messages come to: not to its own container's no-local ones.

    Where it sends for consumers that are there now, not to queues that have none.
    """
    excluded, container = state.no_locals, producer.container
    # Nameless containers are not each other's, though a subscription of an older log may say so.
    found = [queue for queue in queues if excluded.get(queue) != container or not container]
    if producer.sending.is_immediate:
        found = [queue for queue in found if state.queues[queue].consumers]
    return tuple(found)


class _Way(NamedTuple):
    """How one message fares; neighbours with equal ways are one run."""

    queues: tuple[int, ...] = ()
    is_lost: bool = False
    condition: str = ""
    """Why it cannot be."""
    description: str = ""
    creates: str = ""
    """The queue that must be made for it first."""


class _Each:
    """A run whose messages are looked at one by one, as far as one decision goes."""

    def __init__(self, state: State, command: Publish, context: DecisionContext, producer: Producer) -> None:
        self._state = state
        self._command = command
        self._context = context
        self._producer = producer
        self._events: list[Event] = []
        self._brought: dict[int, int] = {}
        """Messages by queue, which the state does not know yet."""
        self._drawn: dict[int, int] = {}

    def decide(self) -> Decision:
        command, effects = self._command, list[Effect]()
        ways, creates = self._ways()
        start = 0
        for way, alike in groupby(ways):
            end = start + len(list(alike))
            effects += self._run(way, command.part(start, end))
            start = end
        for muxer, count in self._drawn.items():
            self._happened([Drawn(self._context.next_offset, self._context.now_us, muxer, count)])
        if creates:
            self._happened(create_queue(self._state, creates, self._context))
        if start < len(command.bodies):
            effects.append(Unfinished(command.part(start, len(command.bodies))))
        return self._events, effects

    def _ways(self) -> tuple[list[_Way], str]:
        """Return how messages fare, as far as this decision goes, and the queue that must be made for the next."""
        ways: list[_Way] = []
        changes_left = self._context.config.tick_changes_max
        for body in self._command.bodies:
            way = self._way(body)
            if way.creates:
                return ways, way.creates
            count = len(way.queues)
            changes_left -= count // _at_once(way.queues, self._context) if ways and way == ways[-1] else count
            ways.append(way)
            if changes_left <= 0:
                break
        return ways, ""

    def _happened(self, events: list[Event]) -> None:
        """Let what was decided count for what is decided next."""
        self._events += events
        records = 0
        for event in events:
            if type(event) is Published:
                count = len(event.words) // WORD_BYTES
                records += count
                for queue in event.queues:
                    self._brought[queue] = self._brought.get(queue, 0) + count
            else:
                records += 1
        self._context = replace(self._context, next_offset=self._context.next_offset + records)

    def _run(self, way: _Way, part: Publish) -> list[Effect]:
        if way.condition:
            return [_undone(part, way.condition, way.description)]
        if way.queues:
            events, effects = _to_queues(self._state, part, way.queues, self._context, self._brought)
            self._happened(events)
            size = part.size + len(part.bodies) * _head_bytes(way.queues)
            self._context = replace(self._context, room_bytes=self._context.room_bytes - size)
            return effects
        if way.is_lost:
            return [_done(part, OutcomeKind.ACCEPTED, after=AT_CLOSE)]
        return [_unroutable(part, self._producer)]

    def _way(self, body: object) -> _Way:
        fields = self._context.router.fields_of(body)  # type: ignore[arg-type]  # a buffer, as all bodies are
        producer = self._producer
        muxer, destination, creates = producer.muxer, producer.destination, False
        if producer.sending.is_addressed:
            try:
                if muxer:
                    destination = self._said(fields, muxer)
                else:
                    muxer, destination, creates = self._addressed(fields)
            except Refused as refusal:
                if producer.sending.unroutable is Unroutable.DISCARD:
                    return _Way()
                return _Way(condition=refusal.condition, description=refusal.description)
        if creates:
            return _Way(creates=destination)
        route = self._context.router.route(self._state, muxer, destination, fields, self._drawn)
        queues = _wanting(self._state, producer, route.queues)
        return _Way(queues, route.is_lost or (not queues and self._is_for_topic(fields)))

    def _said(self, fields: Fields, muxer: int) -> str:
        to, subject = _text(fields, "properties.to"), _text(fields, "properties.subject")
        name, name_bytes_max = self._state.muxers[muxer].name, self._context.config.name_bytes_max
        return destination_said(name, to, subject, name_bytes_max=name_bytes_max)

    def _is_for_topic(self, fields: Fields) -> bool:
        """Return whether a message on the anonymous terminus says, as JMS clients do, that it is for a topic.

        On a link to a topic the target's capability says so: nobody need listen there, so it is accepted.
        """
        sending = self._producer.sending
        if self._producer.muxer or sending.unroutable is not Unroutable.RELEASE:
            return False
        return fields.get("annotations.x-opt-jms-dest") in _JMS_TOPICS

    def _addressed(self, fields: Fields) -> tuple[int, str, bool]:
        """Return muxer and destination that a message names, and whether its queue must be made, which can be done.

        Its `to` is the address, so where that is a muxer's alone the subject says what it is for.
        """
        address = _text(fields, "properties.to")
        if not address:
            raise Refused("amqp:invalid-field", "a message to the anonymous terminus names no address in `to`")
        config, state = self._context.config, self._state
        node = parse_address(address, name_bytes_max=config.name_bytes_max)
        if node.kind is NodeKind.QUEUE:
            first = queue_muxer(state, node.name)
            is_new = node.name not in state.queue_names
            if is_new and self._producer.sending.is_immediate:
                # A new queue has no consumer, so none is made: what else is attached for the name may have.
                check_creatable(state, node.name, self._context)
                return first, node.name, False
            if is_new:
                create_queue(state, node.name, self._context)
            return first, node.name, is_new
        if node.kind is NodeKind.TOPIC:
            return topic_muxer(state, node.name), node.name, False
        muxer = muxer_id(state, node.name)
        subject = _text(fields, "properties.subject") or ""
        return muxer, subject if node.destination is None else node.destination, False


def _text(fields: Fields, name: str) -> str | None:
    value = fields.get(name)
    return value if value is not ABSENT and isinstance(value, str) else None


def _to_queues(
    state: State,
    command: Publish,
    queues: tuple[int, ...],
    context: DecisionContext,
    brought: Mapping[int, int] = _NOTHING,
) -> Decision:
    """Publish a run to queues, as far as they have room; `brought` counts messages that the state does not know yet."""
    count = len(command.bodies)
    size = command.size + count * _head_bytes(queues)
    if len(queues) > 1 and len(queues) > (queues_max := _queues_max(command, context)):
        why = f"it would reach {len(queues)} queues: at most {queues_max} (message_queues_max)"
        return [], [_undone(command, "amqp:resource-limit-exceeded", why)]
    if context.room_bytes < size:
        return [], [_undone(command, "amqp:resource-limit-exceeded", "the broker has no room left on its disk")]
    config = context.config
    # The queue that takes the fewest of them, the first of those, where one does not take all.
    fullest, room = None, count
    for queue_id in queues:
        queue = state.queues[queue_id]
        # Once a message: what `available` is, written out.
        left = (queue.settings.messages_max or config.queue_messages_max) - queue.ready.count - queue.returned.count
        if brought:
            left -= brought.get(queue_id, 0)
        if left < room:
            fullest, room = queue, max(0, left)
    if fullest is not None:
        return _in_part(state, command, context, queues, brought, fullest, room)
    after = AT_CLOSE if command.durable else NOW
    done = PublishDone(command.link, command.first_id, count, OutcomeKind.ACCEPTED, command.settled, after=after)
    if command.size > config.chunk_bytes:
        return _large_run(command, queues, context), [done]
    if size <= context.batch_bytes_max // 2:
        return [_run_event(command, queues, context, context.next_offset)], [done]
    at_once = _at_once(queues, context)
    return [
        _run_event(command.part(start, start + at_once), queues, context, context.next_offset + start)
        for start in range(0, count, at_once)
    ], [done]


def _run_event(command: Publish, queues: tuple[int, ...], context: DecisionContext, offset: int) -> Published:
    """Return a run as an event; its messages fit into half of a batch, all that is beside them into the other."""
    words, size = make_run(offset, list(map(len, command.bodies)))
    return Published(
        offset,
        context.now_us,
        queues,
        command.producer,
        words,
        size,
        command.durable,
        (),
        command.bodies,
        command.id_hashes,
    )


def _head_bytes(queues: tuple[int, ...]) -> int:
    """Return what the record of a message takes in the log beside the message, at most."""
    return _RECORD_BYTES + WORD_BYTES * len(queues)


def _at_once(queues: tuple[int, ...], context: DecisionContext) -> int:
    """Return how many messages for these queues one event holds, at most."""
    return max(1, (context.batch_bytes_max // 2 - BATCH_OVERHEAD_BYTES) // _head_bytes(queues))


def _count_max(queues: tuple[int, ...], context: DecisionContext) -> int:
    """Return how many messages for these queues are no more changes than a tick takes; one in any case."""
    return _at_once(queues, context) * max(1, context.config.tick_changes_max // len(queues))


def _queues_max(command: Publish, context: DecisionContext) -> int:
    """Return how many queues messages may reach: half of a batch is for naming them and pieces, the other for a piece.

    Of the first half comes off what a batch has beside its records.
    """
    named_bytes = context.batch_bytes_max // 2 - BATCH_OVERHEAD_BYTES - 2 * _RECORD_BYTES
    chunk_bytes = context.config.chunk_bytes
    if command.size > chunk_bytes:
        named_bytes -= WORD_BYTES * (max(map(len, command.bodies)) // chunk_bytes)
    return min(context.config.message_queues_max, named_bytes // WORD_BYTES)


def _in_part(
    state: State,
    command: Publish,
    context: DecisionContext,
    queues: tuple[int, ...],
    brought: Mapping[int, int],
    fullest: Queue,
    room: int,
) -> Decision:
    """Publish the first `room` messages of a run and reject the others, as runs of one would fare."""
    first, rest = command.split(room)
    events, effects = _to_queues(state, first, queues, context, brought) if room else ([], [])
    held = fullest.available + brought.get(fullest.id, 0) + room
    refusal = f"queue {fullest.name!r} is full: it holds {held} messages"
    return events, [*effects, _undone(rest, "amqp:resource-limit-exceeded", refusal)]


def _done(command: Publish, kind: OutcomeKind, *, after: int) -> PublishDone:
    return PublishDone(command.link, command.first_id, len(command.bodies), kind, command.settled, after=after)


def _unroutable(command: Publish, producer: Producer) -> PublishDone:
    """Return the outcome of messages that reach no queue."""
    unroutable = producer.sending.unroutable
    if unroutable is Unroutable.REJECT:
        return _undone(command, "amqp:not-found", "no queue is attached for it")
    kind = OutcomeKind.ACCEPTED if unroutable is Unroutable.DISCARD else OutcomeKind.RELEASED
    # It promises what was decided upon: that nobody is attached must be durable as well.
    return _done(command, kind, after=NOW if kind is OutcomeKind.RELEASED else AT_CLOSE)


def _undone(command: Publish, condition: str, description: str) -> PublishDone:
    count = len(command.bodies)
    return PublishDone(
        command.link, command.first_id, count, OutcomeKind.REJECTED, command.settled, condition, description, after=NOW
    )


def _large_run(command: Publish, queues: tuple[int, ...], context: DecisionContext) -> list[Event]:
    """Return the events of a run that may be more than a batch holds: a run of one a message, cut where it is large."""
    events: list[Event] = []
    for body, id_hash in zip(command.bodies, command.id_hashes, strict=True):
        piece_bytes = context.config.chunk_bytes
        view = memoryview(body)
        pieces = [view[start : start + piece_bytes] for start in range(0, len(view), piece_bytes)] or [view]
        chunks = tuple(range(context.next_offset, context.next_offset + len(pieces) - 1))
        events += [
            Chunked(offset, context.now_us, command.producer, piece)
            for offset, piece in zip(chunks, pieces[:-1], strict=True)
        ]
        offset = context.next_offset + len(chunks)
        words, size = make_run(offset, [len(view)])
        events.append(
            Published(
                offset,
                context.now_us,
                queues,
                command.producer,
                words,
                size,
                command.durable,
                chunks,
                pieces[-1:] if chunks else [body],
                [id_hash],
            )
        )
        context = replace(context, next_offset=offset + 1)
    return events
