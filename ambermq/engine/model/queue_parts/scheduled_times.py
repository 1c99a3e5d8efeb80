"""The times of scheduled messages: when each of them is available, as a column of the queue.

A start folds millions of them, so runs stay packed: no object is made for a message.
"""

from ambermq.engine.entries.entry_word import WORD_BYTES, pack_words, unpack_words
from ambermq.snapshot.persistent_column import PersistentColumn

__all__ = ["with_dues"]


def with_dues(column: PersistentColumn, taken: bytes, words: bytes, dues: bytes) -> PersistentColumn:
    """Return the column with the times of entries; packed `taken` are some of `words`, which have `dues`.

    All are packed, and the words rise.
    """
    if len(taken) < len(words):
        known = dict(zip(unpack_words(words), unpack_words(dues), strict=True))
        dues = pack_words([known[word] for word in unpack_words(taken)])
    return column.with_packed(_entries_of(taken), dues)


def _entries_of(words: bytes) -> bytes:
    """Return the entries of packed words, packed: each word without its lowest two bytes."""
    entries = bytearray(words[2:] + bytes(2))
    none = bytes(len(words) // WORD_BYTES)
    entries[6::WORD_BYTES] = entries[7::WORD_BYTES] = none
    return bytes(entries)
