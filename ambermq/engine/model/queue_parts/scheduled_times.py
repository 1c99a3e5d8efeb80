"""The times of scheduled messages: when each of them is available, as a column of the queue."""

from collections.abc import Sequence

from ambermq.engine.entries.entry_word import unpack_words
from ambermq.snapshot.persistent_column import PersistentColumn

__all__ = ["with_dues"]


def with_dues(column: PersistentColumn, taken: bytes, words: bytes, dues: Sequence[int]) -> PersistentColumn:
    """Return the column with the times of entries; packed `taken` are some of `words`, which have `dues`. Both rise."""
    run = unpack_words(taken)
    if len(taken) < len(words):
        known = dict(zip(unpack_words(words), dues, strict=True))
        dues = [known[word] for word in run]
    return column.with_values([word >> 16 for word in run], dues)
