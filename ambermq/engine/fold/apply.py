"""The fold: a state and an event give the next state. It is total and never refuses, so an old log always replays.

An event that refers to a missing object (a deleted queue, a record lost to damage) changes nothing.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from msgspec.structs import replace

from ambermq.engine.entries.discard_reason import DiscardReason
from ambermq.engine.entries.entry import Entry
from ambermq.engine.entries.entry_word import WORD_BYTES, pack_words
from ambermq.engine.entries.marks import SetAsideFor
from ambermq.engine.entries.outcome import MODIFIED_FAILED
from ambermq.engine.events import (
    Acquired,
    Attached,
    Chunked,
    ClockStepped,
    Committed,
    Compacted,
    ConsumerAttached,
    ConsumerDetached,
    Damaged,
    Detached,
    Discarded,
    Drawn,
    Due,
    Duplicated,
    Event,
    Grouped,
    Identified,
    Keyed,
    LinkEnded,
    LinkResumed,
    LinkSuspended,
    Lost,
    Moved,
    MuxerDeclared,
    MuxerDeleted,
    MuxerUpdated,
    Prioritized,
    ProducerAttached,
    ProducerDetached,
    Published,
    Purged,
    QueueConfigured,
    QueueDeclared,
    QueueDeleted,
    QueueUpdated,
    Reset,
    Scheduled,
    SetAside,
    Settled,
    Started,
    Subscribed,
    TagsKept,
    Timed,
    UploadEnded,
)
from ambermq.engine.fold.moves import moved
from ambermq.engine.fold.node_links import linked, unlinked
from ambermq.engine.fold.suspended_links import (
    link_ended,
    link_resumed,
    link_suspended,
    settled_of,
    suspended_at_start,
    tags_kept,
    with_returned,
    without_queue,
    without_tags,
)
from ambermq.engine.fold.wide_fanout import spread
from ambermq.engine.model.attachment import Attachment
from ambermq.engine.model.muxer import Muxer
from ambermq.engine.model.queue import new_queue
from ambermq.engine.model.queue_parts.last_values import keyed_by
from ambermq.engine.model.state import EMPTY_STATE, Consumer, Producer, State
from ambermq.snapshot.persistent_map import PersistentMap
from ambermq.snapshot.persistent_queue import EMPTY_QUEUE

__all__ = ["APPLY", "acquired", "apply", "fold", "settled"]

_FEW: Final = 8


def apply(state: State, event: Event) -> State:
    """Return the state after an event."""
    return APPLY[type(event)](state, event)


def fold(state: State, events: Iterable[Event]) -> State:
    """Return the state after events, in order."""
    for event in events:
        state = APPLY[type(event)](state, event)
    return state


def _published(state: State, event: Published) -> State:
    if event.chunks and state.uploads:
        state = state.without_upload(event.chunks[0])
    if len(event.queues) > _FEW:
        return _published_to_many(state, event)
    for queue_id in event.queues:
        queue = state.queues.get(queue_id)
        if queue is None:
            continue
        queue = queue.push(event.words, event.size, event.time_us - state.stepped_us)
        if event.chunks:
            queue = queue.with_entry(event.offset, Entry(chunks=event.chunks))
        state = replace(state, time_us=event.time_us, queues=state.queues.set(queue_id, queue))
    return state


def _published_to_many(state: State, event: Published) -> State:
    """Return the same state as for few queues, at a quarter of the cost: the map of queues is copied once."""
    queues = state.queues.mutate()
    spread(queues, event, event.queues, state.elapsed_us(event.time_us))
    return state.with_fields(time_us=event.time_us, queues=queues.finish())


def acquired(state: State, event: Acquired) -> State:
    """Return the state after Acquired: the same as `apply`, without the lookup of the event's type."""
    queue = state.queues.get(event.queue)
    if queue is None:
        return state
    queues = state.queues.set(event.queue, queue.acquire(event.consumers, event.words))
    return replace(state, time_us=event.time_us, queues=queues)


