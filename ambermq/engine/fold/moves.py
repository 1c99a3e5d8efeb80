"""The fold of moved messages: off one queue and onto others, with columns that say where the message is stored.

Rule 1. Only messages that wait on the source come to the targets. Each has its own offset, also if another is missing.
Rule 2. The source may be one of the targets: the message then goes to its tail. So does a scheduled message whose time
        has come. That is counted neither as moved nor as published, and keeps its own time to live.
"""

from ambermq.engine.entries.discard_reason import MoveReason
from ambermq.engine.entries.entry import PLAIN, Entry
from ambermq.engine.entries.entry_word import pack_words, unpack_words
from ambermq.engine.entries.marks import Marks, dead_letter_marks
from ambermq.engine.events import Moved
from ambermq.engine.model.queue import Queue
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
    queues, now_us = state.queues, state.elapsed_us(event.time_us)
    if event.reason is MoveReason.DUE:
        times = _expiries(source, event, words)
        queues = queues.set(source.id, source.deliver(event.words, words, columns, now_us, times))
        return state.with_fields(time_us=event.time_us, queues=queues)
    if event.reason is not MoveReason.COPIED:
        counter = "dead_lettered" if event.reason.is_dead_letter else "moved"
        queues = queues.set(source.id, source.without(event.words, counter)[1])
    for target in event.targets:
        queue = queues.get(target)
        if queue is not None:
            queues = queues.set(target, queue.receive(words, columns, now_us))
    return state.with_fields(time_us=event.time_us, queues=queues)


def _arrivals(state: State, source: Queue, event: Moved) -> tuple[bytes, list[tuple[int, Entry]]]:
    """Return the words of the messages on the queues that they come to, packed, and their columns by entry."""
    words: list[int] = []
    columns: list[tuple[int, Entry]] = []
    entries = source.entries
    marks: dict[tuple[int, int], Marks | None] = {}
    for offset, word in enumerate(unpack_words(event.words), event.offset):
        if not source.holds(word):
            continue
        before = entries.get(word >> 16, PLAIN)
        # Neighbours mostly have equal marks and share one value; the key holds what it is made of.
        key = id(before.marks), id(before.set_aside_for)
        if key not in marks:
            marks[key] = _known(state, event, _marks(before, source, event))
        words.append(offset << 16 | word & 0xFFFF)
        columns.append((offset, _entry(before, word >> 16, marks[key])))
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


def _known(state: State, event: Moved, marks: Marks | None) -> Marks | None:
    """Return marks, or the equal ones of the message that came right before: a fold has each message by itself."""
    target = None if marks is None else state.queues.get(event.targets[0])
    last = None if target is None else target.entries.get(event.offset - 1, PLAIN).marks
    return last if last == marks else marks


def _marks(before: Entry, source: Queue, event: Moved) -> Marks | None:
    if event.reason.is_dead_letter:
        why = before.set_aside_for
        description = why.description if why is not None and why.reason is event.reason else ""
        return dead_letter_marks(before.marks, event.reason, source.name, source.id, event.time_us, description)
    if event.reason is MoveReason.REDRIVEN and before.marks is not None:
        return before.marks.redriven()
    return before.marks
