"""A message larger than a chunk is chunk records and a publish record: put together again when it leaves."""

from collections.abc import Sequence

from engine.entry import Entry
from log.bodies import DAMAGED, Bodies
from log.buffer import Buffer

__all__ = ["assemble"]


def assemble(bodies: Bodies, entries: Sequence[Entry | None], last: list[Buffer]) -> list[Buffer] | None:
    """Return the whole messages; `last` holds each publish record's own body. None when a chunk must be read first."""
    whole = []
    for entry, body in zip(entries, last, strict=True):
        if entry is None or not entry.chunks:
            whole.append(body)
            continue
        pieces = bodies.get_run(entry.chunks)
        if pieces is None:
            return None
        damaged = body is DAMAGED or any(piece is DAMAGED for piece in pieces)
        whole.append(DAMAGED if damaged else b"".join([*pieces, body]))
    return whole