def settled(state: State, event: Settled) -> State:
    """Return the state after Settled: the same as `apply`, without the lookup of the event's type."""
    queue = state.queues.get(event.queue)
    if queue is None:
        return state
    queues = state.queues.set(
        event.queue, queue.settle(event.consumer, event.words, event.outcome, event.time_us - state.stepped_us)
    )
    state = replace(state, time_us=event.time_us, queues=queues)
    if state.suspended_held:
        return settled_of(state, event.consumer, len(event.words) // WORD_BYTES)
    return state


def _started(state: State, event: Started) -> State:
    queues = state.queues
    with queues.mutate() as mutation:
        for queue_id, queue in queues.items():
            if queue.acquired or queue.consumers:
                mutation[queue_id] = replace(with_returned(queue, event.kept), consumers=0)
        queues = mutation.finish()
    return suspended_at_start(state, event).with_fields(
        epoch=event.epoch,
        time_us=event.time_us,
        queues=queues,
        consumers=PersistentMap(),
        producers=PersistentMap(),
        links=PersistentMap(),
        receivers=PersistentMap(),
        mode=event.mode,
        uploads=PersistentMap(),
    )


def _queue_declared(state: State, event: QueueDeclared) -> State:
    state = _with_window(state, event.offset, event.settings.dedup_window_ms)
    return state.with_fields(
        time_us=event.time_us,
        queues=state.queues.set(event.offset, new_queue(event.offset, event.name, event.settings, event.lifetime)),
        queue_names=state.queue_names.set(event.name, event.offset),
    )


def _queue_updated(state: State, event: QueueUpdated | QueueConfigured) -> State:
    queue = state.queues.get(event.queue)
    if queue is None:
        return state
    return _with_window(state, queue.id, event.settings.dedup_window_ms).with_queue(
        queue.with_settings(event.settings), event.time_us
    )


def _with_window(state: State, queue: int, window_ms: int) -> State:
    """Return the state with a queue among those with a dedup window if its settings say so."""
    known = state.deduplicating
    if bool(window_ms) is (queue in known):
        return state
    return state.with_fields(deduplicating=known.delete(queue) if queue in known else known.set(queue, None))


def _queue_deleted(state: State, event: QueueDeleted) -> State:
    queue = state.queues.get(event.queue)
    if queue is None:
        return state
    gone = state.receivers.get(event.queue)
    if gone is not None:
        consumers, receivers = _without(state.consumers, gone), state.receivers.delete(event.queue)
        state = state.with_fields(consumers=consumers, receivers=receivers)
    if event.queue in state.subscriptions:
        state = _unsubscribed(state, event.queue)
    if state.suspended:
        state = without_queue(state, event.queue)
    return _without_producers(state, event.queue).with_fields(
        time_us=event.time_us,
        queues=state.queues.delete(event.queue),
        deduplicating=_without(state.deduplicating, [event.queue]),
        queue_names=_without_name(state.queue_names, queue.name, event.queue),
    )


def _unsubscribed(state: State, queue: int) -> State:
    subscription = state.subscriptions[queue]
    return state.with_fields(
        subscriptions=state.subscriptions.delete(queue),
        subscription_queues=_without_name(state.subscription_queues, subscription.key, queue),
        no_locals=_without(state.no_locals, [queue]),
    )


def _without_producers(state: State, node: int) -> State:
    """Return the state without the producers that send to a muxer, or to a queue with a lifetime policy."""
    gone = state.links.get(node)
    if gone is None:
        return state
    links = state.links.delete(node)
    for producer in gone:
        for other in state.producers[producer].nodes:
            links = unlinked(links, other, producer)
        state = without_tags(state, producer)
    return state.with_fields(producers=_without(state.producers, gone), links=links)


def _muxer_declared(state: State, event: MuxerDeclared) -> State:
    muxer = Muxer(event.offset, event.name, event.kind, event.options, PersistentMap())
    return state.with_fields(
        time_us=event.time_us,
        muxers=state.muxers.set(event.offset, muxer),
        muxer_names=state.muxer_names.set(event.name, event.offset),
    )


def _muxer_updated(state: State, event: MuxerUpdated) -> State:
    muxer = state.muxers.get(event.muxer)
    if muxer is None:
        return state
    return state.with_fields(
        time_us=event.time_us, muxers=state.muxers.set(muxer.id, replace(muxer, options=event.options))
    )


def _attached(state: State, event: Attached) -> State:
    muxer = state.muxers.get(event.muxer)
    if muxer is None:
        return state
    muxers = state.muxers.set(muxer.id, muxer.attach(Attachment(event.offset, event.member, event.argument)))
    return state.with_fields(time_us=event.time_us, muxers=muxers)


def _detached(state: State, event: Detached) -> State:
    muxer = state.muxers.get(event.muxer)
    if muxer is None:
        return state
    gone = [event.attachment] if event.attachment else _attachments_like(muxer, event)
    for attachment in gone:
        muxer = muxer.detach(attachment)
    return state.with_fields(time_us=event.time_us, muxers=state.muxers.set(muxer.id, muxer))


def _attachments_like(muxer: Muxer, event: Detached) -> list[int]:
    """Return the attachments that a record of version 0.1 means. Such a record has no id of the attachment."""
    wanted = (event.member, event.argument)
    return [one.id for one in muxer.attachments.values() if (one.member, one.argument) == wanted]


def _muxer_deleted(state: State, event: MuxerDeleted) -> State:
    muxer = state.muxers.get(event.muxer)
    if muxer is None:
        return state
    return _without_producers(state, muxer.id).with_fields(
        time_us=event.time_us,
        muxers=state.muxers.delete(muxer.id),
        muxer_names=state.muxer_names.delete(muxer.name),
        draws=_without(state.draws, [muxer.id]),
    )


def _drawn(state: State, event: Drawn) -> State:
    if event.muxer not in state.muxers:
        return state
    draws = state.draws.set(event.muxer, state.draws.get(event.muxer, 0) + event.count)
    return state.with_fields(time_us=event.time_us, draws=draws)


def _producer_attached(state: State, event: ProducerAttached) -> State:
    names = (event.muxer, event.destination, event.container, event.link, event.sending, event.node, event.owns)
    producer, links = Producer(event.offset, *names, event.user, event.keeping), state.links
    for node in producer.nodes:
        links = linked(links, node, producer.id)
    producers = state.producers.set(producer.id, producer)
    return state.with_fields(time_us=event.time_us, producers=producers, links=links)


def _producer_detached(state: State, event: ProducerDetached) -> State:
    producer = state.producers.get(event.producer)
    if producer is None:
        return state.with_fields(time_us=event.time_us)
    links = state.links
    for node in producer.nodes:
        links = unlinked(links, node, producer.id)
    state = without_tags(state, producer.id)
    return state.with_fields(time_us=event.time_us, producers=state.producers.delete(producer.id), links=links)


def _consumer_attached(state: State, event: ConsumerAttached) -> State:
    names = (event.queue, event.container, event.link, event.selector, event.owns, event.is_exclusive)
    consumer = Consumer(event.offset, *names, event.user, event.keeping)
    state = state.with_fields(time_us=event.time_us, consumers=state.consumers.set(event.offset, consumer))
    queue = state.queues.get(event.queue)
    if queue is None:
        return state
    state = state.with_fields(receivers=linked(state.receivers, queue.id, event.offset))
    return state.with_queue(replace(queue, consumers=queue.consumers + 1), event.time_us)


def _consumer_detached(state: State, event: ConsumerDetached) -> State:
    consumer = state.consumers.get(event.consumer)
    if consumer is None:
        return state
    state = state.with_fields(time_us=event.time_us, consumers=state.consumers.delete(consumer.id))
    queue = state.queues.get(consumer.queue)
    if queue is None:
        return state
    state = state.with_fields(receivers=unlinked(state.receivers, queue.id, consumer.id))
    queue = queue.release_consumer(consumer.id, MODIFIED_FAILED, state.elapsed_us(event.time_us))
    return state.with_queue(replace(queue, consumers=queue.consumers - 1), event.time_us)


def _purged(state: State, event: Purged) -> State:
    queue = state.queues.get(event.queue)
    if queue is None:
        return state
    return state.with_queue(queue.purge(event.before, scheduled=bool(event.scheduled)), event.time_us)


def _damaged(state: State, event: Damaged) -> State:
    queue = state.queues.get(event.queue)
    return state if queue is None else state.with_queue(queue.remove_damaged(event.words), event.time_us)


def _discarded(state: State, event: Discarded) -> State:
    queue = state.queues.get(event.queue)
    if queue is None:
        return state
    counter = "moved" if event.reason is DiscardReason.EDITED else "discarded"
    return state.with_queue(queue.without(event.words, counter)[1], event.time_us)


def _set_aside(state: State, event: SetAside) -> State:
    queue = state.queues.get(event.queue)
    if queue is None:
        return state
    return state.with_queue(queue.set_aside(event.words, SetAsideFor(event.reason)), event.time_us)


def _scheduled(state: State, event: Scheduled) -> State:
    due_us = state.elapsed_us(event.due_us)
    queues = state.queues.mutate()
    for queue_id in event.queues:
        queue = queues.get(queue_id)
        if queue is not None:
            queues[queue_id] = queue.schedule(event.words, due_us)
    return state.with_fields(time_us=event.time_us, queues=queues.finish())


def _due(state: State, event: Due) -> State:
    queue = state.queues.get(event.queue)
    return state if queue is None else state.with_queue(queue.end_delay(event.words), event.time_us)


def _subscribed(state: State, event: Subscribed) -> State:
    if event.queue not in state.queues:
        return state
    subscription = event.subscription
    state = state.with_fields(time_us=event.time_us, subscriptions=state.subscriptions.set(event.queue, subscription))
    if subscription.key is not None:
        state = state.with_fields(subscription_queues=state.subscription_queues.set(subscription.key, event.queue))
    if subscription.is_no_local and subscription.container is not None:
        state = state.with_fields(no_locals=state.no_locals.set(event.queue, subscription.container))
    return state


def _timed(state: State, event: Timed) -> State:
    expires_us = state.elapsed_us(event.time_us) + 1000 * event.ttl_ms
    queues = state.queues.mutate()
    for queue_id in event.queues:
        queue = queues.get(queue_id)
        if queue is not None:
            queues[queue_id] = queue.with_expiry(event.first, event.count, expires_us)
    return state.with_fields(time_us=event.time_us, queues=queues.finish())


def _prioritized(state: State, event: Prioritized) -> State:
    queues = state.queues.mutate()
    for queue_id in event.queues:
        queue = queues.get(queue_id)
        if queue is not None:
            queues[queue_id] = queue.prioritize(event.first, event.count, event.priority)
    return state.with_fields(time_us=event.time_us, queues=queues.finish())


def _keyed(state: State, event: Keyed) -> State:
    queues, keys = state.queues.mutate(), keyed_by(event.keys)
    for queue_id in event.queues:
        queue = queues.get(queue_id)
        if queue is not None:
            queues[queue_id] = queue.with_keys(event.first, keys)
    return state.with_fields(time_us=event.time_us, queues=queues.finish())


def _identified(state: State, event: Identified) -> State:
    now_us, queues = state.elapsed_us(event.time_us), state.queues.mutate()
    for queue_id in event.queues:
        queue = queues.get(queue_id)
        if queue is not None:
            queues[queue_id] = queue.identify(event.words, event.digests, now_us, event.ids_max)
    return state.with_fields(time_us=event.time_us, queues=queues.finish())


def _duplicated(state: State, event: Duplicated) -> State:
    queues, count = state.queues.mutate(), len(event.words) // WORD_BYTES
    for queue_id in event.queues:
        queue = queues.get(queue_id)
        if queue is not None:
            queues[queue_id] = replace(queue, counters=queue.counters.plus("duplicates", count))
    return state.with_fields(time_us=event.time_us, queues=queues.finish())


def _grouped(state: State, event: Grouped) -> State:
    queues = state.queues.mutate()
    for queue_id in event.queues:
        queue = queues.get(queue_id)
        if queue is not None:
            queues[queue_id] = queue.group(event.first, event.count, event.codes)
    return state.with_fields(time_us=event.time_us, queues=queues.finish())


def _clock_stepped(state: State, event: ClockStepped) -> State:
    return state.with_fields(time_us=event.time_us, stepped_us=state.stepped_us + event.time_us - event.old_us)


def _reset(state: State, event: Reset) -> State:
    kept = {"epoch": state.epoch, "mode": state.mode, "stepped_us": state.stepped_us}
    return EMPTY_STATE.with_fields(time_us=event.time_us, **kept)


def _chunked(state: State, event: Chunked) -> State:
    if not event.upload:
        return state.with_fields(time_us=event.time_us)
    words = state.uploads.get(event.upload, EMPTY_QUEUE).push(pack_words([event.offset << 16]))
    return state.with_fields(time_us=event.time_us, uploads=state.uploads.set(event.upload, words))


def _upload_ended(state: State, event: UploadEnded) -> State:
    return state.without_upload(event.upload).with_fields(time_us=event.time_us)


def _nothing(state: State, event: Lost | Compacted | Committed) -> State:
    return state.with_fields(time_us=event.time_us)


def _without_name(names: "PersistentMap[Any, int]", name: object, one: int) -> "PersistentMap[Any, int]":
    """Return names without `name` if it still belongs to the object `one`; another object may have the name now."""
    return names.delete(name) if names.get(name) == one else names


def _without(table: "PersistentMap[int, Any]", keys: Iterable[int]) -> "PersistentMap[int, Any]":
    for key in keys:
        if key in table:
            table = table.delete(key)
    return table


APPLY: Final[Mapping[type, Callable[[State, Any], State]]] = {
    Started: _started,
    QueueDeclared: _queue_declared,
    QueueUpdated: _queue_updated,
    QueueConfigured: _queue_updated,
    QueueDeleted: _queue_deleted,
    MuxerDeclared: _muxer_declared,
    MuxerUpdated: _muxer_updated,
    MuxerDeleted: _muxer_deleted,
    Attached: _attached,
    Detached: _detached,
    ProducerAttached: _producer_attached,
    ProducerDetached: _producer_detached,
    ConsumerAttached: _consumer_attached,
    ConsumerDetached: _consumer_detached,
    LinkSuspended: link_suspended,
    LinkResumed: link_resumed,
    LinkEnded: link_ended,
    TagsKept: tags_kept,
    Chunked: _chunked,
    UploadEnded: _upload_ended,
    Published: _published,
    Timed: _timed,
    Scheduled: _scheduled,
    Prioritized: _prioritized,
    Keyed: _keyed,
    Identified: _identified,
    Duplicated: _duplicated,
    Grouped: _grouped,
    Acquired: acquired,
    Settled: settled,
    Purged: _purged,
    Damaged: _damaged,
    Discarded: _discarded,
    SetAside: _set_aside,
    Due: _due,
    Moved: moved,
    Lost: _nothing,
    Reset: _reset,
    Compacted: _nothing,
    Committed: _nothing,
    ClockStepped: _clock_stepped,
    Drawn: _drawn,
    Subscribed: _subscribed,
}
"""The function that `apply` calls, by the type of the event. A caller that applies many events uses it directly."""
