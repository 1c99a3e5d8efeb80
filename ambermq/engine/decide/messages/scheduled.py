"""The decision on messages that a request schedules. The request is a producer for as long as the decision takes.

Rule 1. The messages go the way of any message to that address: routes, maxima and room decide about them.
Rule 2. All of a request are stored, in one batch, or none.
"""

from collections.abc import Callable
from typing import Any, Final

from msgspec.structs import replace

from ambermq.engine.commands import Publish, ScheduleMessages
from ambermq.engine.decide.context import Decision, DecisionContext
from ambermq.engine.decide.end_nodes import context_after
from ambermq.engine.decide.messages.publish import publish
from ambermq.engine.decide.node_names import queue_muxer
from ambermq.engine.decide.wiring import existing_queue
from ambermq.engine.effects import Answered, PublishDone
from ambermq.engine.entries.outcome import OutcomeKind
from ambermq.engine.errors import Refused
from ambermq.engine.events import Event, ProducerAttached, ProducerDetached
from ambermq.engine.fold.apply import fold
from ambermq.engine.model.publish_options import PublishOptions, Unroutable
from ambermq.engine.model.state import State

__all__ = ["SCHEDULE_DECISIONS"]

_HEAD_BYTES: Final = 1024
"""The most bytes of the records of a message for few queues, without the message."""


def _schedule(state: State, command: ScheduleMessages, context: DecisionContext) -> Decision:
    queue = existing_queue(state, command.queue, context.config)
    producer = context.next_offset
    sending = PublishOptions(Unroutable.REJECT, False, is_addressed=False)
    attached = ProducerAttached(
        producer,
        context.now_us,
        queue_muxer(state, queue.name),
        queue.name,
        command.container,
        command.link,
        sending,
        0,
        0,
        command.by,
    )
    events: list[Event] = [attached]
    state, moment = fold(state, events), context_after(context, events)
    offsets: list[int] = []
    for message in command.messages:
        message.producer = producer
        some, done = _published(state, message, moment)
        offsets.append(done.offset)
        events += some
        room_bytes = moment.room_bytes - message.size - _HEAD_BYTES
        state, moment = fold(state, some), replace(context_after(context, events), room_bytes=room_bytes)
    events.append(ProducerDetached(moment.next_offset, context.now_us, producer, command.by))
    return events, [Answered(command.key, command.read(offsets))]


def _published(state: State, message: Publish, context: DecisionContext) -> tuple[list[Event], PublishDone]:
    """Return the events of one message, and its outcome. Raises Refused unless it is accepted."""
    events, effects = publish(state, message, context)
    done = effects[0] if effects else None
    if type(done) is not PublishDone or len(effects) > 1 or done.kind is not OutcomeKind.ACCEPTED or not done.offset:
        condition = getattr(done, "condition", "") or "amqp:not-found"
        raise Refused(condition, getattr(done, "description", "") or "the message reaches no queue")
    return events, done


SCHEDULE_DECISIONS: Final[dict[type, Callable[[State, Any, DecisionContext], Decision]]] = {
    ScheduleMessages: _schedule,
}
