"""The fold of moved messages: off one queue and onto others, with columns that say where the message is stored.

Rule 1. Only messages that wait on the source come to the targets. Each has its own offset, also if another is missing.
Rule 2. The source may be one of the targets: the message then goes to its tail. So does a scheduled message whose time
        has come. That is counted neither as moved nor as published, and keeps its own time to live.
"""

from msgspec.structs import replace

from ambermq.engine.entries.discard_reason import MoveReason
from ambermq.engine.entries.entry import PLAIN, Entry
from ambermq.engine.entries.entry_word import pack_words, unpack_words
from ambermq.engine.entries.marks import Marks, dead_letter_marks
from ambermq.engine.events import Moved
from ambermq.engine.model.queue import Queue
from ambermq.engine.model.queue_parts.outcome_annotations import NO_ANNOTATIONS
from ambermq.engine.model.state import State

__all__ = ["moved"]


def moved(state: State, event: Moved) -> State:
    """Return the state after Moved."""
    source = state.queues.get(event.source)
    if source is None:
        return state
    words, columns = _arrivals(state, source, event)
    if not words:
        return state
    now_us = state.elapsed_us(event.time_us)
    if event.reason is MoveReason.DUE:
        times = _expiries(source, event, words)
        return state.with_queue(source.deliver(event.words, words, columns, now_us, times), event.time_us)
    if event.reason is not MoveReason.COPIED:
        counter = "dead_lettered" if event.reason.is_dead_letter else "moved"
        state = state.with_queue(source.without(event.words, counter)[1], event.time_us)
    for target in event.targets:
        queue = state.queues.get(target)
        if queue is not None:
            state = state.with_queue(queue.receive(words, columns, now_us), event.time_us)
    return state.with_fields(time_us=event.time_us)


def _arrivals(state: State, source: Queue, event: Moved) -> tuple[bytes, list[tuple[int, Entry]]]:
    """Return the words of the messages on the queues that they come to, packed, and their columns by entry."""
    words: list[int] = []
    columns: list[tuple[int, Entry]] = []
    entries = source.entries
    target = state.queues.get(event.targets[0]) if event.targets else None
    known = NO_ANNOTATIONS if target is None else target.outcome_annotations
    marks: dict[tuple[int, int], Marks | None] = {}
    for offset, word in enumerate(unpack_words(event.words), event.offset):
        if not source.holds(word):
            continue
        before = entries.get(word >> 16, PLAIN)
        # Neighbours mostly have equal marks and share one value; the key holds what it is made of.
        key = id(before.marks), id(before.set_aside_for)
        if key not in marks:
            marks[key] = _known(target, event, _marks(before, source, event))
        words.append(offset << 16 | word & 0xFFFF)
        entry = _entry(before, word >> 16, marks[key])
        if entry.annotations:
            entry = replace(entry, annotations=known.shared(entry.annotations))
        columns.append((offset, entry))
    return pack_words(words), columns


def _expiries(source: Queue, event: Moved, arrivals: bytes) -> list[int]:
    """Return when those of scheduled messages that arrive expire by their own time to live, 0 for never."""
    if not source.expiries.count:
        return []
    words = unpack_words(event.words)
    return source.expiries.values_of([words[(one >> 16) - event.offset] >> 16 for one in unpack_words(arrivals)])


def _entry(before: Entry, entry: int, marks: Marks | None) -> Entry:
    """Return the columns of a message where it comes to: no failed delivery, no exclusion."""
    return Entry(
        annotations=before.annotations,
        chunks=before.chunks,
        origin=before.origin or entry,
        marks=marks,
        priority=before.priority,
        group=before.group,
    )


def _known(target: Queue | None, event: Moved, marks: Marks | None) -> Marks | None:
    """Return marks, or the equal ones of the message that came right before: a fold has each message by itself.

    Their description is the object that the target has for it.
    """
    if target is None or marks is None:
        return marks
    last = target.entries.get(event.offset - 1, PLAIN).marks
    if last == marks:
        return last
    text = target.outcome_annotations.shared(marks.description)
    return marks if text is marks.description else replace(marks, description=text)


def _marks(before: Entry, source: Queue, event: Moved) -> Marks | None:
    if event.reason.is_dead_letter:
        why = before.set_aside_for
        description = why.description if why is not None and why.reason is event.reason else ""
        return dead_letter_marks(before.marks, event.reason, source.name, source.id, event.time_us, description)
    if event.reason is MoveReason.REDRIVEN and before.marks is not None:
        return before.marks.redriven()
    return before.marks
