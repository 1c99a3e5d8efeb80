"""Events as log records, and back. docs/log-format.md draws the same table for readers.

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

from collections.abc import Callable, Iterator
from typing import Any, Protocol

import msgspec

from engine.attachment import Argument, Condition
from engine.errors import EngineError
from engine.events import (
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
from engine.lifetime import Lifetime
from engine.mode import Mode
from engine.muxer import MuxerKind, Options
from engine.outcome import ACCEPTED, REJECTED, RELEASED, Outcome, OutcomeKind
from engine.queue import Settings
from engine.record_types import (
    ACQUIRED,
    ATTACHED,
    CHUNKED,
    COMPACTED,
    CONSUMER_ATTACHED,
    CONSUMER_DETACHED,
    DAMAGED,
    DETACHED,
    DRAWN,
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
from engine.sending import PLAIN_SENDING, Sending
from engine.subscription import Subscription
from engine.word import WORD_BYTES, make_words, pack_words, size_code, size_of, unpack_words
from log.batch import Batch
from log.draft import Draft

__all__ = ["DURABLE", "FANOUT", "LARGE", "events_of", "write_event"]

DURABLE = 1
LARGE = 2
FANOUT = 4
SKIPPABLE = 128


class _Names(msgspec.Struct, omit_defaults=True):
    """The JSON in the meta of wiring events; each type uses the fields that it has."""

    name: str = ""
    settings: Settings | None = None
    options: Options | None = None
    argument: str | None = None
    conditions: tuple[Condition, ...] | None = None
    attachment: int = 0
    sending: Sending | None = None
    destination: str = ""
    """Of a producer; in version 0.1 that of an attachment too."""
    container: str = ""
    link: str = ""
    selector: str = ""
    node: int = 0
    owns: int = 0
    subscription: Subscription | None = None


class _OutcomeRest(msgspec.Struct, omit_defaults=True):
    """The JSON behind the words of a Settled record; nothing is written for a plain outcome."""

    delivery_failed: bool = False
    undeliverable_here: bool = False
    annotations: tuple[tuple[bytes, bytes], ...] = ()
    condition: str = ""
    description: str = ""


_PLAIN_OUTCOMES = (ACCEPTED, REJECTED, RELEASED)
_encode_json = msgspec.json.Encoder().encode
_decode_names = msgspec.json.Decoder(_Names).decode
_decode_rest = msgspec.json.Decoder(_OutcomeRest).decode


def write_event(draft: Draft, event: Event) -> int:
    """Add an event's records to the draft and return the offset of the first; it is the event's own."""
    return _WRITE[type(event)](draft, event)


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
    consumers = event.consumers
    return draft.add(
        ACQUIRED,
        timestamp_us=event.time_us,
        queue=event.queue,
        ref=consumers[0],
        count=len(event.words) // WORD_BYTES,
        aux=len(consumers),
        meta=event.words if len(consumers) == 1 else pack_words(consumers) + event.words,
    )


def _write_settled(draft: Draft, event: Settled) -> int:
    outcome = event.outcome
    rest = b""
    if outcome not in _PLAIN_OUTCOMES:
        rest = _encode_json(
            _OutcomeRest(
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
    names = _Names(conditions=argument) if isinstance(argument, tuple) else _Names(argument=argument)
    if type(event) is Detached:
        names.attachment = event.attachment
    return _encode_json(names)


def _producer_names(event: ProducerAttached) -> bytes:
    return _encode_json(
        _Names(
            destination=event.destination,
            container=event.container,
            link=event.link,
            sending=None if event.sending == PLAIN_SENDING else event.sending,
            node=event.node,
            owns=event.owns,
        )
    )


def _consumer_names(event: ConsumerAttached) -> bytes:
    return _encode_json(_Names(container=event.container, link=event.link, selector=event.selector, owns=event.owns))


def _muxer_names(event: MuxerDeclared) -> bytes:
    return _encode_json(_Names(name=event.name, options=None if event.options == Options() else event.options))


def _write_drawn(draft: Draft, event: Drawn) -> int:
    return draft.add(DRAWN, timestamp_us=event.time_us, ref=event.muxer, count=event.count)


_WRITE: dict[type, _Add] = {
    Published: _write_published,
    Acquired: _write_acquired,
    Settled: _write_settled,
    Started: _seldom(STARTED, ref="epoch", aux="mode"),
    QueueDeclared: _seldom(
        QUEUE_DECLARED,
        aux="lifetime",
        meta=lambda event: _encode_json(_Names(name=event.name, settings=event.settings)),
    ),
    QueueUpdated: _seldom(
        QUEUE_UPDATED, queue="queue", meta=lambda event: _encode_json(_Names(settings=event.settings))
    ),
    QueueDeleted: _seldom(QUEUE_DELETED, queue="queue"),
    MuxerDeclared: _seldom(MUXER_DECLARED, aux="kind", meta=_muxer_names),
    MuxerUpdated: _seldom(MUXER_UPDATED, ref="muxer", meta=lambda event: _encode_json(_Names(options=event.options))),
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
        SUBSCRIBED, queue="queue", meta=lambda event: _encode_json(_Names(subscription=event.subscription))
    ),
    Lost: _seldom(LOST, ref="first", meta=lambda event: pack_words([event.end])),
    Reset: _seldom(RESET),
    Compacted: _seldom(COMPACTED, ref="horizon", meta=lambda event: pack_words(_counts_of(event))),
}


def events_of(batch: Batch) -> Iterator[Event]:
    """Yield the events of a batch in order, runs of alike messages joined.

    Raises EngineError for a record of an unknown type that is not flagged skippable.
    """
    header = batch.header
    base, base_time = header.base_offset, header.base_timestamp_us
    meta, position = batch.meta, 0
    sizes: list[int] = []
    first, like, delta = 0, None, 0
    for row in batch.rows():
        record_type = row[9]
        if record_type == PUBLISHED and not row[10] & (LARGE | FANOUT):
            # The long loop of recovery: alike messages at consecutive offsets are gathered without an object each.
            alike = (row[4], row[5], row[6], row[10])
            if alike == like and row[0] == delta + 1:
                sizes.append(row[1])
            else:
                if like is not None:
                    yield _published_run(base + first, base_time, like, sizes)
                first, like, sizes = row[0], alike, [row[1]]
            delta = row[0]
            continue
        if like is not None:
            yield _published_run(base + first, base_time, like, sizes)
            like = None
        end = position + row[2]
        read = _READ.get(record_type)
        if read is not None:
            yield read(base + row[0], base_time + row[6], row, bytes(meta[position:end]))
        elif not row[10] & SKIPPABLE:
            raise EngineError(
                f"record {base + row[0]} has the unknown type {record_type}: open this log with a newer version"
            )
        position = end
    if like is not None:
        yield _published_run(base + first, base_time, like, sizes)


def _published_run(first: int, base_time: int, like: tuple[int, int, int, int], sizes: list[int]) -> Published:
    queue, producer, time_delta, flags = like
    words = make_words(first, sizes)
    size = sum(sizes) if max(sizes) < 2048 else sum(map(size_of, unpack_words(words)))
    return Published(first, base_time + time_delta, (queue,), producer, words, size, bool(flags & DURABLE))


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


def _read_acquired(offset: int, time_us: int, row: tuple[int, ...], meta: bytes) -> Acquired:
    split = 0 if row[8] == 1 else row[8] * WORD_BYTES
    consumers = unpack_words(meta[:split]) if split else (row[5],)
    return Acquired(offset, time_us, row[4], consumers, meta[split:])


def _read_settled(offset: int, time_us: int, row: tuple[int, ...], meta: bytes) -> Settled:
    split = row[7] * WORD_BYTES
    outcome = ACCEPTED
    if row[8] != OutcomeKind.ACCEPTED or len(meta) > split:
        rest = _decode_rest(meta[split:]) if len(meta) > split else _OutcomeRest()
        outcome = Outcome(
            OutcomeKind(row[8]),
            rest.delivery_failed,
            rest.undeliverable_here,
            rest.annotations,
            rest.condition,
            rest.description,
        )
    return Settled(offset, time_us, row[4], row[5], outcome, meta[:split])


def _read_queue_declared(offset: int, time_us: int, row: tuple[int, ...], meta: bytes) -> QueueDeclared:
    names = _decode_names(meta)
    return QueueDeclared(offset, time_us, names.name, names.settings or Settings(), Lifetime(row[8]))


def _read_producer_attached(offset: int, time_us: int, row: tuple[int, ...], meta: bytes) -> ProducerAttached:
    names = _decode_names(meta)
    sending = names.sending or PLAIN_SENDING
    links = (names.destination, names.container, names.link, sending, names.node, names.owns)
    return ProducerAttached(offset, time_us, row[5], *links)


def _read_muxer_declared(offset: int, time_us: int, row: tuple[int, ...], meta: bytes) -> MuxerDeclared:
    names = _decode_names(meta)
    return MuxerDeclared(offset, time_us, names.name, MuxerKind(row[8]), names.options or Options())


def _read_attached(offset: int, time_us: int, row: tuple[int, ...], meta: bytes) -> Attached:
    names = _decode_names(meta)
    return Attached(offset, time_us, row[5], row[4], _argument_of(names))


def _read_detached(offset: int, time_us: int, row: tuple[int, ...], meta: bytes) -> Detached:
    names = _decode_names(meta)
    return Detached(offset, time_us, row[5], row[4], names.attachment, _argument_of(names))


def _argument_of(names: _Names) -> Argument:
    return names.destination or (names.argument if names.conditions is None else names.conditions)


def _read_consumer_attached(offset: int, time_us: int, row: tuple[int, ...], meta: bytes) -> ConsumerAttached:
    names = _decode_names(meta)
    return ConsumerAttached(offset, time_us, row[4], names.container, names.link, names.selector, names.owns)


def _read_subscribed(offset: int, time_us: int, row: tuple[int, ...], meta: bytes) -> Subscribed:
    subscription = _decode_names(meta).subscription
    if subscription is None:
        raise EngineError(f"record {offset} of type {SUBSCRIBED} names no subscription")
    return Subscribed(offset, time_us, row[4], subscription)


_READ: dict[int, Callable[[int, int, tuple[int, ...], bytes], Event]] = {
    STARTED: lambda offset, time_us, row, _: Started(offset, time_us, row[5], Mode(row[8])),
    QUEUE_DECLARED: _read_queue_declared,
    QUEUE_UPDATED: lambda offset, time_us, row, meta: QueueUpdated(
        offset, time_us, row[4], _decode_names(meta).settings or Settings()
    ),
    QUEUE_DELETED: lambda offset, time_us, row, _: QueueDeleted(offset, time_us, row[4]),
    MUXER_DECLARED: _read_muxer_declared,
    MUXER_UPDATED: lambda offset, time_us, row, meta: MuxerUpdated(
        offset, time_us, row[5], _decode_names(meta).options or Options()
    ),
    MUXER_DELETED: lambda offset, time_us, row, _: MuxerDeleted(offset, time_us, row[5]),
    ATTACHED: _read_attached,
    DETACHED: _read_detached,
    DRAWN: lambda offset, time_us, row, _: Drawn(offset, time_us, row[5], row[7]),
    PRODUCER_ATTACHED: _read_producer_attached,
    PRODUCER_DETACHED: lambda offset, time_us, row, _: ProducerDetached(offset, time_us, row[5]),
    CONSUMER_ATTACHED: _read_consumer_attached,
    CONSUMER_DETACHED: lambda offset, time_us, row, _: ConsumerDetached(offset, time_us, row[5]),
    CHUNKED: lambda offset, time_us, row, _: Chunked(offset, time_us, row[5], b""),
    PUBLISHED: _read_published,
    ACQUIRED: _read_acquired,
    SETTLED: _read_settled,
    PURGED: lambda offset, time_us, row, _: Purged(offset, time_us, row[4], row[5]),
    DAMAGED: lambda offset, time_us, row, meta: Damaged(offset, time_us, row[4], meta),
    LOST: lambda offset, time_us, row, meta: Lost(offset, time_us, row[5], int.from_bytes(meta, "little")),
    RESET: lambda offset, time_us, _row, _: Reset(offset, time_us),
    SUBSCRIBED: _read_subscribed,
    COMPACTED: lambda offset, time_us, row, meta: Compacted(offset, time_us, row[5], *unpack_words(meta)),
}
