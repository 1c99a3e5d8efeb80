"""An event as values that a program can read: its type, and what it says, named as docs/log-source.md lists it.

Rule 1. Ids are those of the log: the offset of the record that created the thing. A queue's name stands beside its id
        where somebody knows it.
Rule 2. Values are int, float, bool, str and lists of those: whoever writes them down picks his own encoding.
Rule 3. A run is told once, whatever its length: its entries as ranges [first, last] of consecutive offsets.
"""

from collections.abc import Callable
from typing import Any, Final

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
from ambermq.engine.model.condition_text import argument_text
from ambermq.engine.model.entry_word import WORD_BYTES, entry_of, total_size, unpack_words
from ambermq.engine.model.muxer import MuxerKind
from ambermq.engine.model.outcome import OutcomeKind

__all__ = ["EVENT_TYPES", "QueueName", "facts_of", "next_after", "queues_of", "ranges_of", "type_of"]

QueueName = Callable[[int], str | None]
"""A queue's id -> its name, None where nobody knows it."""

_Facts = dict[str, Any]


def type_of(event: Event) -> str:
    """Return an event's kind as people write it, such as `queue-declared`."""
    return _KINDS[type(event)][0]


def facts_of(event: Event, name: QueueName) -> _Facts:
    """Return what an event says; what every event has, type, offset and time, is not repeated."""
    facts = _KINDS[type(event)][1](event)
    queues = queues_of(event)
    if type(event) is Published:
        facts |= {"queues": [name(queue) or "" for queue in queues], "queue_ids": list(queues)}
    elif queues:
        known = event.name if type(event) is QueueDeclared else name(queues[0])
        if known is not None:
            facts |= {"queue": known, "queue_id": queues[0]}
        elif not isinstance(event, Attached | Detached):
            # What nobody knows as a queue is a muxer there.
            facts["queue_id"] = queues[0]
    return facts


def queues_of(event: Event) -> tuple[int, ...]:
    """Return the ids of the queues that an event itself names."""
    match event:
        case Published():
            return event.queues
        case QueueDeclared():
            return (event.offset,)
        case Started() | Lost() | Reset() | Compacted() | Chunked():
            return ()
        case MuxerDeclared() | MuxerUpdated() | MuxerDeleted() | Drawn():
            return ()
        case Attached() | Detached():
            return (event.member,)
        case ProducerAttached() | ProducerDetached() | ConsumerDetached():
            return ()
    return (event.queue,)


