"""Command and state in, events and effects out. All validation and routing is here; nothing is changed here.

`next_offset` is the offset that the first record of the decision will get, so events are whole when they are born.
"""

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from engine.address import NodeKind, parse_address, queue_name
from engine.commands import (
    AttachConsumer,
    AttachProducer,
    Command,
    DetachConsumer,
    DetachProducer,
    Inspect,
    Publish,
    PurgeQueue,
    RecordCompaction,
    ReportDamage,
    ResetHost,
    Settle,
)
from engine.effects import (
    Answered,
    ConsumerEnded,
    ConsumerReady,
    Effect,
    OutcomeApplied,
    ProducerReady,
    ProducersEnded,
    RefusedCommand,
)
from engine.errors import Refused
from engine.events import (
    Compacted,
    ConsumerAttached,
    ConsumerDetached,
    Damaged,
    Event,
    ProducerAttached,
    ProducerDetached,
    Purged,
    Reset,
    Settled,
    Started,
)
from engine.explaining import DECIDE_EXPLAINING
from engine.moment import Decision, Moment, too_many
from engine.muxer import QUEUE_MUXER, TOPIC_MUXER
from engine.outcome import RELEASED
from engine.publishing import publish
from engine.sending import Sending
from engine.state import EMPTY_STATE, State
from engine.wiring import DECIDE_WIRING, create_queue, existing_queue, predeclared
from engine.word import pack_words

__all__ = ["Decision", "Moment", "decide", "started"]


def decide(state: State, command: Command, moment: Moment) -> Decision:
    """Return what a command makes happen. A refusal is an effect too; only our own mistakes raise."""
    try:
        return _DECIDE[type(command)](state, command, moment)
    except Refused as refusal:
        key = command.key  # type: ignore[union-attr]  # only commands with a key are refused this way
        return [], [RefusedCommand(key, refusal.condition, refusal.description)]


def started(state: State, moment: Moment) -> list[Event]:
    """Return what a start of the broker makes happen: the new epoch, and the predeclared wiring where it is missing.

    It is on the first start, and where a repair could not save it: then the queues are attached to it again.
    """
    begun = Started(moment.next_offset, moment.now_us, state.epoch + 1)
    return [begun, *predeclared(state, replace(moment, next_offset=moment.next_offset + 1))]


def _settle(state: State, command: Settle, moment: Moment) -> Decision:
    effects: list[Effect] = [] if command.reply is None else [OutcomeApplied(command.reply)]
    consumer = state.consumers.get(command.consumer)
    queue = None if consumer is None else state.queues.get(consumer.queue)
    if queue is None:
        return [], effects
    held, taken = queue.held_by(command.consumer), command.words
    if not held.starts_with(taken):
        taken, _ = held.remove(taken)
    if not taken:
        return [], effects
    event = Settled(moment.next_offset, moment.now_us, queue.id, command.consumer, command.outcome, taken)
    return [event], effects


def _attach_producer(state: State, command: AttachProducer, moment: Moment) -> Decision:
    if len(state.producers) >= moment.config.producers_max:
        raise too_many("producers", moment.config.producers_max)
    muxer, destination, events = _target(state, command.address, moment) if command.address else (0, None, [])
    sending = Sending(command.unroutable, command.is_immediate, is_addressed=destination is None)
    offset = moment.next_offset + len(events)
    events.append(
        ProducerAttached(offset, moment.now_us, muxer, destination or "", command.container, command.link, sending)
    )
    return events, [ProducerReady(command.key, offset)]


def _target(state: State, address: str, moment: Moment) -> tuple[int, str | None, list[Event]]:
    """Return the muxer and destination that an address means for who sends, and what makes its queue exist."""
    node = parse_address(address, name_bytes_max=moment.config.name_bytes_max)
    if node.kind is NodeKind.QUEUE:
        events = [] if node.name in state.queue_names else create_queue(state, node.name, moment)
        return _muxer_id(state, QUEUE_MUXER), node.name, events
    if node.kind is NodeKind.TOPIC:
        return _muxer_id(state, TOPIC_MUXER), node.name, []
    return _muxer_id(state, node.name), node.destination, []


