"""What a queue holds: its fields, and the questions about them. The transitions are those of `Queue` (queue.py).

Rule 1. An entry is AVAILABLE in `ready` (never acquired) or in `returned` (acquired before, then given back), or it is
        ACQUIRED by one consumer. One that is set aside, in `aside`, waits for its dead-letter target and is never
        offered. One in `delayed` waits for its redelivery, and goes to `returned` then. One in `scheduled` waits for
        its first delivery, and takes the tail then. An ARCHIVED entry is not in the queue; only the log still has it.
Rule 2. All lists are ordered by entry, but those of consumers. `returned` is served first.
Rule 3. `entries` holds columns for the few entries that have any. The columns end with the entry.
Rule 4. Available entries of another priority than the default one are in `levels`, never in `ready` or `returned`.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ambermq.engine.entries.entry import PLAIN, Entry
from ambermq.engine.entries.expiry_runs import NO_RUNS, Runs, expiry_of
from ambermq.engine.entries.priority import PRIORITY_DEFAULT
from ambermq.engine.model.lifetime import Lifetime
from ambermq.engine.model.queue_parts.counters import Counters
from ambermq.engine.model.queue_parts.groups import NO_GROUPS, Groups
from ambermq.engine.model.queue_parts.id_window import NO_IDS, IdWindow
from ambermq.engine.model.queue_parts.last_values import LastValues
from ambermq.engine.model.queue_parts.levels import NO_LEVELS, Levels, count_of, level_of, lists_of
from ambermq.engine.model.queue_parts.outcome_annotations import NO_ANNOTATIONS, OutcomeAnnotations
from ambermq.engine.settings.queue_settings import Settings
from ambermq.snapshot.persistent_column import EMPTY_COLUMN, PersistentColumn
from ambermq.snapshot.persistent_map import PersistentMap
from ambermq.snapshot.persistent_queue import EMPTY_QUEUE, PersistentQueue

__all__ = ["QueueContents"]

_DEFAULT_ORDER: Final = (PRIORITY_DEFAULT,)


class QueueContents(Struct, frozen=True):
    """The fields of a queue; immutable."""

    id: int
    """The offset of the record that declared it."""
    name: str
    settings: Settings
    ready: PersistentQueue
    """Words of available entries that were never acquired."""
    returned: PersistentQueue
    """Words of available entries that were acquired before."""
    acquired: "PersistentMap[int, PersistentQueue]"
    """The words that each consumer holds, in the order of acquiring."""
    entries: "PersistentMap[int, Entry]"
    """Columns by the offset of the entry."""
    exclusions: int
    """The number of `entries` that exclude a consumer."""
    size: int
    """Bytes of all messages of the queue."""
    acquired_count: int
    """Messages acquired."""
    acquired_size: int
    """Bytes of the messages acquired."""
    published: int
    """Messages published since the queue was declared."""
    delivered: int
    """Messages acquired since the queue was declared."""
    accepted: int
    """Messages accepted since then. The counters of the hot path are fields of the queue, the others in `counters`."""
    counters: Counters
    lifetime: Lifetime = Lifetime.PERMANENT
    consumers: int = 0
    """The number of links that receive from it."""
    aside: PersistentQueue = EMPTY_QUEUE
    """Words of entries that are set aside. Each has columns, which say why."""
    expiries: PersistentColumn = EMPTY_COLUMN
    """When each entry expires that has a time to live of its own, in elapsed time."""
    runs: Runs = NO_RUNS
    """When its messages expire by the time to live of the queue."""
    delayed: PersistentQueue = EMPTY_QUEUE
    """Words of entries whose redelivery is delayed. Each has columns, which say until when."""
    scheduled: PersistentQueue = EMPTY_QUEUE
    """Words of entries that are scheduled for later; `dues` says when."""
    levels: Levels = NO_LEVELS
    """The available entries of other priorities than the default one. Each has columns, which say which."""
    keyed: LastValues | None = None
    """The keys of its messages, if it keeps the last value of each key."""
    ids: IdWindow = NO_IDS
    """The message-ids of its dedup window."""
    groups: Groups = NO_GROUPS
    """The number of its messages of each group. Each has columns, which say which."""
    dues: PersistentColumn = EMPTY_COLUMN
    """When each entry of `scheduled` is available, in elapsed time."""
    outcome_annotations: OutcomeAnnotations = NO_ANNOTATIONS
    """What outcomes have added to its messages. Each has columns, which hold it."""

    @property
    def available(self) -> int:
        """Messages available."""
        return self.ready.count + self.returned.count + (count_of(self.levels) if self.levels else 0)

    @property
    def has_groups(self) -> bool:
        """Return whether groups decide who gets its messages: some of them have groups."""
        return bool(self.groups) and self.settings.groups

    @property
    def waiting(self) -> int:
        """Messages that no consumer holds: those that the maxima of the queue count."""
        return self.available + self.aside.count + self.delayed.count + self.scheduled.count

    @property
    def waiting_lists(self) -> tuple[PersistentQueue, ...]:
        """The words of the messages that no consumer holds; each list is in order."""
        return *self.unscheduled_lists, self.scheduled

    @property
    def unscheduled_lists(self) -> tuple[PersistentQueue, ...]:
        """The same without the messages that are scheduled for later."""
        return self.returned, self.ready, self.aside, self.delayed, *lists_of(self.levels)

    @property
    def serving_order(self) -> tuple[int, ...]:
        """Return the priorities of the available messages, and the default one, the highest first."""
        if not self.levels:
            return _DEFAULT_ORDER
        return tuple(sorted({PRIORITY_DEFAULT, *[level.priority for level in self.levels]}, reverse=True))

    @property
    def available_lists(self) -> tuple[PersistentQueue, ...]:
        """The words of the available messages in the order in which they are served; each list is in order."""
        return tuple([words for priority in self.serving_order for words in self.available_of(priority)])

    def available_of(self, priority: int) -> tuple[PersistentQueue, PersistentQueue]:
        """Return the words of the available messages of one priority: the returned ones, and the others."""
        if priority == PRIORITY_DEFAULT:
            return self.returned, self.ready
        level = level_of(self.levels, priority)
        return level.returned, level.ready

    @property
    def returned_count(self) -> int:
        """Available messages that were acquired before."""
        return self.returned.count + sum([level.returned.count for level in self.levels])

    @property
    def timer_lists(self) -> tuple[PersistentQueue, ...]:
        """The words of the messages that wait for a time."""
        return self.scheduled, self.delayed

    @property
    def timer_count(self) -> int:
        """Messages that wait for a time."""
        return self.scheduled.count + self.delayed.count

    @property
    def waiting_size(self) -> int:
        """Bytes of the messages that no consumer holds."""
        return self.size - self.acquired_size

    @property
    def depth(self) -> int:
        """Messages that wait, and those acquired."""
        return self.waiting + self.acquired_count

    def due_us_of(self, entry: int) -> int:
        """Return when an entry that waits for a time is available, in elapsed time; 0 for any other entry."""
        return self.dues.get(entry) or self.entries.get(entry, PLAIN).due_us

    @property
    def is_timed(self) -> bool:
        """Return whether a message of the queue may expire."""
        return bool(self.expiries.count or self.runs)

    def expiry_of(self, word: int) -> int:
        """Return when an entry expires, in elapsed time; 0 if it does not."""
        own = self.expiries.get(word >> 16) if self.expiries.count else 0
        ours = expiry_of(self.runs, word >> 16) if self.runs else 0
        if ours and self.scheduled.count and self.scheduled.holds(word):
            # The time to live of the queue begins when the message is available.
            ours = 0
        return min(own, ours) if own and ours else own or ours

    @property
    def has_columns(self) -> bool:
        """Return whether an entry has columns as `columns_of` returns them."""
        return bool(self.entries or self.expiries.count)

    def columns_of(self, words: Sequence[int]) -> list[Entry | None]:
        """Return the columns of rising words with their own expiries, as deliveries need them; None for none."""
        known = [self.entries.get(word >> 16) for word in words]
        if not self.expiries.count:
            return known
        last: Entry | None = None
        for index, own in enumerate(self.expiries.values_of([word >> 16 for word in words])):
            entry = known[index]
            if own and entry is not None:
                known[index] = replace(entry, expires_us=own)
            elif own:
                # Neighbours often expire together: they share one value.
                last = last if last is not None and last.expires_us == own else Entry(expires_us=own)
                known[index] = last
        return known

    def held_by(self, consumer: int) -> PersistentQueue:
        """Return the words that a consumer holds."""
        return self.acquired.get(consumer, EMPTY_QUEUE)

    def holds(self, word: int) -> bool:
        """Return whether a word waits."""
        return any(words.holds(word) for words in self.waiting_lists)

    def state_of(self, word: int) -> str:
        """Return the state of a word that waits, as people read it."""
        if self.aside.holds(word):
            return "set aside"
        if self.delayed.holds(word):
            return "delayed"
        return "scheduled" if self.scheduled.holds(word) else "available"
