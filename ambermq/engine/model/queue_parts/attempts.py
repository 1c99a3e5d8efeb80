"""The attempts of messages: how often a delivery has ended with the return of its message, on queues with locks.

The broker may deliver a message again while the receiver has not settled an earlier delivery, whose lock has expired.
So the attempt tells the deliveries of one message apart: it is in their tags, and a lock is that of one attempt.
"""

from typing import TYPE_CHECKING

from msgspec.structs import replace

from ambermq.engine.entries.entry import PLAIN, Entry
from ambermq.engine.entries.entry_word import unpack_words

if TYPE_CHECKING:
    from ambermq.snapshot.persistent_map import PersistentMap

__all__ = ["with_attempts"]


def with_attempts(entries: "PersistentMap[int, Entry]", words: bytes) -> "PersistentMap[int, Entry]":
    """Return columns by entry after packed `words` have returned, each with one more attempt."""
    columns = entries.mutate()
    # Neighbours mostly have equal columns: they share one value.
    known, after = None, PLAIN
    for word in unpack_words(words):
        before = columns.get(word >> 16, PLAIN)
        if before is not known:
            known, after = before, replace(before, attempt=before.attempt + 1)
        columns[word >> 16] = after
    return columns.finish()
