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
from ambermq.engine.fold.links import consumer_attached, consumer_detached, producer_attached, producer_detached
from ambermq.engine.fold.marks import duplicated, grouped, identified, keyed, prioritized, scheduled, timed
from ambermq.engine.fold.moves import moved
from ambermq.engine.fold.muxers import attached, detached, drawn, muxer_declared, muxer_deleted, muxer_updated
from ambermq.engine.fold.queues import queue_declared, queue_deleted, queue_updated, subscribed
from ambermq.engine.fold.suspended_links import (
    link_ended,
    link_resumed,
    link_suspended,
    settled_of,
    suspended_at_start,
    tags_kept,
    with_returned,
)
from ambermq.engine.fold.wide_fanout import spread
from ambermq.engine.model.state import EMPTY_STATE, State
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
    after = queue.settle(event.consumer, event.words, event.outcome, event.time_us - state.stepped_us)
    if after.outcome_annotations is queue.outcome_annotations:
        state = replace(state, time_us=event.time_us, queues=state.queues.set(event.queue, after))
    else:
        state = state.with_queue(after, event.time_us)
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


def _due(state: State, event: Due) -> State:
    queue = state.queues.get(event.queue)
    return state if queue is None else state.with_queue(queue.end_delay(event.words), event.time_us)


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


APPLY: Final[Mapping[type, Callable[[State, Any], State]]] = {
    Started: _started,
    QueueDeclared: queue_declared,
    QueueUpdated: queue_updated,
    QueueConfigured: queue_updated,
    QueueDeleted: queue_deleted,
    MuxerDeclared: muxer_declared,
    MuxerUpdated: muxer_updated,
    MuxerDeleted: muxer_deleted,
    Attached: attached,
    Detached: detached,
    ProducerAttached: producer_attached,
    ProducerDetached: producer_detached,
    ConsumerAttached: consumer_attached,
    ConsumerDetached: consumer_detached,
    LinkSuspended: link_suspended,
    LinkResumed: link_resumed,
    LinkEnded: link_ended,
    TagsKept: tags_kept,
    Chunked: _chunked,
    UploadEnded: _upload_ended,
    Published: _published,
    Timed: timed,
    Scheduled: scheduled,
    Prioritized: prioritized,
    Keyed: keyed,
    Identified: identified,
    Duplicated: duplicated,
    Grouped: grouped,
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
    Drawn: drawn,
    Subscribed: subscribed,
}
"""The function that `apply` calls, by the type of the event. A caller that applies many events uses it directly."""