def next_after(event: Event) -> int:
    """Return the offset after an event's last record: where to go on reading."""
    return event.offset + (len(event.words) // WORD_BYTES if type(event) is Published else 1)


def ranges_of(words: bytes) -> list[list[int]]:
    """Return the entries of packed words as [first, last] of consecutive ones, in their order."""
    ranges: list[list[int]] = []
    for word in unpack_words(words):
        entry = entry_of(word)
        if ranges and entry == ranges[-1][1] + 1:
            ranges[-1][1] = entry
        else:
            ranges.append([entry, entry])
    return ranges


def _published(event: Published) -> _Facts:
    facts: _Facts = {"count": len(event.words) // WORD_BYTES, "bytes": event.size, "durable": event.durable}
    facts |= {"producer": event.producer, "offsets": ranges_of(event.words)}
    return facts | ({"chunks": list(event.chunks)} if event.chunks else {})


def _acquired(event: Acquired) -> _Facts:
    consumers, offsets = list(event.consumers), ranges_of(event.words)
    return {"count": len(event.words) // WORD_BYTES, "consumers": consumers, "offsets": offsets}


def _settled(event: Settled) -> _Facts:
    outcome = event.outcome
    facts: _Facts = {"count": len(event.words) // WORD_BYTES, "bytes": total_size(event.words)}
    facts |= {"consumer": event.consumer, "outcome": outcome.kind.name.lower(), "offsets": ranges_of(event.words)}
    if outcome.kind is OutcomeKind.MODIFIED:
        facts |= {"delivery_failed": outcome.delivery_failed, "undeliverable_here": outcome.undeliverable_here}
    facts |= {"condition": outcome.condition} if outcome.condition else {}
    return facts | ({"description": outcome.description} if outcome.description else {})


def _damaged(event: Damaged) -> _Facts:
    count = len(event.words) // WORD_BYTES
    return {"count": count, "bytes": total_size(event.words), "offsets": ranges_of(event.words)}


def _attached(event: Attached | Detached) -> _Facts:
    return {"muxer": event.muxer, "member": event.member, "argument": argument_text(event.argument)}


def _producer_attached(event: ProducerAttached) -> _Facts:
    facts: _Facts = {"producer": event.offset, "muxer": event.muxer, "destination": event.destination}
    facts |= {"container": event.container, "link": event.link}
    return facts | ({"owns": event.owns} if event.owns else {})


def _compacted(event: Compacted) -> _Facts:
    counts = ("segments_before", "segments_after", "records_before", "records_after", "bytes_before", "bytes_after")
    return {"horizon": event.horizon} | {name: getattr(event, name) for name in counts}


def _consumer_attached(event: ConsumerAttached) -> _Facts:
    facts: _Facts = {"consumer": event.offset, "container": event.container, "link": event.link}
    facts |= {"selector": event.selector} if event.selector else {}
    return facts | ({"owns": event.owns} if event.owns else {})


def _queue_declared(event: QueueDeclared) -> _Facts:
    facts: _Facts = {"messages_max": event.settings.messages_max}
    return facts | ({"lifetime": event.lifetime.name.lower()} if event.lifetime else {})


def _muxer_declared(event: MuxerDeclared) -> _Facts:
    facts: _Facts = {"muxer": event.name, "class": MuxerKind(event.kind).name}
    options = event.options
    facts |= {"separator": options.separator} if options.separator != "." else {}
    facts |= {"probability": options.probability, "seed": options.seed} if event.kind == MuxerKind.LOSSY else {}
    return facts | ({"lifetime": options.lifetime.name.lower()} if options.lifetime else {})


def _muxer_updated(event: MuxerUpdated) -> _Facts:
    return {"muxer": event.muxer, "probability": event.options.probability, "seed": event.options.seed}


def _subscribed(event: Subscribed) -> _Facts:
    one = event.subscription
    facts: _Facts = {
        "topic": one.topic,
        "subscription": one.name,
        "shared": one.is_shared,
        "durable": not one.is_volatile,
    }
    facts |= {"container": one.container} if one.container is not None else {}
    facts |= {"selector": one.selector} if one.selector else {}
    return facts | {"no_local": one.is_no_local}


_KINDS: Final[dict[type, tuple[str, Callable[[Any], _Facts]]]] = {
    Started: ("started", lambda event: {"epoch": event.epoch} | ({"mode": event.mode.text} if event.mode else {})),
    QueueDeclared: ("queue-declared", _queue_declared),
    QueueDeleted: ("queue-deleted", lambda _: {}),
    MuxerDeclared: ("muxer-declared", _muxer_declared),
    MuxerDeleted: ("muxer-deleted", lambda event: {"muxer": event.muxer}),
    Attached: ("attached", _attached),
    Detached: ("detached", _attached),
    Drawn: ("drawn", lambda event: {"muxer": event.muxer, "count": event.count}),
    ProducerAttached: ("producer-attached", _producer_attached),
    ProducerDetached: ("producer-detached", lambda event: {"producer": event.producer}),
    ConsumerAttached: ("consumer-attached", _consumer_attached),
    ConsumerDetached: ("consumer-detached", lambda event: {"consumer": event.consumer}),
    Chunked: ("chunk", lambda event: {"producer": event.producer}),
    Published: ("published", _published),
    Acquired: ("acquired", _acquired),
    Settled: ("settled", _settled),
    Purged: ("purged", lambda event: {"before": event.before}),
    Damaged: ("damaged", _damaged),
    Lost: ("lost", lambda event: {"first": event.first, "end": event.end}),
    Reset: ("reset", lambda _: {}),
    Compacted: ("compacted", _compacted),
    Subscribed: ("subscribed", _subscribed),
    QueueUpdated: ("queue-updated", lambda event: {"messages_max": event.settings.messages_max}),
    MuxerUpdated: ("muxer-updated", _muxer_updated),
}

EVENT_TYPES: Final = tuple(name for name, _ in _KINDS.values())
"""Every kind of event."""
