"""The expiries of messages by their own time to live: when each of them expires, as a column of the queue.

A start folds millions of them, so runs stay packed: no object is made for a message.
"""

from collections.abc import Sequence
from struct import pack

from ambermq.engine.entries.entry_word import WORD_BYTES, unpack_words
from ambermq.snapshot.persistent_column import EMPTY_COLUMN, PersistentColumn

__all__ = ["only_expiries", "with_expiries", "with_expiry_of_each", "without_expiries"]


def with_expiries(column: PersistentColumn, first: int, times: bytes) -> PersistentColumn:
    """Return the column with packed times of the entries from `first` on."""
    count = len(times) // WORD_BYTES
    return column.with_packed(pack(f"<{count}Q", *range(first, first + count)), times)


def with_expiry_of_each(column: PersistentColumn, words: bytes, times: Sequence[int]) -> PersistentColumn:
    """Return the column with the times of packed rising words; 0 is none, and without `times` none has one."""
    pairs = [(word >> 16, time_us) for word, time_us in zip(unpack_words(words), times, strict=False) if time_us]
    return column.with_values([entry for entry, _ in pairs], [time_us for _, time_us in pairs]) if pairs else column


def without_expiries(column: PersistentColumn, words: bytes) -> PersistentColumn:
    """Return the column without packed words, in any order."""
    if not column.count:
        return column
    entries = [word >> 16 for word in unpack_words(words)]
    entries.sort()
    return column.without(entries)


def only_expiries(column: PersistentColumn, words: Sequence[int]) -> PersistentColumn:
    """Return the column with only those of words, in any order."""
    rising = sorted(words)
    times = column.values_of([word >> 16 for word in rising]) if column.count else ()
    return with_expiry_of_each(EMPTY_COLUMN, pack(f"<{len(rising)}Q", *rising), times)
