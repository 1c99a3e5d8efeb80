"""The assembly of a message from its chunk records and its publish record, when its delivery leaves.

The publish record of a message that has come from another queue is that of its origin.
"""

from collections.abc import Sequence

from ambermq.engine.entries.entry import Entry
from ambermq.log.buffer import Buffer
from ambermq.log.read.body_store import DAMAGED, BodyStore

__all__ = ["assemble", "first_record"]


def assemble(bodies: BodyStore, words: Sequence[int], entries: Sequence[Entry | None]) -> list[Buffer] | None:
    """Return the whole messages of `words`; None if a piece must be read from the disk first.

    One request asks for all pieces. With several, the cache could drop the pieces of one before the next is complete.
    """
    chunks = [() if entry is None else entry.chunks for entry in entries]
    lasts = [
        entry.origin if entry is not None and entry.origin else word >> 16
        for word, entry in zip(words, entries, strict=True)
    ]
    offsets = [offset for last, names in zip(lasts, chunks, strict=True) for offset in (*names, last)]
    pieces = bodies.get_run(offsets)
    if pieces is None:
        return None
    whole: list[Buffer] = []
    start = 0
    for names in chunks:
        end = start + len(names) + 1
        whole.append(pieces[start] if not names else _joined(pieces[start:end]))
        start = end
    return whole


def _joined(pieces: list[Buffer]) -> Buffer:
    return DAMAGED if any(piece is DAMAGED for piece in pieces) else b"".join(pieces)


def first_record(word: int, entry: Entry | None) -> int:
    """Return the offset of the record that has the beginning of a message."""
    if entry is None:
        return word >> 16
    return entry.chunks[0] if entry.chunks else entry.origin or word >> 16
