"""Events of messages that arrive: published, a chunk of a large message, or a duplicate; and the end of a transaction.

A run of n messages is n records, each with its own offset; the reader joins runs of alike messages again.
`id_hash` is a hash of the message-id, 0 if there is none. Flags of a `published` record:

1 DURABLE   the sender asked for a durable message
2 LARGE     the meta ends with `aux` u64 chunk offsets and the u16 size code of the whole message
4 FANOUT    the meta begins with u64 queue ids, and `queue` is 0
"""

from collections.abc import Sequence
from typing import Final, final

from msgspec import Struct
from msgspec.structs import astuple

from ambermq.engine.entries.entry_word import (
    WORD_BYTES,
    make_run,
    pack_words,
    ranges_of,
    size_code,
    size_of,
    unpack_words,
)
from ambermq.engine.entries.id_digest import DIGEST_BYTES
from ambermq.engine.events.event_type import (
    EventType,
    Facts,
    IndexKeys,
    Layout,
    LinkColumn,
    SizeBound,
    field_facts,
)
from ambermq.engine.events.line_template import Choice
from ambermq.engine.events.record_draft import RecordDraft
from ambermq.log.buffer import Buffer

__all__ = [
    "Chunked",
    "Committed",
    "Duplicated",
    "Grouped",
    "Identified",
    "Keyed",
    "Prioritized",
    "Published",
    "Timed",
    "UploadEnded",
]

DURABLE: Final = 1
"""The flag of a durable message."""
LARGE: Final = 2
"""The flag of a message whose first pieces are chunk records."""
FANOUT: Final = 4
"""The flag of a record whose meta holds the queues."""

_CHUNKED: Final = 11
_PUBLISHED: Final = 12
_TIMED: Final = 30
_COMMITTED: Final = 33
_PRIORITIZED: Final = 34
_UPLOAD_ENDED: Final = 47
_GROUPED: Final = 35
_KEYED: Final = 37
_KEY_BYTES: Final = 16
_IDENTIFIED: Final = 39
_DUPLICATED: Final = 40
_READ_BACK_COUNT: Final = 8
"""The number of fields of Published that a record holds; they come first."""


@final
class Chunked(Struct):
    """A chunk of a large message. Its publish record names it later; without that record it is garbage."""

    offset: int
    time_us: int
    producer: int
    body: Buffer
    upload: int = 0
    """The offset of the first chunk of its message, if the message arrives piece by piece; else 0."""


@final
class UploadEnded(Struct):
    """A message that arrived piece by piece is not published: its chunk records are garbage."""

    offset: int
    time_us: int
    upload: int
    """The offset of its first chunk record."""


@final
class Published(Struct, eq=False):
    """A run of messages at consecutive offsets, stored once and available on each of `queues`."""

    offset: int
    time_us: int
    queues: tuple[int, ...]
    producer: int
    words: bytes
    """The entries' words, packed."""
    size: int
    """The sum of the sizes in the words, in bytes."""
    durable: bool = True
    chunks: tuple[int, ...] = ()
    """Offsets of the chunk records before the body; only a run of one has them."""
    bodies: Sequence[Buffer] = ()
    """The encoded messages; empty in an event that was read from the log."""
    id_hashes: Sequence[int] = ()
    """A hash of each message-id, 0 for none; empty in an event that was read from the log."""

    def __eq__(self, other: object) -> bool:
        """Compare the fields that a record holds."""
        return type(other) is Published and astuple(self)[:_READ_BACK_COUNT] == astuple(other)[:_READ_BACK_COUNT]

    __hash__ = None  # type: ignore[assignment]  # mutable, like the others


