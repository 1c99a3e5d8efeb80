"""Events of message-ids: a queue with a dedup window has got some, or it has got some again.

A duplicate is not stored on the queue, so its event is all that the log has of it there. It names the first message.
"""

from typing import Final, final

from msgspec import Struct

from ambermq.engine.entries.entry_word import WORD_BYTES, pack_words, ranges_of, unpack_words
from ambermq.engine.entries.id_digest import DIGEST_BYTES
from ambermq.engine.events.event_type import EventType, Facts, IndexKeys, Layout, LinkColumn, SizeBound
from ambermq.engine.events.messages import FANOUT
from ambermq.engine.events.record_draft import RecordDraft

__all__ = ["Duplicated", "Identified"]

_IDENTIFIED: Final = 39
_DUPLICATED: Final = 40
_PUBLISHED: Final = 12


@final
class Identified(Struct):
    """The queues remember the message-ids of messages of the Published event before it."""

    offset: int
    time_us: int
    queues: tuple[int, ...]
    ids_max: int
    """The most ids that a queue remembers."""
    words: bytes
    """Those of the messages, packed."""
    digests: bytes
    """Their digests (engine/entries/id_digest.py): 16 bytes each, zeros for a message without an id."""


def _write_identified(draft: RecordDraft, event: Identified) -> int:
    fans_out = len(event.queues) != 1
    return draft.add(
        _IDENTIFIED,
        timestamp_us=event.time_us,
        queue=0 if fans_out else event.queues[0],
        ref=event.ids_max,
        count=len(event.words) // WORD_BYTES,
        flags=FANOUT if fans_out else 0,
        meta=event.words + event.digests + (pack_words(event.queues) if fans_out else b""),
    )


def _read_identified(offset: int, time_us: int, row: tuple[int, ...], meta: bytes) -> Identified:
    middle = row[7] * WORD_BYTES
    end = middle + row[7] * DIGEST_BYTES
    queues = unpack_words(meta[end:]) if row[10] & FANOUT else (row[4],)
    return Identified(offset, time_us, queues, row[5], meta[:middle], meta[middle:end])


def _identified_facts(event: Identified) -> Facts:
    return {"count": len(event.words) // WORD_BYTES, "offsets": ranges_of(event.words)}


@final
class Duplicated(Struct):
    """Messages came whose ids the queues have got lately: they are accepted, and not stored there."""

    offset: int
    time_us: int
    queues: tuple[int, ...]
    producer: int
    words: bytes
    """Those of the first messages with these ids, on the first of the queues, packed."""


def _write_duplicated(draft: RecordDraft, event: Duplicated) -> int:
    fans_out = len(event.queues) != 1
    return draft.add(
        _DUPLICATED,
        timestamp_us=event.time_us,
        queue=0 if fans_out else event.queues[0],
        ref=event.producer,
        count=len(event.words) // WORD_BYTES,
        flags=FANOUT if fans_out else 0,
        meta=event.words + (pack_words(event.queues) if fans_out else b""),
    )


def _read_duplicated(offset: int, time_us: int, row: tuple[int, ...], meta: bytes) -> Duplicated:
    split = row[7] * WORD_BYTES
    queues = unpack_words(meta[split:]) if row[10] & FANOUT else (row[4],)
    return Duplicated(offset, time_us, queues, row[5], meta[:split])


def _duplicated_facts(event: Duplicated) -> Facts:
    facts: Facts = {"count": len(event.words) // WORD_BYTES, "producer": event.producer}
    return facts | {"offsets": ranges_of(pack_words(sorted(set(unpack_words(event.words)))))}


DuplicateEvent = Identified | Duplicated

TYPES: Final = (
    EventType(
        event=Identified,
        number=_IDENTIFIED,
        name="identified",
        since="0.2.0",
        listed_after=_PUBLISHED,
        layout=Layout(
            queue="queue; 0 with FANOUT",
            ref="ids_max: the most ids that a queue remembers",
            count="messages",
            meta="their words; 16 bytes each: the digests of their ids; then queue ids (FANOUT)",
        ),
        write=_write_identified,
        read=_read_identified,
        bound=SizeBound.SETTLED,
        queue="queues",
        facts=_identified_facts,
        facts_text="`queues` `queue_ids` `count` `offsets`",
        line=("the ids of {count:messages} remembered on {queue_ids:queues}: {offsets:ranges}",),
    ),
    EventType(
        event=Duplicated,
        number=_DUPLICATED,
        name="duplicated",
        since="0.2.0",
        listed_after=_PUBLISHED,
        layout=Layout(
            queue="queue; 0 with FANOUT",
            ref="producer",
            count="words",
            meta="the words of the first messages; then queue ids (FANOUT)",
        ),
        write=_write_duplicated,
        read=_read_duplicated,
        keys=IndexKeys.WORDS,
        bound=SizeBound.SETTLED,
        link=LinkColumn.REF,
        queue="queues",
        facts=_duplicated_facts,
        facts_text="`queues` `queue_ids` `count` `producer` `offsets`",
        line=(
            "{count:messages} from {producer:link} not stored on {queue_ids:queues}, duplicates of {offsets:ranges}",
        ),
    ),
)
