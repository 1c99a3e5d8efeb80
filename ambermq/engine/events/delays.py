"""Events of messages that wait for a time: they are scheduled for it, or it has come.

A scheduled message takes the tail of its queue by the event Moved, with the reason `due`. Event Due is for the others.
"""

from typing import Final, final

from msgspec import Struct

from ambermq.engine.entries.entry_word import WORD_BYTES, ranges_of, total_size
from ambermq.engine.events.event_type import EventType, Facts, IndexKeys, Layout, SizeBound
from ambermq.engine.events.messages.fan_out import add_fanned, queues_of
from ambermq.engine.events.record_draft import RecordDraft

__all__ = ["Due", "Scheduled"]

_SCHEDULED: Final = 31
_DUE: Final = 32
_PUBLISHED: Final = 12
_LISTED_AFTER: Final = 16
"""The event follows `damaged` in lists."""


@final
class Scheduled(Struct):
    """The messages of the Published event before it are available later."""

    offset: int
    time_us: int
    queues: tuple[int, ...]
    due_us: int
    """When they are available, by the clock of `time_us`."""
    words: bytes


def _write_scheduled(draft: RecordDraft, event: Scheduled) -> int:
    return add_fanned(
        draft, _SCHEDULED, event, ref=event.due_us, count=len(event.words) // WORD_BYTES, meta=event.words
    )


def _read_scheduled(offset: int, time_us: int, row: tuple[int, ...], meta: bytes) -> Scheduled:
    split = row[7] * WORD_BYTES
    return Scheduled(offset, time_us, queues_of(row, meta[split:]), row[5], meta[:split])


def _scheduled_facts(event: Scheduled) -> Facts:
    facts: Facts = {"count": len(event.words) // WORD_BYTES, "bytes": total_size(event.words), "due_us": event.due_us}
    return facts | {"delay_ms": (event.due_us - event.time_us) // 1000, "offsets": ranges_of(event.words)}


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


DelayEvent = Scheduled | Due

TYPES: Final = (
    EventType(
        event=Scheduled,
        number=_SCHEDULED,
        name="scheduled",
        since="0.2.0",
        listed_after=_PUBLISHED,
        layout=Layout(
            queue="queue; 0 with FANOUT",
            ref="due_us: when they are available",
            count="words",
            meta="the words; then queue ids (FANOUT)",
        ),
        write=_write_scheduled,
        read=_read_scheduled,
        keys=IndexKeys.WORDS,
        queue="queues",
        facts=_scheduled_facts,
        facts_text="`queues` `queue_ids` `count` `bytes` `due_us` `delay_ms` `offsets`",
        line=("{count:messages} of {queue_ids:queues} scheduled, available in {delay_ms:,} ms: {offsets:ranges}",),
    ),
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