def _write_published(draft: RecordDraft, event: Published) -> int:
    flags = DURABLE if event.durable else 0
    if len(event.queues) == 1 and not event.chunks:
        return draft.add_bodies(
            _PUBLISHED,
            timestamp_us=event.time_us,
            queue=event.queues[0],
            bodies=event.bodies,
            id_hashes=event.id_hashes,
            flags=flags,
            ref=event.producer,
        )
    fans_out = len(event.queues) != 1
    return draft.add_bodies(
        _PUBLISHED,
        timestamp_us=event.time_us,
        queue=0 if fans_out else event.queues[0],
        bodies=event.bodies,
        id_hashes=event.id_hashes,
        flags=flags | (FANOUT if fans_out else 0) | (LARGE if event.chunks else 0),
        ref=event.producer,
        aux=len(event.chunks),
        meta=(pack_words(event.queues) if fans_out else b"")
        + (pack_words(event.chunks) + event.words[:2] if event.chunks else b""),
    )


def _read_published(offset: int, time_us: int, row: tuple[int, ...], meta: bytes) -> Published:
    queues: tuple[int, ...] = (row[4],)
    code = size_code(row[1])
    chunks: tuple[int, ...] = ()
    if row[10] & LARGE:
        code = int.from_bytes(meta[-2:], "little")
        meta = meta[:-2]
        split = len(meta) - row[8] * WORD_BYTES
        chunks = unpack_words(meta[split:])
        meta = meta[:split]
    if row[10] & FANOUT:
        queues = unpack_words(meta)
    word = offset << 16 | code
    return Published(
        offset, time_us, queues, row[5], pack_words([word]), size_of(word), bool(row[10] & DURABLE), chunks
    )


def published_run(first: int, base_time: int, like: tuple[int, int, int, int], sizes: list[int]) -> Published:
    """Return the run of messages of these sizes at offsets from `first` on.

    `like` has the columns queue, ref, time delta and flags, which are equal in all records: neither LARGE nor FANOUT.
    """
    queue, producer, time_delta, flags = like
    words, size = make_run(first, sizes)
    return Published(first, base_time + time_delta, (queue,), producer, words, size, bool(flags & DURABLE))


