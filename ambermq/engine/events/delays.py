"""Events of messages that wait for a time: they are scheduled for it, or it has come.

A scheduled message takes the tail of its queue by the event Moved, with the reason `due`. Event Due is for the others.
"""

from typing import Final, final

from msgspec import Struct

from ambermq.engine.entries.entry_word import WORD_BYTES, entry_of, pack_words, ranges_of, total_size, unpack_words
from ambermq.engine.events.event_type import EventType, Facts, IndexKeys, Layout, SizeBound
from ambermq.engine.events.line_template import Choice
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
    """When the first of them is available, by the clock of `time_us`."""
    words: bytes
    dues: bytes = b""
    """When each of them is available, packed; empty if all are at once."""

    def elapsed_dues(self, stepped_us: int) -> bytes:
        """Return when each of them is available, in elapsed time, packed; `stepped_us` are the steps of the clock."""
        if not self.dues:
            return pack_words((self.due_us - stepped_us,)) * (len(self.words) // WORD_BYTES)
        return pack_words([due_us - stepped_us for due_us in unpack_words(self.dues)]) if stepped_us else self.dues

    def due_us_of(self, entry: int) -> int:
        """Return when one of the messages is available."""
        each = dict(zip(map(entry_of, unpack_words(self.words)), unpack_words(self.dues), strict=False))
        return each.get(entry, self.due_us)


def _write_scheduled(draft: RecordDraft, event: Scheduled) -> int:
    return add_fanned(
        draft,
        _SCHEDULED,
        event,
        ref=event.due_us,
        count=len(event.words) // WORD_BYTES,
        aux=1 if event.dues else 0,
        meta=event.words + event.dues,
    )


def _read_scheduled(offset: int, time_us: int, row: tuple[int, ...], meta: bytes) -> Scheduled:
    split = row[7] * WORD_BYTES
    end = split + split * row[8]
    return Scheduled(offset, time_us, queues_of(row, meta[end:]), row[5], meta[:split], meta[split:end])


def _scheduled_facts(event: Scheduled) -> Facts:
    facts: Facts = {"count": len(event.words) // WORD_BYTES, "bytes": total_size(event.words), "due_us": event.due_us}
    facts |= {"delay_ms": (event.due_us - event.time_us) // 1000, "offsets": ranges_of(event.words)}
    return facts | ({"last_due_us": max(unpack_words(event.dues))} if event.dues else {})


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
            ref="due_us: when the first of them is available",
            count="words",
            aux="1 if their times differ",
            meta="the words; then when each is available (aux); then queue ids (FANOUT)",
        ),
        write=_write_scheduled,
        read=_read_scheduled,
        keys=IndexKeys.WORDS,
        queue="queues",
        facts=_scheduled_facts,
        facts_text="`queues` `queue_ids` `count` `bytes` `due_us` `delay_ms` `offsets`; `last_due_us`, if times differ",
        line=(
            "{count:messages} of {queue_ids:queues} scheduled, ",
            Choice("last_due_us", "the first "),
            "available in {delay_ms:,} ms: {offsets:ranges}",
        ),
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