def _muxer_id(state: State, name: str) -> int:
    muxer = state.muxer_names.get(name)
    if muxer is None:
        raise Refused("amqp:not-found", f"no muxer {name!r}")
    return muxer


def _attach_consumer(state: State, command: AttachConsumer, moment: Moment) -> Decision:
    if len(state.consumers) >= moment.config.consumers_max:
        raise too_many("consumers", moment.config.consumers_max)
    name = queue_name(command.address, name_bytes_max=moment.config.name_bytes_max)
    events = [] if name in state.queue_names else create_queue(state, name, moment)
    queue_id = events[0].offset if events else state.queue_names[name]
    offset = moment.next_offset + len(events)
    events.append(ConsumerAttached(offset, moment.now_us, queue_id, command.container, command.link))
    return events, [ConsumerReady(command.key, offset)]


def _detach_producer(state: State, command: DetachProducer, moment: Moment) -> Decision:
    if command.producer not in state.producers:
        return [], []
    return [ProducerDetached(moment.next_offset, moment.now_us, command.producer)], []


def _detach_consumer(state: State, command: DetachConsumer, moment: Moment) -> Decision:
    consumer = state.consumers.get(command.consumer)
    if consumer is None:
        return [], []
    events: list[Event] = []
    offset, now_us = moment.next_offset, moment.now_us
    queue = state.queues[consumer.queue]
    unsent, _ = queue.held_by(consumer.id).remove(command.unsent)
    if unsent:
        events.append(Settled(offset, now_us, queue.id, consumer.id, RELEASED, unsent))
        offset += 1
    events.append(ConsumerDetached(offset, now_us, consumer.id))
    return events, []


def _purge_queue(state: State, command: PurgeQueue, moment: Moment) -> Decision:
    queue = existing_queue(state, command.name, moment.config)
    count = queue.available
    if not count:
        return [], [Answered(command.key, {"messages": 0})]
    event = Purged(moment.next_offset, moment.now_us, queue.id, moment.next_offset)
    return [event], [Answered(command.key, {"messages": count})]


def _reset_host(state: State, command: ResetHost, moment: Moment) -> Decision:
    events: list[Event] = [Reset(moment.next_offset, moment.now_us)]
    events += predeclared(EMPTY_STATE, replace(moment, next_offset=moment.next_offset + 1))
    why = ("amqp:resource-deleted", "the virtual host was reset")
    effects: list[Effect] = [ConsumerEnded(consumer, *why) for consumer in sorted(state.consumers.keys())]
    effects.append(ProducersEnded(frozenset(state.producers.keys()), *why))
    messages = sum(queue.depth for queue in state.queues.values())
    return events, [*effects, Answered(command.key, {"queues": len(state.queues), "messages": messages})]


def _record_compaction(_state: State, command: RecordCompaction, moment: Moment) -> Decision:
    event = Compacted(
        moment.next_offset, moment.now_us, command.horizon, *command.segments, *command.records, *command.sizes
    )
    told = {"offset": event.offset, "horizon": event.horizon}
    for name, (before, after) in (
        ("segments", command.segments),
        ("records", command.records),
        ("bytes", command.sizes),
    ):
        told |= {f"{name}_before": before, f"{name}_after": after}
    return [event], [Answered(command.key, told)]


def _report_damage(state: State, command: ReportDamage, moment: Moment) -> Decision:
    if command.queue not in state.queues:
        return [], []
    return [Damaged(moment.next_offset, moment.now_us, command.queue, pack_words([command.word]))], []


def _inspect(state: State, command: Inspect, _moment: Moment) -> Decision:
    return [], [Answered(command.key, command.read(state))]


_DECIDE: dict[type, Callable[[State, Any, Moment], Decision]] = {
    Publish: publish,
    Settle: _settle,
    AttachProducer: _attach_producer,
    DetachProducer: _detach_producer,
    AttachConsumer: _attach_consumer,
    DetachConsumer: _detach_consumer,
    PurgeQueue: _purge_queue,
    ResetHost: _reset_host,
    ReportDamage: _report_damage,
    RecordCompaction: _record_compaction,
    Inspect: _inspect,
    **DECIDE_WIRING,
    **DECIDE_EXPLAINING,
}
