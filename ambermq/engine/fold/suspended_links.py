"""The fold of events of link recovery.

Rule 1. A suspended consumer is no consumer: it counts for no queue. What it holds stays acquired by its id.
Rule 2. The newest suspended link of a key is the one that is found by it.
"""

from collections.abc import Iterable
from dataclasses import replace as with_changes
from typing import Final

from msgspec.structs import replace

from ambermq.engine.entries.outcome import MODIFIED_FAILED
from ambermq.engine.events import LinkEnded, LinkResumed, LinkSuspended, Started, TagsKept
from ambermq.engine.fold.node_links import unlinked
from ambermq.engine.model.queue import Queue
from ambermq.engine.model.state import Consumer, Producer, State, Tags
from ambermq.engine.model.suspended_link import SuspendedLink
from ambermq.snapshot.persistent_map import PersistentMap

__all__ = [
    "link_ended",
    "link_resumed",
    "link_suspended",
    "settled_of",
    "suspended_at_start",
    "tags_kept",
    "with_returned",
    "without_queue",
    "without_tags",
]

_NO_TAGS: Final[Tags] = PersistentMap()


def link_suspended(state: State, event: LinkSuspended) -> State:
    """Return the state with a link suspended, or with the end of a suspended link."""
    state = state.with_fields(time_us=event.time_us)
    known = state.suspended.get(event.link)
    if known is not None:
        suspended = state.suspended.set(known.id, with_changes(known, until_us=event.until_us))
        return state.with_fields(suspended=suspended)
    consumer = state.consumers.get(event.link)
    if consumer is not None:
        return _added(_without_consumer(state, consumer), _suspended_consumer(state, consumer, event.until_us))
    producer = state.producers.get(event.link)
    if producer is not None:
        return _added(_without_producer(state, producer), _suspended_producer(state, producer, event.until_us))
    return state


def link_resumed(state: State, event: LinkResumed) -> State:
    """Return the state after a new link took over what a suspended one left unsettled."""
    state = state.with_fields(time_us=event.time_us)
    known = state.suspended.get(event.link)
    if known is None:
        return state
    state = _removed(state, known)
    queue = state.queues.get(known.queue)
    if queue is not None and known.id in queue.acquired:
        held = queue.acquired[known.id]
        acquired = queue.acquired.delete(known.id).set(event.successor, held)
        state = state.with_queue(replace(queue, acquired=acquired), event.time_us)
    if known.id in state.tags:
        tags = state.tags[known.id]
        state = state.with_fields(tags=state.tags.delete(known.id).set(event.successor, tags))
    return state


def link_ended(state: State, event: LinkEnded) -> State:
    """Return the state without a suspended link."""
    state = state.with_fields(time_us=event.time_us)
    known = state.suspended.get(event.link)
    if known is None:
        return state
    state = without_tags(_removed(state, known), known.id)
    queue = state.queues.get(known.queue)
    if queue is None or known.id not in queue.acquired:
        return state
    queue = queue.release_consumer(known.id, MODIFIED_FAILED, state.elapsed_us(event.time_us))
    return state.with_queue(queue, event.time_us)


def settled_of(state: State, link: int, count: int) -> State:
    """Return the state after so many deliveries of a suspended link have ended: by locks, or as parts of its end."""
    known = state.suspended.get(link)
    if known is None:
        return state
    suspended = state.suspended.set(link, with_changes(known, held=known.held - count))
    return state.with_fields(suspended=suspended, suspended_held=state.suspended_held - count)


def tags_kept(state: State, event: TagsKept) -> State:
    """Return the state with more kept tags, and without those that the sender has settled."""
    state = state.with_fields(time_us=event.time_us)
    known = event.producer in state.producers or event.producer in state.suspended
    if not known:
        return state
    tags = state.tags.get(event.producer, _NO_TAGS)
    for tag in event.kept:
        tags = tags.set(tag, None)
    for tag in event.settled:
        if tag in tags:
            tags = tags.delete(tag)
    kept = state.tags.set(event.producer, tags) if tags else without_tags(state, event.producer).tags
    return state.with_fields(tags=kept)


