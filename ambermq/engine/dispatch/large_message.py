"""A message larger than a chunk is chunk records and a publish record: put together again when it leaves."""

from collections.abc import Sequence

from ambermq.engine.model.entry import Entry
from ambermq.log.buffer import Buffer
from ambermq.log.read.body_store import DAMAGED, BodyStore

__all__ = ["assemble"]


def assemble(bodies: BodyStore, words: Sequence[int], entries: Sequence[Entry | None]) -> list[Buffer] | None:
    """Return the whole messages of `words`; None when a piece must be read first.

    All pieces are asked for at once, for what one request has brought may be gone when the next one has ended.
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