def _published_facts(event: Published) -> Facts:
    facts: Facts = {"count": len(event.words) // WORD_BYTES, "bytes": event.size, "durable": event.durable}
    facts |= {"producer": event.producer, "offsets": ranges_of(event.words)}
    return facts | ({"chunks": list(event.chunks)} if event.chunks else {})


@final
class Timed(Struct):
    """The messages of the Published event before it have a time to live of their own."""

    offset: int
    time_us: int
    queues: tuple[int, ...]
    first: int
    """The offset of the first message."""
    count: int
    ttl_ms: int
    """Their time to live in milliseconds, from `time_us` on."""


def _write_timed(draft: RecordDraft, event: Timed) -> int:
    fans_out = len(event.queues) != 1
    return draft.add(
        _TIMED,
        timestamp_us=event.time_us,
        queue=0 if fans_out else event.queues[0],
        ref=event.first,
        count=event.count,
        flags=FANOUT if fans_out else 0,
        meta=event.ttl_ms.to_bytes(8, "little") + (pack_words(event.queues) if fans_out else b""),
    )


def _read_timed(offset: int, time_us: int, row: tuple[int, ...], meta: bytes) -> Timed:
    queues = unpack_words(meta[8:]) if row[10] & FANOUT else (row[4],)
    return Timed(offset, time_us, queues, row[5], row[7], int.from_bytes(meta[:8], "little"))


@final
class Prioritized(Struct):
    """The messages of the Published event before it have a priority; each queue without priorities ignores it."""

    offset: int
    time_us: int
    queues: tuple[int, ...]
    first: int
    """The offset of the first message."""
    count: int
    priority: int
    """0 to 9."""


def _write_prioritized(draft: RecordDraft, event: Prioritized) -> int:
    fans_out = len(event.queues) != 1
    return draft.add(
        _PRIORITIZED,
        timestamp_us=event.time_us,
        queue=0 if fans_out else event.queues[0],
        ref=event.first,
        count=event.count,
        aux=event.priority,
        flags=FANOUT if fans_out else 0,
        meta=pack_words(event.queues) if fans_out else b"",
    )


def _read_prioritized(offset: int, time_us: int, row: tuple[int, ...], meta: bytes) -> Prioritized:
    queues = unpack_words(meta) if row[10] & FANOUT else (row[4],)
    return Prioritized(offset, time_us, queues, row[5], row[7], row[8])


@final
class Grouped(Struct):
    """The messages of the Published event before it have groups; each queue without groups ignores it."""

    offset: int
    time_us: int
    queues: tuple[int, ...]
    first: int
    """The offset of the first message."""
    count: int
    codes: bytes
    """The code of each message's group (entries/group.py), packed; one code if all are equal."""


def _write_grouped(draft: RecordDraft, event: Grouped) -> int:
    fans_out = len(event.queues) != 1
    return draft.add(
        _GROUPED,
        timestamp_us=event.time_us,
        queue=0 if fans_out else event.queues[0],
        ref=event.first,
        count=event.count,
        aux=len(event.codes) // WORD_BYTES,
        flags=FANOUT if fans_out else 0,
        meta=event.codes + (pack_words(event.queues) if fans_out else b""),
    )


def _read_grouped(offset: int, time_us: int, row: tuple[int, ...], meta: bytes) -> Grouped:
    end = row[8] * WORD_BYTES
    queues = unpack_words(meta[end:]) if row[10] & FANOUT else (row[4],)
    return Grouped(offset, time_us, queues, row[5], row[7], bytes(meta[:end]))


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


@final
class Keyed(Struct):
    """The messages of the Published or Moved event before it have keys, by which their queues keep the last value."""

    offset: int
    time_us: int
    queues: tuple[int, ...]
    first: int
    """The offset of the first message."""
    keys: bytes
    """The key of each message, 16 bytes; zeros for a message without one."""


def _write_keyed(draft: RecordDraft, event: Keyed) -> int:
    fans_out = len(event.queues) != 1
    return draft.add(
        _KEYED,
        timestamp_us=event.time_us,
        queue=0 if fans_out else event.queues[0],
        ref=event.first,
        count=len(event.keys) // _KEY_BYTES,
        flags=FANOUT if fans_out else 0,
        meta=event.keys + (pack_words(event.queues) if fans_out else b""),
    )


def _read_keyed(offset: int, time_us: int, row: tuple[int, ...], meta: bytes) -> Keyed:
    split = row[7] * _KEY_BYTES
    queues = unpack_words(meta[split:]) if row[10] & FANOUT else (row[4],)
    return Keyed(offset, time_us, queues, row[5], meta[:split])


def _keyed_facts(event: Keyed) -> Facts:
    count = len(event.keys) // _KEY_BYTES
    return {"count": count, "offsets": [[event.first, event.first + count - 1]]}


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


MessageEvent = (
    Chunked | UploadEnded | Published | Timed | Prioritized | Grouped | Keyed | Identified | Duplicated | Committed
)

TYPES: Final = (
    EventType(
        event=Chunked,
        number=_CHUNKED,
        name="chunk",
        layout=Layout(
            queue="upload: the offset of its message's first chunk, if that arrives piece by piece; else 0",
            ref="producer",
            body="body: a piece of a large message",
        ),
        read=lambda offset, time_us, row, _: Chunked(offset, time_us, row[5], b"", row[4]),
        link=LinkColumn.REF,
        facts=field_facts("producer"),
        facts_text="`producer`",
        line=("a chunk of a large message from {producer:link}",),
    ),
    EventType(
        event=UploadEnded,
        number=_UPLOAD_ENDED,
        name="upload-ended",
        since="0.2.0",
        layout=Layout(ref="upload: the offset of its first chunk"),
        facts=field_facts("upload"),
        facts_text="`upload`",
        line=("a large message ended before it was published, stored in chunks from offset {upload} on",),
    ),
    EventType(
        event=Published,
        number=_PUBLISHED,
        name="published",
        layout=Layout(
            queue="queue; 0 with FANOUT",
            ref="producer",
            count="0",
            aux="chunks, with LARGE",
            meta="queue ids (FANOUT), chunk offsets and size code (LARGE)",
            body="the message, or its last piece",
        ),
        write=_write_published,
        read=_read_published,
        link=LinkColumn.REF,
        queue="queues",
        facts=_published_facts,
        facts_text=("`queues` `queue_ids` `count` `bytes` `durable` `producer` `offsets`; `chunks` of a large message"),
        line=(
            "{count:messages} to {queue_ids:queues}, {bytes:bytes}, ",
            Choice("durable", texts={True: "durable", False: "not durable"}),
            Choice("chunks", ", in {pieces} pieces"),
            ", from {producer:link}",
        ),
        line_facts=lambda event: {"pieces": len(event.chunks) + 1},
    ),
    EventType(
        event=Timed,
        number=_TIMED,
        name="timed",
        since="0.2.0",
        listed_after=_PUBLISHED,
        layout=Layout(
            queue="queue; 0 with FANOUT",
            ref="first: the offset of the first message",
            count="messages",
            meta="u64 time to live in milliseconds; then queue ids (FANOUT)",
        ),
        write=_write_timed,
        read=_read_timed,
        queue="queues",
        facts=lambda event: {
            "count": event.count,
            "ttl_ms": event.ttl_ms,
            "offsets": [[event.first, event.first + event.count - 1]],
        },
        facts_text="`queues` `queue_ids` `count` `ttl_ms` `offsets`",
        line=("{count:messages} of {queue_ids:queues} with a time to live of {ttl_ms:,} ms: {offsets:ranges}",),
    ),
    EventType(
        event=Prioritized,
        number=_PRIORITIZED,
        name="prioritized",
        since="0.2.0",
        listed_after=_PUBLISHED,
        layout=Layout(
            queue="queue; 0 with FANOUT",
            ref="first: the offset of the first message",
            count="messages",
            aux="priority",
            meta="queue ids (FANOUT)",
        ),
        write=_write_prioritized,
        read=_read_prioritized,
        queue="queues",
        facts=lambda event: {
            "count": event.count,
            "priority": event.priority,
            "offsets": [[event.first, event.first + event.count - 1]],
        },
        facts_text="`queues` `queue_ids` `count` `priority` `offsets`",
        line=("{count:messages} of {queue_ids:queues} with priority {priority}: {offsets:ranges}",),
    ),
    EventType(
        event=Keyed,
        number=_KEYED,
        name="keyed",
        since="0.2.0",
        listed_after=_PUBLISHED,
        layout=Layout(
            queue="queue; 0 with FANOUT",
            ref="first: the offset of the first message",
            count="messages",
            meta="a key of 16 bytes for each message, zeros for none; then queue ids (FANOUT)",
        ),
        write=_write_keyed,
        read=_read_keyed,
        queue="queues",
        facts=_keyed_facts,
        facts_text="`queues` `queue_ids` `count` `offsets`",
        line=("{count:messages} of {queue_ids:queues} with keys: {offsets:ranges}",),
    ),
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
    EventType(
        event=Grouped,
        number=_GROUPED,
        name="grouped",
        since="0.2.0",
        listed_after=_PUBLISHED,
        layout=Layout(
            queue="queue; 0 with FANOUT",
            ref="first: the offset of the first message",
            count="messages",
            aux="codes",
            meta="the codes of their groups, one for all or one for each; then queue ids (FANOUT)",
        ),
        write=_write_grouped,
        read=_read_grouped,
        queue="queues",
        facts=lambda event: {
            "count": event.count,
            "groups": len({code >> 1 for code in unpack_words(event.codes)} - {0}),
            "offsets": [[event.first, event.first + event.count - 1]],
        },
        facts_text="`queues` `queue_ids` `count` `groups` `offsets`",
        line=("{count:messages} of {queue_ids:queues} with groups, {groups:,} in all: {offsets:ranges}",),
    ),
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
