"""The assembly of a large message from its chunk records and its publish record, when its delivery leaves."""

from collections.abc import Sequence

from ambermq.engine.entries.entry import Entry
from ambermq.log.buffer import Buffer
from ambermq.log.read.body_store import DAMAGED, BodyStore

__all__ = ["assemble"]


def assemble(bodies: BodyStore, words: Sequence[int], entries: Sequence[Entry | None]) -> list[Buffer] | None:
    """Return the whole messages of `words`; None if a piece must be read from the disk first.

    One request asks for all pieces. With several, the cache could drop the pieces of one before the next is complete.
    """
    chunks = [() if entry is None else entry.chunks for entry in entries]
    offsets = [offset for word, names in zip(words, chunks, strict=True) for offset in (*names, word >> 16)]
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