def without_tags(state: State, producer: int) -> State:
    """Return the state without the kept tags of a producer that has ended."""
    return state.with_fields(tags=state.tags.delete(producer)) if producer in state.tags else state


def without_queue(state: State, queue: int) -> State:
    """Return the state without the suspended links of a queue that is deleted."""
    for link in [one for one in state.suspended.values() if one.queue == queue]:
        state = _removed(state, link)
    return state


def suspended_at_start(state: State, event: Started) -> State:
    """Return the state before a start with only those links suspended that the start keeps."""
    if not event.kept and not state.suspended and not state.tags:
        return state
    kept: list[SuspendedLink] = []
    for link in event.kept:
        known = _known(state, link)
        if known is not None:
            now_us = state.elapsed_us(event.time_us)
            kept.append(with_changes(known, until_us=known.until_us or now_us + 1000 * known.keeping.timeout_ms))
    empty: dict[str, object] = {
        "suspended": PersistentMap(),
        "suspended_ids": PersistentMap(),
        "suspended_held": 0,
        "tags": PersistentMap({one.id: state.tags[one.id] for one in kept if one.id in state.tags}),
    }
    state = state.with_fields(**empty)
    for one in kept:
        state = _added(state, one)
    return state


def with_returned(queue: Queue, kept: Iterable[int]) -> Queue:
    """Return a queue at a start: what links held is available again, but not what the `kept` ones hold."""
    held = {link: queue.acquired[link] for link in kept if link in queue.acquired}
    if not held:
        return queue.release_all()
    rest = queue.acquired
    for link in held:
        rest = rest.delete(link)
    released = replace(queue, acquired=rest).release_all()
    return replace(released, acquired=PersistentMap(held))


def _known(state: State, link: int) -> SuspendedLink | None:
    """Return a link as it would be suspended, or is; None if there is none of that id."""
    consumer, producer = state.consumers.get(link), state.producers.get(link)
    if consumer is not None:
        return _suspended_consumer(state, consumer, 0)
    return state.suspended.get(link) if producer is None else _suspended_producer(state, producer, 0)


def _suspended_consumer(state: State, consumer: Consumer, until_us: int) -> SuspendedLink:
    queue = state.queues.get(consumer.queue)
    held = 0 if queue is None else queue.held_by(consumer.id).count
    names = (consumer.queue, consumer.container, consumer.link, consumer.user)
    return SuspendedLink(consumer.id, *names, consumer.keeping, until_us, held)


def _suspended_producer(state: State, producer: Producer, until_us: int) -> SuspendedLink:
    held = len(state.tags.get(producer.id, _NO_TAGS))
    names = (0, producer.container, producer.link, producer.user)
    return SuspendedLink(producer.id, *names, producer.keeping, until_us, held)


def _without_consumer(state: State, consumer: Consumer) -> State:
    state = state.with_fields(consumers=state.consumers.delete(consumer.id))
    queue = state.queues.get(consumer.queue)
    if queue is None:
        return state
    receivers = unlinked(state.receivers, queue.id, consumer.id)
    return state.with_fields(
        receivers=receivers, queues=state.queues.set(queue.id, replace(queue, consumers=queue.consumers - 1))
    )


def _without_producer(state: State, producer: Producer) -> State:
    links = state.links
    for node in producer.nodes:
        links = unlinked(links, node, producer.id)
    return state.with_fields(producers=state.producers.delete(producer.id), links=links)


def _added(state: State, link: SuspendedLink) -> State:
    return state.with_fields(
        suspended=state.suspended.set(link.id, link),
        suspended_ids=state.suspended_ids.set(link.key, link.id),
        suspended_held=state.suspended_held + link.held,
    )


def _removed(state: State, link: SuspendedLink) -> State:
    ids = state.suspended_ids
    if ids.get(link.key) == link.id:
        ids = ids.delete(link.key)
    return state.with_fields(
        suspended=state.suspended.delete(link.id),
        suspended_ids=ids,
        suspended_held=state.suspended_held - link.held,
    )
