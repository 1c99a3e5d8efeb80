"""The available messages of a queue whose priority is not the default one, by priority.

    levels  ((9, ready, returned), (7, …), (0, …))     the highest priority first; no level without a message

Rule 1. Messages of the default priority are not here, so a queue with no other ones has no levels and pays nothing.
Rule 2. In a level a message that has come back goes before those that were never acquired; both are ordered by entry.
Rule 3. The columns of a message hold its priority: it comes back to its level.
"""

from collections.abc import Mapping
from typing import Final, final

from msgspec import Struct
from msgspec.structs import replace

from ambermq.engine.entries.entry import PLAIN, Entry
from ambermq.engine.entries.entry_word import WORD_BYTES, pack_words, unpack_words
from ambermq.engine.entries.priority import PRIORITY_DEFAULT
from ambermq.engine.entries.redelivery_order import merge_returned
from ambermq.engine.model.queue_parts.word_ranges import words_below
from ambermq.snapshot.persistent_map import PersistentMap
from ambermq.snapshot.persistent_queue import EMPTY_QUEUE, PersistentQueue

__all__ = [
    "NO_LEVELS",
    "Level",
    "Levels",
    "by_priority",
    "count_of",
    "level_of",
    "lists_of",
    "with_words",
    "without_below",
    "without_words",
]


@final
class Level(Struct, frozen=True):
    """The available messages of one priority; immutable."""

    priority: int
    ready: PersistentQueue = EMPTY_QUEUE
    """Words of entries that were never acquired."""
    returned: PersistentQueue = EMPTY_QUEUE
    """Words of entries that were acquired before."""


Levels = tuple[Level, ...]
NO_LEVELS: Final[Levels] = ()


def level_of(levels: Levels, priority: int) -> Level:
    """Return the level of a priority; an empty one if no message has it."""
    return next((level for level in levels if level.priority == priority), Level(priority))


def count_of(levels: Levels) -> int:
    """Return the number of messages in levels."""
    return sum([level.ready.count + level.returned.count for level in levels])


def lists_of(levels: Levels) -> tuple[PersistentQueue, ...]:
    """Return the words of levels in the order in which they are served; each list is in order."""
    return tuple([words for level in levels for words in (level.returned, level.ready)])


def by_priority(words: bytes, entries: "PersistentMap[int, Entry]") -> dict[int, bytes]:
    """Return packed words by the priority of their entries; the order of each priority is that of `words`."""
    found: dict[int, list[int]] = {}
    for word in unpack_words(words):
        found.setdefault(entries.get(word >> 16, PLAIN).priority, []).append(word)
    if found.keys() == {PRIORITY_DEFAULT}:
        return {PRIORITY_DEFAULT: words}
    return {priority: pack_words(some) for priority, some in found.items()}


def with_words(levels: Levels, words: Mapping[int, bytes], *, are_returned: bool) -> Levels:
    """Return levels with packed words by priority merged in; those of the default priority are ignored."""
    known = {level.priority: level for level in levels}
    for priority, some in words.items():
        if priority == PRIORITY_DEFAULT or not some:
            continue
        level = known.get(priority) or Level(priority)
        if are_returned:
            known[priority] = replace(level, returned=merge_returned(level.returned, some))
        else:
            known[priority] = replace(level, ready=merge_returned(level.ready, some))
    return _in_order(known)


def without_words(levels: Levels, words: bytes) -> tuple[bytes, Levels]:
    """Return those of packed `words` that are in levels, and the levels without them."""
    removed = b""
    left: list[Level] = []
    for level in levels:
        after = level
        if level.ready.count and len(removed) < len(words):
            some, ready = level.ready.remove_ordered(words)
            removed, after = removed + some, replace(after, ready=ready)
        if level.returned.count and len(removed) < len(words):
            some, returned = level.returned.remove_ordered(words)
            removed, after = removed + some, replace(after, returned=returned)
        left.append(after)
    return (removed, _filled(left)) if removed else (removed, levels)


def without_below(levels: Levels, before: int) -> tuple[bytes, Levels]:
    """Return the packed words of levels whose entries are below an offset, and the levels without them."""
    removed = b""
    left: list[Level] = []
    for level in levels:
        ready, returned = words_below(level.ready, before), words_below(level.returned, before)
        removed += ready + returned
        after_ready = level.ready.pop(len(ready) // WORD_BYTES)[1]
        left.append(Level(level.priority, after_ready, level.returned.pop(len(returned) // WORD_BYTES)[1]))
    return removed, _filled(left)


def _in_order(known: Mapping[int, Level]) -> Levels:
    return _filled([known[priority] for priority in sorted(known, reverse=True)])


def _filled(levels: list[Level]) -> Levels:
    return tuple([level for level in levels if level.ready.count or level.returned.count])
