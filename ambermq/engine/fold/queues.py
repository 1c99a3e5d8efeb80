"""The fold of queues: declared, updated, deleted, and the subscriptions that some of them are."""

from ambermq.engine.events import QueueConfigured, QueueDeclared, QueueDeleted, QueueUpdated, Subscribed
from ambermq.engine.fold.links import without_producers
from ambermq.engine.fold.suspended_links import without_queue
from ambermq.engine.fold.tables import without_keys, without_name
from ambermq.engine.model.queue import new_queue
from ambermq.engine.model.state import State

__all__ = ["queue_declared", "queue_deleted", "queue_updated", "subscribed"]


def queue_declared(state: State, event: QueueDeclared) -> State:
    """Return the state with a new queue."""
    state = _with_window(state, event.offset, event.settings.dedup_window_ms)
    return state.with_fields(
        time_us=event.time_us,
        queues=state.queues.set(event.offset, new_queue(event.offset, event.name, event.settings, event.lifetime)),
        queue_names=state.queue_names.set(event.name, event.offset),
    )


def queue_updated(state: State, event: QueueUpdated | QueueConfigured) -> State:
    """Return the state with other settings of a queue."""
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


def queue_deleted(state: State, event: QueueDeleted) -> State:
    """Return the state without a queue, its links and its subscription."""
    queue = state.queues.get(event.queue)
    if queue is None:
        return state
    gone = state.receivers.get(event.queue)
    if gone is not None:
        consumers, receivers = without_keys(state.consumers, gone), state.receivers.delete(event.queue)
        state = state.with_fields(consumers=consumers, receivers=receivers)
    if event.queue in state.subscriptions:
        state = _unsubscribed(state, event.queue)
    if state.suspended:
        state = without_queue(state, event.queue)
    return without_producers(state, event.queue).with_fields(
        time_us=event.time_us,
        queues=state.queues.delete(event.queue),
        deduplicating=without_keys(state.deduplicating, [event.queue]),
        queue_names=without_name(state.queue_names, queue.name, event.queue),
        outcome_annotations_bytes=state.outcome_annotations_bytes - queue.outcome_annotations.size,
    )


def subscribed(state: State, event: Subscribed) -> State:
    """Return the state with the subscription that a queue is."""
    if event.queue not in state.queues:
        return state
    subscription = event.subscription
    state = state.with_fields(time_us=event.time_us, subscriptions=state.subscriptions.set(event.queue, subscription))
    if subscription.key is not None:
        state = state.with_fields(subscription_queues=state.subscription_queues.set(subscription.key, event.queue))
    if subscription.is_no_local and subscription.container is not None:
        state = state.with_fields(no_locals=state.no_locals.set(event.queue, subscription.container))
    return state


def _unsubscribed(state: State, queue: int) -> State:
    subscription = state.subscriptions[queue]
    return state.with_fields(
        subscriptions=state.subscriptions.delete(queue),
        subscription_queues=without_name(state.subscription_queues, subscription.key, queue),
        no_locals=without_keys(state.no_locals, [queue]),
    )
