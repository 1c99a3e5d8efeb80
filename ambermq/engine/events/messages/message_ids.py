"""Events of message-ids on queues with a dedup window: ids that queues remember, and messages that are duplicates."""

from typing import Final, final

from msgspec import Struct

from ambermq.engine.entries.entry_word import WORD_BYTES, pack_words, ranges_of, unpack_words
from ambermq.engine.entries.id_digest import DIGEST_BYTES
from ambermq.engine.events.event_type import EventType, Facts, IndexKeys, Layout, LinkColumn, SizeBound
from ambermq.engine.events.messages.fan_out import add_fanned, queues_of
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
    return add_fanned(
        draft,
        _IDENTIFIED,
        event,
        ref=event.ids_max,
        count=len(event.words) // WORD_BYTES,
        meta=event.words + event.digests,
    )


def _read_identified(offset: int, time_us: int, row: tuple[int, ...], meta: bytes) -> Identified:
    middle = row[7] * WORD_BYTES
    end = middle + row[7] * DIGEST_BYTES
    return Identified(offset, time_us, queues_of(row, meta[end:]), row[5], meta[:middle], meta[middle:end])


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
    return add_fanned(
        draft, _DUPLICATED, event, ref=event.producer, count=len(event.words) // WORD_BYTES, meta=event.words
    )


def _read_duplicated(offset: int, time_us: int, row: tuple[int, ...], meta: bytes) -> Duplicated:
    split = row[7] * WORD_BYTES
    return Duplicated(offset, time_us, queues_of(row, meta[split:]), row[5], meta[:split])


def _duplicated_facts(event: Duplicated) -> Facts:
    facts: Facts = {"count": len(event.words) // WORD_BYTES, "producer": event.producer}
    return facts | {"offsets": ranges_of(pack_words(sorted(set(unpack_words(event.words)))))}


MessageIdEvent = Identified | Duplicated

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
