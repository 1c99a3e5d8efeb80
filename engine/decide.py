"""Command and state in, events and effects out. All validation and routing is here; nothing is changed here.

`next_offset` is the offset that the first record of the decision will get, so events are whole when they are born.
"""

from collections.abc import Callable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from engine.address import queue_name
from engine.commands import (
    AttachConsumer,
    AttachProducer,
    Command,
    DeclareQueue,
    DeleteQueue,
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
from engine.config import EngineConfig
from engine.effects import (
    AT_CLOSE,
    NOW,
    Answered,
    ConsumerEnded,
    ConsumerReady,
    Effect,
    OutcomeApplied,
    ProducerReady,
    ProducersEnded,
    PublishDone,
    RefusedCommand,
)
from engine.errors import Refused
from engine.events import (
    Attached,
    Chunked,
    Compacted,
    ConsumerAttached,
    ConsumerDetached,
    Damaged,
    Detached,
    Event,
    MuxerDeclared,
    ProducerAttached,
    ProducerDetached,
    Published,
    Purged,
    QueueDeclared,
    QueueDeleted,
    Reset,
    Settled,
    Started,
)
from engine.muxer import QUEUE_MUXER, MuxerKind
from engine.outcome import RELEASED, OutcomeKind
from engine.queue import Queue, Settings
from engine.state import EMPTY_STATE, State
from engine.word import make_words, pack_words, total_size

__all__ = ["Decision", "Moment", "decide", "started"]


class Moment(Struct, frozen=True):
    """What a decision may depend on besides command and state."""

    now_us: int
    next_offset: int
    room_bytes: int
    """Bytes that publishing may still write."""
    config: EngineConfig


Decision = tuple[list[Event], list[Effect]]


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
    return [begun, *_predeclared(state, replace(moment, next_offset=moment.next_offset + 1))]


def _predeclared(state: State, moment: Moment) -> list[Event]:
    """Return the predeclared wiring where it is missing."""
    if QUEUE_MUXER in state.muxer_names:
        return []
    muxer = moment.next_offset
    events: list[Event] = [MuxerDeclared(muxer, moment.now_us, QUEUE_MUXER, MuxerKind.DESTINATION)]
    events += [
        Attached(muxer + 1 + index, moment.now_us, muxer, queue_id, state.queues[queue_id].name)
        for index, queue_id in enumerate(sorted(state.queues.keys()))
    ]
    return events


def _publish(state: State, command: Publish, moment: Moment) -> Decision:
    producer = state.producers.get(command.producer)
    if producer is None:
        return [], [_undone(command, "amqp:not-found", "the producer is gone")]
    muxer = state.muxers.get(producer.muxer)
    queues = () if muxer is None else muxer.route(producer.destination)
    count = len(command.bodies)
    if not queues:
        released = PublishDone(command.link, command.first_id, count, OutcomeKind.RELEASED, command.settled, after=NOW)
        return [], [released]
    if moment.room_bytes < command.size:
        return [], [_undone(command, "amqp:resource-limit-exceeded", "the broker has no room left on its disk")]
    fullest, room = _fullest(state, queues, moment.config)
    if room < count:
        return _publish_in_part(state, command, moment, fullest, room)
    after = AT_CLOSE if command.durable else NOW
    done = PublishDone(command.link, command.first_id, count, OutcomeKind.ACCEPTED, command.settled, after=after)
    if command.size > moment.config.chunk_bytes:
        return _large_run(command, queues, moment), [done]
    words = make_words(moment.next_offset, map(len, command.bodies))
    event = Published(
        moment.next_offset,
        moment.now_us,
        queues,
        command.producer,
        words,
        total_size(words),
        command.durable,
        (),
        command.bodies,
        command.id_hashes,
    )
    return [event], [done]


def _fullest(state: State, queue_ids: tuple[int, ...], config: EngineConfig) -> tuple[Queue, int]:
    """Return the queue that takes the fewest messages more, the first of them, and how many."""
    fullest, room = None, 0
    for queue_id in queue_ids:
        queue = state.queues[queue_id]
        left = (queue.settings.messages_max or config.queue_messages_max) - queue.available
        if fullest is None or left < room:
            fullest, room = queue, max(0, left)
    assert fullest is not None, "a route leads somewhere"
    return fullest, room


def _publish_in_part(state: State, command: Publish, moment: Moment, queue: Queue, room: int) -> Decision:
    """Publish the first `room` messages of a run and reject the others, as runs of one would fare."""
    first, rest = command.split(room)
    events, effects = _publish(state, first, moment) if room else ([], [])
    refusal = f"queue {queue.name!r} is full: it holds {queue.available + room} messages"
    return events, [*effects, _undone(rest, "amqp:resource-limit-exceeded", refusal)]


def _undone(command: Publish, condition: str, description: str) -> PublishDone:
    count = len(command.bodies)
    return PublishDone(
        command.link, command.first_id, count, OutcomeKind.REJECTED, command.settled, condition, description, after=NOW
    )


def _large_run(command: Publish, queues: tuple[int, ...], moment: Moment) -> list[Event]:
    """Return the events of a run that may be more than a batch holds: a run of one a message, cut where it is large."""
    events: list[Event] = []
    for body, id_hash in zip(command.bodies, command.id_hashes, strict=True):
        size = moment.config.chunk_bytes
        view = memoryview(body)
        pieces = [view[start : start + size] for start in range(0, len(view), size)] or [view]
        chunks = tuple(range(moment.next_offset, moment.next_offset + len(pieces) - 1))
        events += [
            Chunked(offset, moment.now_us, command.producer, piece)
            for offset, piece in zip(chunks, pieces[:-1], strict=True)
        ]
        offset = moment.next_offset + len(chunks)
        words = make_words(offset, [len(view)])
        events.append(
            Published(
                offset,
                moment.now_us,
                queues,
                command.producer,
                words,
                total_size(words),
                command.durable,
                chunks,
                pieces[-1:] if chunks else [body],
                [id_hash],
            )
        )
        moment = replace(moment, next_offset=offset + 1)
    return events


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
        raise _too_many("producers", moment.config.producers_max)
    name, events = _node(state, command.address, moment)
    offset = moment.next_offset + len(events)
    muxer = state.muxer_names[QUEUE_MUXER]
    events.append(ProducerAttached(offset, moment.now_us, muxer, name, command.container, command.link))
    return events, [ProducerReady(command.key, offset)]


def _attach_consumer(state: State, command: AttachConsumer, moment: Moment) -> Decision:
    if len(state.consumers) >= moment.config.consumers_max:
        raise _too_many("consumers", moment.config.consumers_max)
    name, events = _node(state, command.address, moment)
    queue_id = events[0].offset if events else state.queue_names[name]
    offset = moment.next_offset + len(events)
    events.append(ConsumerAttached(offset, moment.now_us, queue_id, command.container, command.link))
    return events, [ConsumerReady(command.key, offset)]


def _node(state: State, address: str, moment: Moment) -> tuple[str, list[Event]]:
    """Return the queue name that an address means, and what makes that queue exist where it does not yet."""
    name = queue_name(address, name_bytes_max=moment.config.name_bytes_max)
    if name in state.queue_names:
        return name, []
    if not moment.config.auto_create:
        raise Refused("amqp:not-found", f"no queue {name!r}; addresses are not created on this broker (auto_create)")
    return name, _new_queue(state, name, Settings(), moment)


def _new_queue(state: State, name: str, settings: Settings, moment: Moment) -> list[Event]:
    if len(state.queues) >= moment.config.queues_max:
        raise _too_many("queues", moment.config.queues_max)
    offset, now_us = moment.next_offset, moment.now_us
    return [
        QueueDeclared(offset, now_us, name, settings),
        Attached(offset + 1, now_us, state.muxer_names[QUEUE_MUXER], offset, name),
    ]


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


def _declare_queue(state: State, command: DeclareQueue, moment: Moment) -> Decision:
    name = queue_name(command.name, name_bytes_max=moment.config.name_bytes_max)
    queue = state.queue_named(name)
    if queue is None:
        return _new_queue(state, name, command.settings, moment), [Answered(command.key, {"created": True})]
    if queue.settings != command.settings:
        raise Refused(
            "amqp:precondition-failed",
            f"queue {name!r} exists with {_told(queue.settings)}, asked for {_told(command.settings)}",
        )
    return [], [Answered(command.key, {"created": False})]


def _delete_queue(state: State, command: DeleteQueue, moment: Moment) -> Decision:
    queue = _existing(state, command.name, moment.config)
    consumers = [consumer.id for consumer in state.consumers.values() if consumer.queue == queue.id]
    if command.if_unused and consumers:
        raise Refused("amqp:precondition-failed", f"queue {queue.name!r} has {len(consumers)} consumers")
    if command.if_empty and queue.depth:
        raise Refused("amqp:precondition-failed", f"queue {queue.name!r} holds {queue.depth} messages")
    events: list[Event] = []
    offset = moment.next_offset
    for muxer in state.muxers.values():
        for destination in [name for name in (queue.name,) if queue.id in muxer.route(name)]:
            events.append(Detached(offset + len(events), moment.now_us, muxer.id, queue.id, destination))
    events.append(QueueDeleted(offset + len(events), moment.now_us, queue.id))
    ended: list[Effect] = [
        ConsumerEnded(consumer, "amqp:resource-deleted", f"queue {queue.name!r} was deleted")
        for consumer in sorted(consumers)
    ]
    return events, [*ended, Answered(command.key, {"messages": queue.depth})]


def _purge_queue(state: State, command: PurgeQueue, moment: Moment) -> Decision:
    queue = _existing(state, command.name, moment.config)
    count = queue.available
    if not count:
        return [], [Answered(command.key, {"messages": 0})]
    event = Purged(moment.next_offset, moment.now_us, queue.id, moment.next_offset)
    return [event], [Answered(command.key, {"messages": count})]


def _reset_host(state: State, command: ResetHost, moment: Moment) -> Decision:
    events: list[Event] = [Reset(moment.next_offset, moment.now_us)]
    events += _predeclared(EMPTY_STATE, replace(moment, next_offset=moment.next_offset + 1))
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


def _told(settings: Settings) -> str:
    return f"messages_max {settings.messages_max} of template {settings.template!r}"


def _too_many(things: str, limit: int) -> Refused:
    return Refused("amqp:resource-limit-exceeded", f"at most {limit} {things} ({things}_max)")


def _existing(state: State, address: str, config: EngineConfig) -> Queue:
    name = queue_name(address, name_bytes_max=config.name_bytes_max)
    queue = state.queue_named(name)
    if queue is None:
        raise Refused("amqp:not-found", f"no queue {name!r}")
    return queue


def _report_damage(state: State, command: ReportDamage, moment: Moment) -> Decision:
    if command.queue not in state.queues:
        return [], []
    return [Damaged(moment.next_offset, moment.now_us, command.queue, pack_words([command.word]))], []


def _inspect(state: State, command: Inspect, _moment: Moment) -> Decision:
    return [], [Answered(command.key, command.read(state))]


_DECIDE: dict[type, Callable[[State, Any, Moment], Decision]] = {
    Publish: _publish,
    Settle: _settle,
    AttachProducer: _attach_producer,
    DetachProducer: _detach_producer,
    AttachConsumer: _attach_consumer,
    DetachConsumer: _detach_consumer,
    DeclareQueue: _declare_queue,
    DeleteQueue: _delete_queue,
    PurgeQueue: _purge_queue,
    ResetHost: _reset_host,
    ReportDamage: _report_damage,
    RecordCompaction: _record_compaction,
    Inspect: _inspect,
}
