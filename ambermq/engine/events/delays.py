"""Events of messages that wait for a time: the time has come."""

from typing import Final, final

from msgspec import Struct

from ambermq.engine.entries.entry_word import WORD_BYTES, ranges_of, total_size
from ambermq.engine.events.event_type import EventType, Facts, IndexKeys, Layout, SizeBound
from ambermq.engine.events.record_draft import RecordDraft

__all__ = ["Due"]

_DUE: Final = 32
_LISTED_AFTER: Final = 16
"""The event follows `damaged` in lists."""


@final
class Due(Struct):
    """The redelivery delay of a run of messages is over: they are available again, in their old places."""

    offset: int
    time_us: int
    queue: int
    words: bytes


def _write_due(draft: RecordDraft, event: Due) -> int:
    count = len(event.words) // WORD_BYTES
    return draft.add(_DUE, timestamp_us=event.time_us, queue=event.queue, count=count, meta=event.words)


def _due_facts(event: Due) -> Facts:
    count = len(event.words) // WORD_BYTES
    return {"count": count, "bytes": total_size(event.words), "offsets": ranges_of(event.words)}


DelayEvent = Due

TYPES: Final = (
    EventType(
        event=Due,
        number=_DUE,
        name="due",
        since="0.2.0",
        listed_after=_LISTED_AFTER,
        layout=Layout(queue="queue", count="words", meta="the words"),
        write=_write_due,
        read=lambda offset, time_us, row, meta: Due(offset, time_us, row[4], meta),
        keys=IndexKeys.WORDS,
        bound=SizeBound.SETTLED,
        queue="queue",
        facts=_due_facts,
        facts_text="`queue` `queue_id` `count` `bytes` `offsets`",
        line=("{count:messages} of {queue_id:queue} available after a redelivery delay: {offsets:ranges}",),
    ),
)
