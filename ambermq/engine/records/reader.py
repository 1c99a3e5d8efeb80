"""Log records as events again: the other way of records.py, whose table says what stands where."""

from collections.abc import Callable, Iterator

from ambermq.engine.errors import EngineError
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
from ambermq.engine.model.attachment import Argument
from ambermq.engine.model.entry_word import WORD_BYTES, make_run, pack_words, size_code, size_of, unpack_words
from ambermq.engine.model.lifetime import Lifetime
from ambermq.engine.model.muxer import MuxerKind, Options
from ambermq.engine.model.outcome import ACCEPTED, Outcome, OutcomeKind
from ambermq.engine.model.publish_options import PLAIN_SENDING
from ambermq.engine.model.queue import Settings
from ambermq.engine.model.vhost_mode import VhostMode
from ambermq.engine.records.meta import Names, OutcomeRest, decode_names, decode_rest
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
    SKIPPABLE,
    STARTED,
    SUBSCRIBED,
)
from ambermq.log.format.batch import Batch

__all__ = ["events_of"]


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
    words, size = make_run(first, sizes)
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
        rest = decode_rest(meta[split:]) if len(meta) > split else OutcomeRest()
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
    names = decode_names(meta)
    return QueueDeclared(offset, time_us, names.name, names.settings or Settings(), Lifetime(row[8]))


def _read_producer_attached(offset: int, time_us: int, row: tuple[int, ...], meta: bytes) -> ProducerAttached:
    names = decode_names(meta)
    sending = names.sending or PLAIN_SENDING
    links = (names.destination, names.container, names.link, sending, names.node, names.owns)
    return ProducerAttached(offset, time_us, row[5], *links)


def _read_muxer_declared(offset: int, time_us: int, row: tuple[int, ...], meta: bytes) -> MuxerDeclared:
    names = decode_names(meta)
    return MuxerDeclared(offset, time_us, names.name, MuxerKind(row[8]), names.options or Options())


def _read_attached(offset: int, time_us: int, row: tuple[int, ...], meta: bytes) -> Attached:
    names = decode_names(meta)
    return Attached(offset, time_us, row[5], row[4], _argument_of(names))


def _read_detached(offset: int, time_us: int, row: tuple[int, ...], meta: bytes) -> Detached:
    names = decode_names(meta)
    return Detached(offset, time_us, row[5], row[4], names.attachment, _argument_of(names))


def _argument_of(names: Names) -> Argument:
    return names.destination or (names.argument if names.conditions is None else names.conditions)


def _read_consumer_attached(offset: int, time_us: int, row: tuple[int, ...], meta: bytes) -> ConsumerAttached:
    names = decode_names(meta)
    return ConsumerAttached(offset, time_us, row[4], names.container, names.link, names.selector, names.owns)


def _read_subscribed(offset: int, time_us: int, row: tuple[int, ...], meta: bytes) -> Subscribed:
    subscription = decode_names(meta).subscription
    if subscription is None:
        raise EngineError(f"record {offset} of type {SUBSCRIBED} names no subscription")
    return Subscribed(offset, time_us, row[4], subscription)


_READ: dict[int, Callable[[int, int, tuple[int, ...], bytes], Event]] = {
    STARTED: lambda offset, time_us, row, _: Started(offset, time_us, row[5], VhostMode(row[8])),
    QUEUE_DECLARED: _read_queue_declared,
    QUEUE_UPDATED: lambda offset, time_us, row, meta: QueueUpdated(
        offset, time_us, row[4], decode_names(meta).settings or Settings()
    ),
    QUEUE_DELETED: lambda offset, time_us, row, _: QueueDeleted(offset, time_us, row[4]),
    MUXER_DECLARED: _read_muxer_declared,
    MUXER_UPDATED: lambda offset, time_us, row, meta: MuxerUpdated(
        offset, time_us, row[5], decode_names(meta).options or Options()
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
