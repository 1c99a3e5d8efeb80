"""The event of messages that arrive: a run of them, stored once and available on each of its queues.

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
from ambermq.engine.events.event_type import EventType, Facts, Layout, LinkColumn
from ambermq.engine.events.line_template import Choice
from ambermq.engine.events.messages.fan_out import FANOUT
from ambermq.engine.events.record_draft import RecordDraft
from ambermq.log.buffer import Buffer

__all__ = ["Published"]

DURABLE: Final = 1
"""The flag of a durable message."""
LARGE: Final = 2
"""The flag of a message whose first pieces are chunk records."""

_PUBLISHED: Final = 12
_READ_BACK_COUNT: Final = 8
"""The number of fields of Published that a record holds; they come first."""


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


TYPES: Final = (
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
)
