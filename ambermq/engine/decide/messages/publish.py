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
Rule 5. The tag of an accepted message is kept until its sender settles it, also if the message is not stored.
Rule 6. A message for very many queues is decided alone. Its fan-out in parts looks for a queue without room
        (wide_fanout.py); if there is one, the message is decided again, and rejected.
"""

from itertools import groupby
from typing import Final, NamedTuple

from msgspec.structs import replace

from ambermq.engine.address import NodeKind, parse_address
from ambermq.engine.commands import Publish
from ambermq.engine.decide.context import Decision, DecisionContext, signed
from ambermq.engine.decide.end_nodes import context_after
from ambermq.engine.decide.messages.duplicates import IdWindows, deduplicated, windowed
from ambermq.engine.decide.messages.overflow import NOTHING_ADDED, Added, size_of_run
from ambermq.engine.decide.messages.room.admission import count_max, is_checked_later, to_queues
from ambermq.engine.decide.messages.room.outcomes import outcome, rejected, take_unfinished, unroutable
from ambermq.engine.decide.messages.stored import event_messages_max, head_bytes
from ambermq.engine.decide.node_names import message_destination, muxer_id, queue_muxer, topic_muxer
from ambermq.engine.decide.wiring import check_creatable, create_queue, not_creatable
from ambermq.engine.effects import AT_CLOSE, Effect, Posted, PublishDone, Unfinished
from ambermq.engine.entries.entry_word import WORD_BYTES
from ambermq.engine.entries.outcome import OutcomeKind
from ambermq.engine.errors import Refused
from ambermq.engine.events import Drawn, Event, Published, TagsKept
from ambermq.engine.model.publish_options import Unroutable
from ambermq.engine.model.state import Producer, State
from ambermq.engine.selectors.fields import Fields, text_of
from ambermq.engine.time_budget import MatchUnfinished

__all__ = ["publish"]

_JMS_TOPICS: Final = (1, 3)
"""The values of the annotation `x-opt-jms-dest` for a topic and a temporary topic."""


def publish(state: State, command: Publish, context: DecisionContext, *, is_new: bool = False) -> Decision:
    """Return the events and effects of a run of messages; `is_new`: the tag of the one that it has is not kept."""
    producer = state.producers.get(command.producer)
    if producer is None:
        return [], [rejected(command, "amqp:not-found", "the producer is gone")]
    if command.upload is not None and command.upload.is_refused:
        return [], [rejected(command, "amqp:resource-limit-exceeded", "a piece of the message could not be stored")]
    if command.tag and not is_new:
        return _tagged(state, command, context)
    if producer.sending.is_addressed:
        return _Each(state, command, context, producer).decide()
    queues = context.router.plain_route(state, producer.muxer, producer.destination)
    if queues is None:
        return _Each(state, command, context, producer).decide()
    if state.no_locals or producer.sending.is_immediate:
        queues = _eligible_queues(state, producer, queues)
    if not queues:
        return [], [unroutable(command, producer)]
    if state.deduplicating and command.transaction is None and windowed(state, queues):
        windows = IdWindows(state, context.now_us)
        return deduplicated(state, command, queues, context, NOTHING_ADDED, windows, to_queues)
    if len(queues) > 1 and len(command.bodies) > (count := count_max(queues, context)):
        command, rest = command.split(count)
        events, effects = to_queues(state, command, queues, context)
        return events, [*effects, Unfinished(rest)]
    return to_queues(state, command, queues, context)


def _tagged(state: State, command: Publish, context: DecisionContext) -> Decision:
    """Return the decision on a message that its sender settles later: its tag is kept with the outcome accepted."""
    kept = _kept_outcome(state, command, context)
    if kept is not None:
        return [], [kept]
    events, effects = publish(state, command, context, is_new=True)
    is_accepted = any(type(one) is PublishDone and one.kind is OutcomeKind.ACCEPTED for one in effects)
    if is_accepted and not any(type(event) is TagsKept for event in events):
        # It was accepted and not stored: all of its queues have it already, or it reaches none.
        offset = context_after(context, events).next_offset
        events = [*events, TagsKept(offset, context.now_us, command.producer, (command.tag,))]
    return events, effects


def _kept_outcome(state: State, command: Publish, context: DecisionContext) -> PublishDone | None:
    """Return the outcome of a message whose tag is kept, which is stored already, or that has no room for its tag."""
    tags = state.tags.get(command.producer, ())
    if command.tag in tags:
        return outcome(command, OutcomeKind.ACCEPTED, after=AT_CLOSE)
    tags_max = context.config.unsettled_tags_max
    if len(tags) < tags_max:
        return None
    why = f"the sender has not settled {tags_max} deliveries in receiver-settle-mode second (unsettled_tags_max)"
    return rejected(command, "amqp:resource-limit-exceeded", why)


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
            if left := take_unfinished(effects):
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
            if verdicts and is_checked_later(verdict.queues, self._context):
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
                events, effects = deduplicated(*args, self._windows, to_queues)
            else:
                events, effects = to_queues(*args)
            self._emit(events)
            self._keep(effects)
            size = part.size + len(part.bodies) * head_bytes(verdict.queues)
            self._context = replace(self._context, room_bytes=self._context.room_bytes - size)
            return effects
        if verdict.is_lost:
            return [outcome(part, OutcomeKind.ACCEPTED, after=AT_CLOSE)]
        return [unroutable(part, self._producer)]

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


def _misaddressed(command: Publish, verdict: _Verdict) -> PublishDone:
    """Return the outcome of messages whose `to` names no address."""
    done = rejected(command, verdict.condition, verdict.description)
    done.is_misaddressed = True
    return done
