"""The fold of marks: events that say something about the messages of the event before them, on each of its queues."""

from collections.abc import Callable

from msgspec.structs import replace

from ambermq.engine.entries.entry_word import WORD_BYTES
from ambermq.engine.events import Duplicated, Grouped, Identified, Keyed, Prioritized, Scheduled, Timed
from ambermq.engine.model.queue import Queue
from ambermq.engine.model.queue_parts.last_values import keyed_by
from ambermq.engine.model.state import State

__all__ = ["duplicated", "grouped", "identified", "keyed", "prioritized", "scheduled", "timed"]


_Mark = Timed | Scheduled | Prioritized | Grouped | Keyed | Identified | Duplicated


def timed(state: State, event: Timed) -> State:
    """Return the state after messages have got a time to live."""
    times = event.elapsed_expiries(state.stepped_us)
    return _on_queues(state, event, lambda queue: queue.with_expiries(event.first, times))


def scheduled(state: State, event: Scheduled) -> State:
    """Return the state after messages are scheduled for later."""
    dues = event.elapsed_dues(state.stepped_us)
    return _on_queues(state, event, lambda queue: queue.schedule(event.words, dues))


def prioritized(state: State, event: Prioritized) -> State:
    """Return the state after messages have got a priority."""
    return _on_queues(state, event, lambda queue: queue.prioritize(event.first, event.count, event.priority))


def grouped(state: State, event: Grouped) -> State:
    """Return the state after messages have got groups."""
    return _on_queues(state, event, lambda queue: queue.group(event.first, event.count, event.codes))


def keyed(state: State, event: Keyed) -> State:
    """Return the state after messages have got keys."""
    keys = keyed_by(event.keys)
    return _on_queues(state, event, lambda queue: queue.with_keys(event.first, keys))


def identified(state: State, event: Identified) -> State:
    """Return the state after queues have remembered message-ids."""
    now_us = state.elapsed_us(event.time_us)
    return _on_queues(state, event, lambda queue: queue.identify(event.words, event.digests, now_us, event.ids_max))


def duplicated(state: State, event: Duplicated) -> State:
    """Return the state after duplicates came, which the queues only count."""
    count = len(event.words) // WORD_BYTES
    return _on_queues(state, event, lambda queue: replace(queue, counters=queue.counters.plus("duplicates", count)))


def _on_queues(state: State, event: _Mark, change: Callable[[Queue], Queue]) -> State:
    """Return the state after a change of each queue of the event that exists."""
    if len(event.queues) == 1:
        queue = state.queues.get(event.queues[0])
        after = state.queues if queue is None else state.queues.set(queue.id, change(queue))
        return state.with_fields(time_us=event.time_us, queues=after)
    queues = state.queues.mutate()
    for queue_id in event.queues:
        queue = queues.get(queue_id)
        if queue is not None:
            queues[queue_id] = change(queue)
    return state.with_fields(time_us=event.time_us, queues=queues.finish())
