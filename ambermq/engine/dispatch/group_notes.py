"""What events change of the groups of queues beside the state: messages come back, leave, or may be offered again."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from ambermq.engine.dispatch.group_lines import GroupLines
from ambermq.engine.entries.discard_reason import MoveReason
from ambermq.engine.entries.outcome import OutcomeKind
from ambermq.engine.events import (
    ConsumerDetached,
    Damaged,
    Discarded,
    Due,
    Event,
    LinkResumed,
    Moved,
    Purged,
    QueueConfigured,
    QueueDeleted,
    SetAside,
    Settled,
)
from ambermq.engine.model.queue import Queue
from ambermq.engine.model.state import State

__all__ = ["note_groups"]


def note_groups(groups: dict[int, GroupLines], event: Event, before: State, after: State) -> int:
    """Note an event in the lines of its queue; return the queue if it may offer other messages now, else 0."""
    if type(event) is LinkResumed:
        return _resumed(groups, event, after)
    note = _NOTES.get(type(event))
    if note is None:
        return 0
    queue_id = _queue_of(event, before)
    lines, old, new = groups.get(queue_id), before.queues.get(queue_id), after.queues.get(queue_id)
    if lines is None or old is None:
        return 0
    if new is None:
        del groups[queue_id]
        return 0
    note(lines, event, old, new)
    return queue_id


def _queue_of(event: Any, before: State) -> int:
    if type(event) is ConsumerDetached:
        known = before.consumers.get(event.consumer)
        return 0 if known is None else known.queue
    return int(event.source if type(event) is Moved else event.queue)


def _resumed(groups: dict[int, GroupLines], event: LinkResumed, after: State) -> int:
    consumer = after.consumers.get(event.successor)
    lines = None if consumer is None else groups.get(consumer.queue)
    if consumer is None or lines is None:
        return 0
    lines.note_resumed(event.link, event.successor, selects=bool(consumer.selector))
    return consumer.queue


def _settled(lines: GroupLines, event: Settled, old: Queue, new: Queue) -> None:
    lines.note_back(old.entries, new, event.words, are_delayed=_are_delayed(event, old))


def _are_delayed(event: Settled, queue: Queue) -> bool:
    outcome = event.outcome
    may_delay = outcome.kind is OutcomeKind.MODIFIED and outcome.delivery_failed
    return may_delay and bool(queue.settings.redelivery_delay_ms)


def _detached(lines: GroupLines, event: ConsumerDetached, old: Queue, new: Queue) -> None:
    words, are_delayed = old.held_by(event.consumer).to_bytes(), bool(old.settings.redelivery_delay_ms)
    lines.note_back(old.entries, new, words, are_delayed=are_delayed)


def _due(lines: GroupLines, event: Due, old: Queue, _new: Queue) -> None:
    lines.note_due(old.entries, event.words)


def _removed(lines: GroupLines, event: Any, old: Queue, new: Queue) -> None:
    if type(event) is not Moved or event.reason is not MoveReason.COPIED:
        lines.note_removed(old.entries, new, event.words)


def _changed(lines: GroupLines, event: Any, _old: Queue, _new: Queue) -> None:
    # Its messages may have other places, or be gone, or have had no attention for a while.
    lines.is_stale |= type(event) is Purged or not (event.settings.priorities and event.settings.groups)


_NOTES: Final[Mapping[type, Callable[[GroupLines, Any, Queue, Queue], None]]] = {
    Settled: _settled,
    ConsumerDetached: _detached,
    Due: _due,
    Moved: _removed,
    Discarded: _removed,
    SetAside: _removed,
    Damaged: _removed,
    Purged: _changed,
    QueueConfigured: _changed,
    QueueDeleted: _changed,
}
