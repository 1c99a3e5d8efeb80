"""The columns of the entries of a queue: a value for the few that have any, by the offset of the entry.

Rule 1. An entry without columns has those of PLAIN.
Rule 2. Neighbours mostly have equal columns, such as the first deliveries of a lost consumer: they share one value.
"""

from collections.abc import Callable

from msgspec.structs import replace

from ambermq.engine.entries.entry import PLAIN, Entry
from ambermq.engine.entries.entry_word import WORD_BYTES, unpack_words
from ambermq.engine.entries.marks import SetAsideFor
from ambermq.engine.entries.outcome import Outcome
from ambermq.snapshot.persistent_map import PersistentMap

__all__ = [
    "Annotations",
    "Columns",
    "delayed",
    "modified",
    "returned",
    "set_aside",
    "undelayed",
    "with_groups",
    "with_priority",
    "without",
]

# These limits are part of the fold. An old log must give the same state, so they never change.
EXCLUSIONS_MAX = 64
ANNOTATIONS_BYTES_MAX = 65_536

Columns = PersistentMap[int, Entry]
Annotations = tuple[tuple[bytes, bytes], ...]
"""Message annotations: pairs of encoded key and encoded value, sorted by key."""


def with_priority(columns: Columns, words: bytes, priority: int) -> Columns:
    """Return columns with the priority of packed words."""
    entries, plain = columns.mutate(), Entry(priority=priority)
    for word in unpack_words(words):
        before = entries.get(word >> 16)
        entries[word >> 16] = plain if before is None else replace(before, priority=priority)
    return entries.finish()


def with_groups(columns: Columns, words: bytes, first: int, codes: bytes) -> tuple[Columns, list[int]]:
    """Return columns with the groups of packed words, and the codes of those that have one.

    `codes` has the code of each entry from `first` on, packed; or one code for all.
    """
    known, last = unpack_words(codes), len(codes) // WORD_BYTES - 1
    entries, added = columns.mutate(), list[int]()
    for word in unpack_words(words):
        code = known[min((word >> 16) - first, last)]
        if code:
            entries[word >> 16] = replace(entries.get(word >> 16, PLAIN), group=code)
            added.append(code)
    return entries.finish(), added


def modified(
    columns: Columns,
    exclusions: int,
    words: bytes,
    consumer: int,
    outcome: Outcome,
    shared: Callable[[Annotations], Annotations],
) -> tuple[Columns, int]:
    """Return columns and the number of those that exclude a consumer, after an outcome over packed words.

    `shared` returns the object that the queue has for annotations.
    """
    entries = columns.mutate()
    known, after = None, PLAIN
    for word in unpack_words(words):
        before = entries.get(word >> 16, PLAIN)
        if before is not known:
            known = before
            after = before.modified(
                outcome, consumer, exclusions_max=EXCLUSIONS_MAX, annotations_bytes_max=ANNOTATIONS_BYTES_MAX
            )
            if outcome.annotations:
                after = replace(after, annotations=shared(after.annotations))
        entries[word >> 16] = after
        exclusions += bool(after.excluded) - bool(before.excluded)
    return entries.finish(), exclusions


def returned(columns: Columns, words: bytes) -> Columns:
    """Return columns after packed words have returned from a consumer."""
    entries = columns.mutate()
    known, after = None, PLAIN
    for word in unpack_words(words):
        before = entries.get(word >> 16, PLAIN)
        if before is not known:
            known, after = before, before if before.was_acquired else replace(before, returned=True)
        entries[word >> 16] = after
    return entries.finish()


def delayed(columns: Columns, words: bytes, due_us: Callable[[int], int]) -> Columns:
    """Return columns of packed words with their times; `due_us` gives the time after a number of failed deliveries."""
    entries = columns.mutate()
    known, after = None, PLAIN
    for word in unpack_words(words):
        before = entries[word >> 16]
        if before is not known:
            known = before
            after = replace(before, due_us=due_us(before.count))
        entries[word >> 16] = after
    return entries.finish()


def undelayed(columns: Columns, words: bytes) -> Columns:
    """Return columns of packed words without their times."""
    entries = columns.mutate()
    for word in unpack_words(words):
        entries[word >> 16] = replace(entries[word >> 16], due_us=0)
    return entries.finish()


def set_aside(columns: Columns, exclusions: int, words: bytes, why: SetAsideFor) -> tuple[Columns, int]:
    """Return columns and the number of those that exclude a consumer, after packed words were set aside."""
    entries = columns.mutate()
    for word in unpack_words(words):
        before = entries.get(word >> 16, PLAIN)
        exclusions -= bool(before.excluded)
        entries[word >> 16] = replace(before, excluded=(), set_aside_for=why, due_us=0)
    return entries.finish(), exclusions


def without(columns: Columns, exclusions: int, words: bytes) -> tuple[Columns, int]:
    """Return columns without packed words, and how many of them exclude a consumer."""
    if not columns:
        return columns, exclusions
    entries = columns.mutate()
    for word in unpack_words(words):
        entry = entries.pop(word >> 16, PLAIN)
        exclusions -= bool(entry.excluded)
    return entries.finish(), exclusions
