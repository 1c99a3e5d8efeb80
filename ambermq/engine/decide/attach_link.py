"""The decisions on links: producers and consumers attach and detach, and dynamic nodes are created and end with them.

Rule 1. One decision creates a link and what it needs: a queue for its address, a subscription, a dynamic node.
Rule 2. A consumer that holds more messages than a tick takes returns them in parts (release_parts.py).
Rule 3. A detach ends the nodes whose lifetime policy says so, and a queue with `auto_delete` whose last consumer it is
        (end_nodes.py).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from msgspec.structs import replace

from ambermq.engine.address import NodeKind, parse_address, queue_address, topic_address
from ambermq.engine.commands import AttachConsumer, AttachProducer, DetachConsumer, DetachProducer, Suspension
from ambermq.engine.decide.context import Decision, DecisionContext, check_size, too_many
from ambermq.engine.decide.end_nodes import context_after, end_nodes
from ambermq.engine.decide.node_names import ADVANCED_MODE, muxer_id, node_at, queue_muxer, temporary_name, topic_muxer
from ambermq.engine.decide.release_parts import CHANGES_PER_RETURN, release_part, release_unsent
from ambermq.engine.decide.subscribe import SubscriptionPlace, compiled, recall, subscribe
from ambermq.engine.decide.suspend_link import (
    SUSPENSION_DECISIONS,
    ended_before,
    ended_on,
    keeping_on,
    resumed,
    suspended,
    tags_resumed,
)
from ambermq.engine.decide.wiring import create_queue, new_queue, not_creatable
from ambermq.engine.effects import ConsumerReady, ProducerReady, Unfinished
from ambermq.engine.entries.entry_word import WORD_BYTES
from ambermq.engine.errors import Refused, counted
from ambermq.engine.events import (
    ConsumerAttached,
    ConsumerDetached,
    Event,
    MuxerDeclared,
    ProducerAttached,
    ProducerDetached,
)
from ambermq.engine.fold.apply import fold
from ambermq.engine.model.lifetime import Dynamic
from ambermq.engine.model.muxer import QUEUE_MUXER, MuxerKind, Options
from ambermq.engine.model.publish_options import PublishOptions
from ambermq.engine.model.queue_template import TEMPORARY
from ambermq.engine.model.state import State
from ambermq.engine.model.subscription import SubscriptionRequest
from ambermq.engine.model.vhost_mode import VhostMode

__all__ = ["LINK_DECISIONS"]


class _Target(NamedTuple):
    """The target of a producer."""

    muxer: int
    destination: str | None
    events: list[Event]
    """The events that create the target."""
    node: int = 0
    """The queue or muxer of the target if it has a lifetime policy, else 0."""
    address: str = ""
    """The address of a dynamic node that the decision creates."""
    is_routed: bool = False
    """Whether its address is that of the muxer QUEUE."""


def _attach_producer(state: State, command: AttachProducer, context: DecisionContext) -> Decision:
    if len(state.producers) >= context.config.producers_max:
        raise too_many("producers", context.config.producers_max)
    if ended := ended_before(state, command, context):
        return ended, [Unfinished(command)]
    target = _target(state, command, context)
    sending = PublishOptions(
        command.unroutable,
        command.is_immediate,
        is_addressed=target.destination is None,
        is_routed=target.is_routed and target.destination is not None,
    )
    offset = context.next_offset + len(target.events)
    attached = ProducerAttached(
        offset,
        context.now_us,
        target.muxer,
        target.destination or "",
        command.container,
        command.link,
        sending,
        target.node,
        0 if command.dynamic is None else target.node,
        command.by,
        command.keeping,
    )
    created = (target.destination or "") if target.events and command.dynamic is None else ""
    ready = ProducerReady(command.key, offset, address=target.address, created=created)
    if target.muxer == state.muxer_names.get(QUEUE_MUXER) and target.destination and not target.is_routed:
        queue = state.queue_named(target.destination)
        ready.queue = target.destination
        ready.message_bytes_max = 0 if queue is None else queue.settings.message_bytes_max
    events = [*target.events, attached]
    if command.resumes is not None:
        more, ready.kept = tags_resumed(state, command, offset, context_after(context, events))
        events += more
    return events, [ready]


def _target(state: State, command: AttachProducer, context: DecisionContext) -> _Target:
    if command.dynamic is not None:
        return _dynamic_node(state, command.dynamic, context)
    if not command.address:
        return _Target(0, None, [])
    node = parse_address(command.address, name_bytes_max=context.config.name_bytes_max)
    events: list[Event] = []
    destination: str | None = node.name
    is_routed = False
    match node.kind:
        case NodeKind.QUEUE:
            muxer = queue_muxer(state, node.name)
            events = [] if node.name in state.queue_names else _queue(state, node.name, command, context)
        case NodeKind.TOPIC:
            muxer = topic_muxer(state, node.name)
        case _:
            muxer, destination = muxer_id(state, node.name), node.destination
            _check_destination(destination or "", context)
            is_routed = node.name == QUEUE_MUXER
    return _Target(muxer, destination, events, node_at(state, muxer, destination), is_routed=is_routed)


def _queue(state: State, name: str, command: AttachProducer | AttachConsumer, context: DecisionContext) -> list[Event]:
    """Return the events that create the queue of an address. Raises Refused."""
    if command.must_exist:
        raise Refused("amqp:not-found", f"no queue {name!r:.80}")
    if not command.may_create:
        raise not_creatable(f"queue {name!r:.80}")
    return create_queue(state, name, context)


def _check_destination(destination: str, context: DecisionContext) -> None:
    """Raise Refused for a destination above `argument_bytes_max`: State holds it while the link lasts."""
    check_size(destination, "the destination", bytes_max=context.config.argument_bytes_max, limit="argument_bytes_max")


def _dynamic_node(state: State, wanted: Dynamic, context: DecisionContext) -> _Target:
    """Return a new dynamic queue or topic as a target."""
    if state.mode is VhostMode.ADVANCED:
        raise Refused("amqp:not-found", f"no dynamic nodes: {ADVANCED_MODE}; declare the node")
    if not context.config.temporary_nodes:
        raise Refused("amqp:not-allowed", "this broker has no temporary nodes (temporary_nodes)")
    node = context.next_offset
    name = temporary_name(node)
    if wanted.is_topic:
        if len(state.muxers) >= context.config.muxers_max:
            raise too_many("muxers", context.config.muxers_max)
        made = MuxerDeclared(node, context.now_us, name, MuxerKind.SIMPLE, Options(lifetime=wanted.lifetime))
        return _Target(node, name, [made], node, topic_address(name))
    template = context.config.templates.named(TEMPORARY)
    assert template is not None, "it is predefined"
    events = new_queue(state, name, template.settings, context, lifetime=wanted.lifetime)
    return _Target(queue_muxer(state, name), name, events, node, queue_address(name))


def _attach_consumer(state: State, command: AttachConsumer, context: DecisionContext) -> Decision:
    if len(state.consumers) >= context.config.consumers_max:
        raise too_many("consumers", context.config.consumers_max)
    if ended := ended_before(state, command, context):
        return ended, [Unfinished(command)]
    place = _place(state, command, context)
    if ended := ended_on(state, place.queue, command, context):
        return ended, [Unfinished(command)]
    if place.is_unfinished:
        return place.events, [*place.effects, Unfinished(command)]
    _check_exclusive(state, place, is_exclusive=command.is_exclusive)
    # The selector of a subscription is part of the wiring: messages on its queue match it already.
    selector = None if place.subscription is not None else compiled(command.selector, context)
    offset = context.next_offset + len(place.events)
    text = "" if selector is None else command.selector
    names = (command.container, command.link, text, place.owns, command.by, command.is_exclusive)
    kept = keeping_on(state, place.queue, command.keeping)
    attached = ConsumerAttached(offset, context.now_us, place.queue, *names, kept)
    ready = ConsumerReady(
        command.key,
        offset,
        address=place.address,
        subscription=place.subscription,
        selector=selector,
        created=place.created,
        follows=_followed(state, place),
    )
    events = [*place.events, attached]
    if command.resumes is not None:
        more, ready.held = resumed(state, command, place.queue, offset, context_after(context, events))
        events += more
    return events, [*place.effects, ready]


def _followed(state: State, place: SubscriptionPlace) -> int:
    """Return the queue of a consumer if it is non-destructive, else 0."""
    queue = (fold(state, place.events) if place.events else state).queues[place.queue]
    return queue.id if queue.settings.non_destructive else 0


def _check_exclusive(state: State, place: SubscriptionPlace, *, is_exclusive: bool) -> None:
    """Raise Refused if a consumer wants to be the only one of its queue and is not, or if another one is."""
    if place.queue not in state.queues:
        return
    receivers = (fold(state, place.events) if place.events else state).receivers.get(place.queue)
    if not receivers:
        return
    name = state.queues[place.queue].name
    if is_exclusive:
        why = f"queue {name!r} has {counted(len(receivers), 'consumer')}, so no other one is its only consumer"
        raise Refused("amqp:resource-locked", why)
    # An exclusive consumer is alone, so it is the first one.
    if state.consumers[next(iter(receivers))].is_exclusive:
        raise Refused("amqp:resource-locked", f"queue {name!r} has an exclusive consumer, which is its only one")


def _place(state: State, command: AttachConsumer, context: DecisionContext) -> SubscriptionPlace:
    if command.is_recalled:
        return recall(state, command, context)
    if command.dynamic is not None:
        return _dynamic_place(state, command, command.dynamic, context)
    node = parse_address(command.address, name_bytes_max=context.config.name_bytes_max)
    if node.kind is NodeKind.TOPIC:
        return subscribe(state, node.name, command, context)
    if node.kind is NodeKind.MUXER:
        what = f"{command.address!r:.80} is the address of a muxer, not of a queue"
        raise Refused("amqp:not-found", f"{what}: queues attach to it")
    queue = state.queue_named(node.name)
    if queue is None:
        events = _queue(state, node.name, command, context)
        return SubscriptionPlace(events[0].offset, events, [], created=node.name)
    if queue.id in state.subscriptions:
        why = f"queue {queue.name!r} is that of a subscription: receive from its topic"
        raise Refused("amqp:not-allowed", why)
    return SubscriptionPlace(queue.id, [], [])


def _dynamic_place(
    state: State, command: AttachConsumer, wanted: Dynamic, context: DecisionContext
) -> SubscriptionPlace:
    """Return a new dynamic queue, or a subscription to a new dynamic topic."""
    made = _dynamic_node(state, wanted, context)
    if not wanted.is_topic:
        return SubscriptionPlace(made.node, made.events, [], address=made.address, owns=made.node)
    name, at = temporary_name(made.node), context_after(context, made.events)
    # The subscription is volatile, because it ends with the topic, which only this link has.
    request = SubscriptionRequest(is_no_local=command.subscription_request.is_no_local)
    volatile = replace(command, subscription_request=request)
    place = subscribe(fold(state, made.events), name, volatile, at)
    return place._replace(events=made.events + place.events, address=made.address, owns=made.node)


def _detach_producer(state: State, command: DetachProducer, context: DecisionContext) -> Decision:
    producer = state.producers.get(command.producer)
    if producer is None:
        return [], []
    if events := suspended(state, producer, command.suspension, context):
        return events, []
    events = [ProducerDetached(context.next_offset, context.now_us, producer.id)]
    if not producer.node:
        return events, []
    nodes, closed = (producer.node, producer.owns), () if command.keeps_node else (producer.owns,)
    more, effects = end_nodes(fold(state, events), nodes, context_after(context, events), closed=closed)
    return events + more, effects


def _detach_consumer(state: State, command: DetachConsumer, context: DecisionContext) -> Decision:
    consumer = state.consumers.get(command.consumer)
    if consumer is None:
        return [], []
    bytes_max = max(context.config.tick_changes_max // CHANGES_PER_RETURN, 1) * WORD_BYTES
    unsent, rest = command.unsent[:bytes_max], command.unsent[bytes_max:]
    events = release_unsent(state, consumer.id, unsent, context) if unsent else []
    if rest:
        return events, [Unfinished(replace(command, unsent=rest))]
    queue = state.queues[consumer.queue]
    # What is left after `unsent` is not a failure of the receiver either.
    if command.is_uncounted and queue.held_by(consumer.id).count:
        held = queue.held_by(consumer.id).head(bytes_max // WORD_BYTES)
        return events + release_unsent(fold(state, events), consumer.id, held, context_after(context, events)), [
            Unfinished(replace(command, unsent=b""))
        ]
    after = fold(state, events)
    if kept := suspended(after, consumer, command.suspension, context_after(context, events)):
        return events + kept, []
    part = release_part(after, consumer.id, context_after(context, events))
    if part:
        return events + part, [Unfinished(replace(command, unsent=b"", suspension=Suspension.NONE))]
    events.append(ConsumerDetached(context.next_offset + len(events), context.now_us, consumer.id))
    is_unsubscribed = command.is_closed and queue.id in state.subscriptions and queue.consumers == 1
    is_last = queue.settings.auto_delete and queue.consumers == 1
    if not (queue.lifetime or consumer.owns or is_unsubscribed or is_last):
        return events, []
    after, at = fold(state, events), context_after(context, events)
    deleted = (queue.id,) if is_last or (is_unsubscribed and not queue.lifetime) else ()
    closed = () if command.keeps_node else (consumer.owns,)
    more, effects = end_nodes(after, (queue.id, consumer.owns), at, closed=closed, deleted=deleted)
    return events + more, effects


LINK_DECISIONS: dict[type, Callable[[State, Any, DecisionContext], Decision]] = {
    AttachProducer: _attach_producer,
    DetachProducer: _detach_producer,
    AttachConsumer: _attach_consumer,
    DetachConsumer: _detach_consumer,
    **SUSPENSION_DECISIONS,
}
