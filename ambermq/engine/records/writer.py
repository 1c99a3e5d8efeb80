"""Events as log records; record_reader.py reads them. docs/log-format.md draws the same table for readers.

    type  event               queue     ref        count  aux            meta                                    body
     1    Started             -         epoch      -      mode           -                                       -
     2    QueueDeclared       -         -          -      lifetime       JSON {name, settings}                   -
     3    QueueDeleted        queue     -          -      -              -                                       -
     4    MuxerDeclared       -         -          -      kind           JSON {name, options}                    -
     5    Attached            member    muxer      -      -              JSON {argument or conditions}           -
     6    Detached            member    muxer      -      -              JSON {attachment} and as above          -
     7    ProducerAttached    -         muxer      -      -              JSON {destination, container, link, ...}    -
     8    ProducerDetached    -         producer   -      -              -                                       -
     9    ConsumerAttached    queue     -          -      -              JSON {container, link, selector, owns}  -
    10    ConsumerDetached    -         consumer   -      -              -                                       -
    11    Chunked             -         producer   -      -              -                                       piece
    12    Published           queue     producer   -      -              queues (FANOUT), chunks (LARGE)         message
    13    Acquired            queue     consumer   n      consumers      consumers (when more than 1), n words   -
    14    Settled             queue     consumer   n      outcome        n words, JSON of the outcome's rest     -
    15    Purged              queue     before     -      -              -                                       -
    16    Damaged             queue     -          n      -              n words; n = 0 stands for one            -
    17    Lost                -         first      -      -              end as u64                              -
    18    Reset               -         -          -      -              -                                       -
    19    Compacted           -         horizon    -      -              segments, records, bytes: old and new   -
    20    MuxerDeleted        -         muxer      -      -              -                                       -
    21    Drawn               -         muxer      n      -              -                                       -
    22    Subscribed          queue     -          -      -              JSON {subscription}                     -
    23    QueueUpdated        queue     -          -      -              JSON {settings}                         -
    24    MuxerUpdated        -         muxer      -      -              JSON {options}                          -

A run of n messages published is n Published records, each with its own offset; a run acquired or settled is one record.
Published: flags bit 0 DURABLE; bit 1 LARGE: meta ends in `aux` u64 chunk offsets and the u16 size code of the whole;
bit 2 FANOUT: meta begins with u64 queue ids and `queue` is 0. `id_hash` is a hash of the message-id, 0 for none.
Numbers never change meaning; an unknown type refuses to open unless its flags have bit 7, SKIPPABLE.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from ambermq.engine.events import (
    Acquired,
    Attached,
    Chunked,
    Compacted,
    ConsumerAttached,
    ConsumerDetached,
    Damaged,
    Detached,
    Drawn,
    Event,
    Lost,
    MuxerDeclared,
    MuxerDeleted,
    MuxerUpdated,
    ProducerAttached,
    ProducerDetached,
    Published,
    Purged,
    QueueDeclared,
    QueueDeleted,
    QueueUpdated,
    Reset,
    Settled,
    Started,
    Subscribed,
)
from ambermq.engine.model.entry_word import WORD_BYTES, pack_words
from ambermq.engine.model.muxer import Options
from ambermq.engine.model.outcome import ACCEPTED, REJECTED, RELEASED
from ambermq.engine.model.publish_options import PLAIN_SENDING
from ambermq.engine.records.meta import Names, OutcomeRest, encode_meta
from ambermq.engine.records.types import (
    ACQUIRED,
    ATTACHED,
    CHUNKED,
    COMPACTED,
    CONSUMER_ATTACHED,
    CONSUMER_DETACHED,
    DAMAGED,
    DETACHED,
    DRAWN,
    DURABLE,
    FANOUT,
    LARGE,
    LOST,
    MUXER_DECLARED,
    MUXER_DELETED,
    MUXER_UPDATED,
    PRODUCER_ATTACHED,
    PRODUCER_DETACHED,
    PUBLISHED,
    PURGED,
    QUEUE_DECLARED,
    QUEUE_DELETED,
    QUEUE_UPDATED,
    RESET,
    SETTLED,
    STARTED,
    SUBSCRIBED,
)
from ambermq.log.write.draft import Draft

__all__ = ["WRITE", "write_event"]

_PLAIN_OUTCOMES = (ACCEPTED, REJECTED, RELEASED)


def write_event(draft: Draft, event: Event) -> int:
    """Add an event's records to the draft and return the offset of the first; it is the event's own."""
    return WRITE[type(event)](draft, event)


def _write_published(draft: Draft, event: Published) -> int:
    flags = DURABLE if event.durable else 0
    if len(event.queues) == 1 and not event.chunks:
        return draft.add_bodies(
            PUBLISHED,
            timestamp_us=event.time_us,
            queue=event.queues[0],
            bodies=event.bodies,
            id_hashes=event.id_hashes,
            flags=flags,
            ref=event.producer,
        )
    fans_out = len(event.queues) != 1
    return draft.add_bodies(
        PUBLISHED,
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


def _write_acquired(draft: Draft, event: Acquired) -> int:
    consumers, words = event.consumers, event.words
    consumer_count = len(consumers)
    return draft.add(
        ACQUIRED,
        timestamp_us=event.time_us,
        queue=event.queue,
        ref=consumers[0],
        count=len(words) // WORD_BYTES,
        aux=consumer_count,
        meta=words if consumer_count == 1 else pack_words(consumers) + words,
    )


def _write_settled(draft: Draft, event: Settled) -> int:
    outcome = event.outcome
    rest = b""
    if outcome not in _PLAIN_OUTCOMES:
        rest = encode_meta(
            OutcomeRest(
                outcome.delivery_failed,
                outcome.undeliverable_here,
                outcome.annotations,
                outcome.condition,
                outcome.description,
            )
        )
    return draft.add(
        SETTLED,
        timestamp_us=event.time_us,
        queue=event.queue,
        ref=event.consumer,
        count=len(event.words) // WORD_BYTES,
        aux=outcome.kind,
        meta=event.words + rest,
    )


def _write_damaged(draft: Draft, event: Damaged) -> int:
    # A single one was written without a count before there were runs, and is for ever.
    count = len(event.words) // WORD_BYTES
    return draft.add(
        DAMAGED,
        timestamp_us=event.time_us,
        queue=event.queue,
        count=count if count > 1 else 0,
        meta=event.words,
    )


class _Add(Protocol):
    def __call__(self, draft: Draft, event: Any, /) -> int: ...


def _seldom(
    record_type: int,
    *,
    queue: str = "",
    ref: str = "",
    aux: str = "",
    meta: Callable[[Any], bytes] = lambda _: b"",
    body: str = "",
) -> _Add:
    """Return the writer of an event whose columns are attributes of it, named here."""

    def write(draft: Draft, event: Any, /) -> int:
        return draft.add(
            record_type,
            timestamp_us=event.time_us,
            queue=getattr(event, queue) if queue else 0,
            ref=getattr(event, ref) if ref else 0,
            aux=getattr(event, aux) if aux else 0,
            meta=meta(event),
            body=getattr(event, body) if body else b"",
        )

    return write


def _counts_of(event: Compacted) -> tuple[int, ...]:
    return (
        event.segments_before,
        event.segments_after,
        event.records_before,
        event.records_after,
        event.bytes_before,
        event.bytes_after,
    )


def _argument(event: Attached | Detached) -> bytes:
    argument = event.argument
    names = Names(conditions=argument) if isinstance(argument, tuple) else Names(argument=argument)
    if type(event) is Detached:
        names.attachment = event.attachment
    return encode_meta(names)


def _producer_names(event: ProducerAttached) -> bytes:
    return encode_meta(
        Names(
            destination=event.destination,
            container=event.container,
            link=event.link,
            sending=None if event.sending == PLAIN_SENDING else event.sending,
            node=event.node,
            owns=event.owns,
        )
    )


def _consumer_names(event: ConsumerAttached) -> bytes:
    return encode_meta(Names(container=event.container, link=event.link, selector=event.selector, owns=event.owns))


def _muxer_names(event: MuxerDeclared) -> bytes:
    return encode_meta(Names(name=event.name, options=None if event.options == Options() else event.options))


def _write_drawn(draft: Draft, event: Drawn) -> int:
    return draft.add(DRAWN, timestamp_us=event.time_us, ref=event.muxer, count=event.count)


WRITE: Final[Mapping[type, _Add]] = {
    Published: _write_published,
    Acquired: _write_acquired,
    Settled: _write_settled,
    Started: _seldom(STARTED, ref="epoch", aux="mode"),
    QueueDeclared: _seldom(
        QUEUE_DECLARED,
        aux="lifetime",
        meta=lambda event: encode_meta(Names(name=event.name, settings=event.settings)),
    ),
    QueueUpdated: _seldom(QUEUE_UPDATED, queue="queue", meta=lambda event: encode_meta(Names(settings=event.settings))),
    QueueDeleted: _seldom(QUEUE_DELETED, queue="queue"),
    MuxerDeclared: _seldom(MUXER_DECLARED, aux="kind", meta=_muxer_names),
    MuxerUpdated: _seldom(MUXER_UPDATED, ref="muxer", meta=lambda event: encode_meta(Names(options=event.options))),
    MuxerDeleted: _seldom(MUXER_DELETED, ref="muxer"),
    Attached: _seldom(ATTACHED, queue="member", ref="muxer", meta=_argument),
    Detached: _seldom(DETACHED, queue="member", ref="muxer", meta=_argument),
    Drawn: _write_drawn,
    ProducerAttached: _seldom(PRODUCER_ATTACHED, ref="muxer", meta=_producer_names),
    ProducerDetached: _seldom(PRODUCER_DETACHED, ref="producer"),
    ConsumerAttached: _seldom(CONSUMER_ATTACHED, queue="queue", meta=_consumer_names),
    ConsumerDetached: _seldom(CONSUMER_DETACHED, ref="consumer"),
    Chunked: _seldom(CHUNKED, ref="producer", body="body"),
    Purged: _seldom(PURGED, queue="queue", ref="before"),
    Damaged: _write_damaged,
    Subscribed: _seldom(
        SUBSCRIBED, queue="queue", meta=lambda event: encode_meta(Names(subscription=event.subscription))
    ),
    Lost: _seldom(LOST, ref="first", meta=lambda event: pack_words([event.end])),
    Reset: _seldom(RESET),
    Compacted: _seldom(COMPACTED, ref="horizon", meta=lambda event: pack_words(_counts_of(event))),
}
"""By the type of an event what `write_event` calls for it: the loop looks there itself."""
