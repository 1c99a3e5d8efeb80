"""The messages of a run of deliveries, when it leaves. A large one stays in the log, and is read piece by piece later.

The publish record of a message that has come from another queue is that of its origin.
"""

from collections.abc import Sequence

from ambermq.engine.entries.entry import Entry
from ambermq.engine.entries.entry_word import size_of
from ambermq.engine.entries.stored_message import StoredMessage
from ambermq.log.buffer import Buffer
from ambermq.log.read.body_store import BodyStore

__all__ = ["assemble", "first_record"]


def assemble(
    bodies: BodyStore, words: Sequence[int], entries: Sequence[Entry | None]
) -> list[Buffer | StoredMessage] | None:
    """Return the messages of `words`, each whole or as its records; None if one must be read from the disk first."""
    offsets: list[int] = []
    found: list[StoredMessage | None] = []
    for word, entry in zip(words, entries, strict=True):
        last = entry.origin if entry is not None and entry.origin else word >> 16
        if entry is not None and entry.chunks:
            found.append(StoredMessage((*entry.chunks, last), size_of(word)))
        else:
            found.append(None)
            offsets.append(last)
    read = bodies.get_run(offsets) if offsets else []
    if read is None:
        return None
    left = iter(read)
    return [next(left) if one is None else one for one in found]


def first_record(word: int, entry: Entry | None) -> int:
    """Return the offset of the record that has the beginning of a message."""
    if entry is None:
        return word >> 16
    return entry.chunks[0] if entry.chunks else entry.origin or word >> 16
