"""The event of a transaction that is committed: it ends the records of its messages and outcomes."""

from typing import Final, final

from msgspec import Struct

from ambermq.engine.entries.entry_word import pack_words, unpack_words
from ambermq.engine.events.event_type import EventType, Layout, field_facts

__all__ = ["Committed"]

_COMMITTED: Final = 33


@final
class Committed(Struct):
    """A transaction was committed.

    The records from `first` up to this one are its messages and outcomes, in the same batch.
    """

    offset: int
    time_us: int
    first: int
    """The offset of its first record."""
    posted: int
    """The messages that it published."""
    settled: int
    """The deliveries that it settled."""


TYPES: Final = (
    EventType(
        event=Committed,
        number=_COMMITTED,
        name="committed",
        since="0.2.0",
        layout=Layout(ref="first: the offset of its first record", meta="u64 each: messages, settled deliveries"),
        meta=lambda event: pack_words([event.posted, event.settled]),
        read=lambda offset, time_us, row, meta: Committed(offset, time_us, row[5], *unpack_words(meta)),
        facts=field_facts("first", "posted", "settled"),
        facts_text="`first` `posted` `settled`",
        line=("a transaction was committed from offset {first} on: {posted:messages}, {settled:,} settled deliveries",),
    ),
)
