"""Records of events that name one queue or several: how the queues stand in them.

    one queue    `queue` is its id
    several      `queue` is 0, the flag FANOUT is set, and the meta ends with u64 queue ids

Rule. No queue at all is written as several are.
"""

from typing import Final, Protocol

from ambermq.engine.entries.entry_word import pack_words, unpack_words
from ambermq.engine.events.record_draft import RecordDraft

__all__ = ["FANOUT", "add_fanned", "queues_of"]

FANOUT: Final = 4
"""The flag of a record whose meta holds the queues."""


class _Fanned(Protocol):
    """An event on queues."""

    time_us: int
    queues: tuple[int, ...]


def add_fanned(
    draft: RecordDraft, record_type: int, event: _Fanned, /, *, ref: int, count: int, aux: int = 0, meta: bytes = b""
) -> int:
    """Add the record of an event on queues and return its offset; `meta` is what stands before the queue ids."""
    queues = event.queues
    fans_out = len(queues) != 1
    return draft.add(
        record_type,
        timestamp_us=event.time_us,
        queue=0 if fans_out else queues[0],
        ref=ref,
        count=count,
        aux=aux,
        flags=FANOUT if fans_out else 0,
        meta=meta + pack_words(queues) if fans_out else meta,
    )


def queues_of(row: tuple[int, ...], queue_ids: bytes) -> tuple[int, ...]:
    """Return the queues of a record; `queue_ids` is the end of its meta, which holds them with FANOUT."""
    return unpack_words(queue_ids) if row[10] & FANOUT else (row[4],)
