"""The rows of queues and of the columns of their entries in a snapshot, and the queues again.

    QUEUES      [{id, name, named, settings, lifetime, counts}]
    ENTRIES     [{queue, entry, offsets: [first, gap, gap...]}]

Rule. Counts are compared with those that were written; a difference is an ImageFault.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Final

import msgspec
from msgspec.structs import replace

from ambermq.engine.entries.entry import PLAIN, Entry
from ambermq.engine.entries.entry_word import total_size, unpack_words
from ambermq.engine.entries.expiry_runs import NO_RUNS, Runs
from ambermq.engine.entries.priority import PRIORITY_MAX
from ambermq.engine.model.lifetime import Lifetime
from ambermq.engine.model.queue import Queue
from ambermq.engine.model.queue_parts.counters import Counters
from ambermq.engine.model.queue_parts.groups import NO_GROUPS, with_codes
from ambermq.engine.model.queue_parts.id_window import IdWindow, window_of
from ambermq.engine.model.queue_parts.last_values import restored
from ambermq.engine.model.queue_parts.levels import NO_LEVELS, Levels, count_of, with_words
from ambermq.engine.model.queue_parts.outcome_annotations import NO_ANNOTATIONS, Value, values_of
from ambermq.engine.model.state import State
from ambermq.engine.settings.queue_settings import Settings
from ambermq.engine.snapshots.image_blocks import ImageFault, in_order, map_of, sorted_items
from ambermq.engine.snapshots.shared_marks import SharedMarks
from ambermq.engine.snapshots.word_runs import (
    ASIDE,
    DELAYED,
    IDS,
    LEVEL_READY,
    LEVEL_RETURNED,
    READY,
    REPLACED,
    RETURNED,
    SCHEDULED,
    WordRuns,
)
from ambermq.snapshot.persistent_column import EMPTY_COLUMN, PersistentColumn
from ambermq.snapshot.persistent_map import PersistentMap
from ambermq.snapshot.persistent_queue import PersistentQueue

__all__ = ["EntriesRow", "QueueParts", "QueueRow", "entries_rows", "queue_rows"]

_ENTRIES_A_ROW: Final = 1024
_PRIORITIES: Final = range(PRIORITY_MAX + 1)


class QueueRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A queue without its messages."""

    id: int
    name: str
    named: bool
    settings: Settings
    exclusions: int
    size: int
    acquired_count: int
    published: int
    delivered: int
    accepted: int
    counters: Counters
    ready: int
    """The count of words in the list, as a check."""
    returned: int
    entries: int
    lifetime: Lifetime = Lifetime.PERMANENT
    aside: int | msgspec.UnsetType = msgspec.UNSET
    """Not written for a queue without set-aside messages."""
    runs: Runs | msgspec.UnsetType = msgspec.UNSET
    """Not written for a queue without a time to live."""
    delayed: int | msgspec.UnsetType = msgspec.UNSET
    """Not written for a queue without delayed messages."""
    scheduled: int | msgspec.UnsetType = msgspec.UNSET
    """Not written for a queue without scheduled messages."""
    leveled: int | msgspec.UnsetType = msgspec.UNSET
    """The messages of other priorities than the default one. Not written for a queue without them."""
    keyed: tuple[int, int] | msgspec.UnsetType = msgspec.UNSET
    """The messages with keys, and those that newer ones have replaced. Not written for a queue without them."""
    ids: int | msgspec.UnsetType = msgspec.UNSET
    """The message-ids that it remembers. Not written for a queue without them."""
    timed: int | msgspec.UnsetType = msgspec.UNSET
    """The messages with a time to live of their own. Not written for a queue without them."""


class EntriesRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Entries of a queue that have equal columns."""

    queue: int
    entry: Entry
    offsets: list[int]
    """The first offset, then the gap from each offset to the next."""


def queue_rows(state: State) -> Iterator[QueueRow]:
    """Yield a row for each queue."""
    for queue in in_order(state.queues):
        yield QueueRow(
            queue.id,
            queue.name,
            state.queue_names.get(queue.name) == queue.id,
            queue.settings,
            queue.exclusions,
            queue.size,
            queue.acquired_count,
            queue.published,
            queue.delivered,
            queue.accepted,
            queue.counters,
            len(queue.ready),
            len(queue.returned),
            len(queue.entries),
            queue.lifetime,
            len(queue.aside) or msgspec.UNSET,
            queue.runs or msgspec.UNSET,
            len(queue.delayed) or msgspec.UNSET,
            len(queue.scheduled) or msgspec.UNSET,
            count_of(queue.levels) or msgspec.UNSET,
            msgspec.UNSET if queue.keyed is None else (queue.keyed.keys.count, queue.keyed.replaced.count),
            len(queue.ids) or msgspec.UNSET,
            queue.expiries.count or msgspec.UNSET,
        )


def entries_rows(state: State) -> Iterator[EntriesRow]:
    """Yield the columns of the entries of each queue."""
    for queue in in_order(state.queues):
        items = sorted_items(queue.entries)
        while some := list(islice(items, _ENTRIES_A_ROW)):
            yield from _alike(queue.id, some)


def _alike(queue_id: int, items: list[tuple[int, Entry]]) -> Iterator[EntriesRow]:
    """Yield a row for each value among these entries, in the order in which the values first appear."""
    rows: dict[Entry, tuple[list[int], int]] = {}
    for offset, entry in items:
        gaps, last = rows.get(entry, ([], 0))
        gaps.append(offset - last)
        rows[entry] = gaps, offset
    for entry, (gaps, _) in rows.items():
        yield EntriesRow(queue_id, entry, gaps)


class QueueParts:
    """The queues and entries that have been read so far."""

    def __init__(self) -> None:
        self.words = WordRuns()
        self.rows: list[QueueRow] = []
        self.entries: dict[int, dict[int, Entry]] = {}
        self._marks = SharedMarks()
        self._annotations: dict[int, Counter[Value]] = {}

    def take_queues(self, payload: bytes) -> None:
        """Add the rows of a block."""
        self.rows += msgspec.json.decode(payload, type=list[QueueRow])

    def take_entries(self, payload: bytes) -> None:
        """Add the entries of a block. Raises ImageFault."""
        for row in msgspec.json.decode(payload, type=list[EntriesRow]):
            entries = self.entries.setdefault(row.queue, {})
            if len(entries) + len(row.offsets) > (count := self.words.counts[row.queue]):
                # An entry takes two bytes in the file and hundreds in memory, and no other check bounds their number.
                raise ImageFault(f"more entries of queue {row.queue} than the {count} words on it")
            self._marks.share(row.entry)
            if values := values_of(row.entry):
                counts = self._annotations.setdefault(row.queue, Counter())
                for value in values:
                    counts[value] += len(row.offsets)
            offset = 0
            for gap in row.offsets:
                offset += gap
                entries[offset] = row.entry

    def queue(self, row: QueueRow, consumers: int) -> Queue:
        """Return the queue of a row, which has a number of consumers. Raises ImageFault if a part of it is missing."""
        words = self.words
        ready = words.list_of(row.id, READY)
        returned = words.list_of(row.id, RETURNED)
        aside = words.list_of(row.id, ASIDE)
        delayed = words.list_of(row.id, DELAYED)
        scheduled = words.list_of(row.id, SCHEDULED)
        acquired, entries = words.acquired.get(row.id, {}), self.entries.get(row.id, {})
        held = sum(map(len, acquired.values()))
        levels = self._levels(row.id)
        ids = self._ids(row)
        waits = (len(ready), len(returned), len(aside), len(delayed), len(scheduled), count_of(levels))
        counts = (*waits, held, len(entries))
        waiting = (row.ready, row.returned, row.aside or 0, row.delayed or 0, row.scheduled or 0, row.leveled or 0)
        expected = (*waiting, row.acquired_count, row.entries)
        if counts != expected:
            what = "ready, returned, aside, delayed, scheduled, leveled, acquired, known"
            raise ImageFault(f"queue {row.name!r}: expected {expected} {what}; found {counts}")
        keys, replaced = words.keys.get(row.id, []), words.list_of(row.id, REPLACED)
        if (len(keys), len(replaced)) != (row.keyed or (0, 0)):
            found = f"{len(keys)}, {len(replaced)}"
            raise ImageFault(f"queue {row.name!r}: expected {row.keyed or (0, 0)} keys, replaced; found {found}")
        dues = words.dues.get(row.id, EMPTY_COLUMN)
        if dues.count < len(scheduled):
            dues = _dues_of(scheduled, entries)
        if dues.count != len(scheduled):
            raise ImageFault(f"queue {row.name!r}: {len(scheduled)} scheduled messages, {dues.count} times for them")
        expiries = words.expiries.get(row.id, EMPTY_COLUMN)
        if expiries.count != (row.timed or 0):
            raise ImageFault(f"queue {row.name!r}: expected {row.timed or 0} expiries, found {expiries.count}")
        if not expiries.count:
            expiries = _expiries_of(entries)
        return Queue(
            row.id,
            row.name,
            row.settings,
            ready,
            returned,
            PersistentMap(acquired),
            map_of(entries),
            row.exclusions,
            row.size,
            row.acquired_count,
            sum(total_size(run) for held_words in acquired.values() for run in held_words.chunks()),
            row.published,
            row.delivered,
            row.accepted,
            row.counters,
            row.lifetime,
            consumers,
            aside,
            expiries,
            row.runs or NO_RUNS,
            delayed,
            scheduled,
            levels,
            restored(keys, set(scheduled), replaced) if keys or replaced else None,
            ids,
            with_codes(NO_GROUPS, [entry.group for entry in entries.values()]),
            dues,
            NO_ANNOTATIONS.with_counts(self._annotations.get(row.id, {})),
        )

    def _ids(self, row: QueueRow) -> IdWindow:
        try:
            ids = window_of(self.words.list_of(row.id, IDS))
        except ValueError as error:
            raise ImageFault(f"queue {row.name!r}: {error}") from error
        if len(ids) != (row.ids or 0):
            raise ImageFault(f"queue {row.name!r}: expected {row.ids or 0} message-ids, found {len(ids)}")
        return ids

    def _levels(self, queue: int) -> Levels:
        levels = NO_LEVELS
        for kind, are_returned in ((LEVEL_READY, False), (LEVEL_RETURNED, True)):
            lists = {priority: self.words.list_of(queue, kind + priority) for priority in _PRIORITIES}
            words = {priority: some.to_bytes() for priority, some in lists.items() if some}
            levels = with_words(levels, words, are_returned=are_returned)
        return levels


def _dues_of(scheduled: PersistentQueue, entries: dict[int, Entry]) -> PersistentColumn:
    """Return the times of scheduled messages of a snapshot that has them in `entries`, and remove them there."""
    dues = EMPTY_COLUMN
    for run in scheduled.chunks():
        known = {word >> 16: entries.get(word >> 16, PLAIN) for word in unpack_words(run)}
        timed = [offset for offset, entry in known.items() if entry.due_us]
        dues = dues.with_values(timed, [known[offset].due_us for offset in timed])
        for offset in timed:
            _keep(entries, offset, replace(known[offset], due_us=0))
    return dues


def _expiries_of(entries: dict[int, Entry]) -> PersistentColumn:
    """Return the expiries that an older snapshot has in `entries`, and remove them there."""
    timed = sorted([offset for offset, entry in entries.items() if entry.expires_us])
    expiries = EMPTY_COLUMN.with_values(timed, [entries[offset].expires_us for offset in timed])
    for offset in timed:
        _keep(entries, offset, replace(entries[offset], expires_us=0))
    return expiries


def _keep(entries: dict[int, Entry], offset: int, entry: Entry) -> None:
    """Set the columns of an entry, or remove those that say nothing."""
    if entry == PLAIN:
        del entries[offset]
    else:
        entries[offset] = entry
