"""The events of a log as a person would tell them. Pure: events in, lines out.

Rule 1: a line says when, where in the log, what kind, and what happened in words; `facts` are the same
        as values, for JSON.
Rule 2: times are UTC in ISO 8601 with microseconds, whatever the machine's own zone is.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from engine.events import (
    Acquired,
    Attached,
    Chunked,
    ConsumerAttached,
    ConsumerDetached,
    Damaged,
    Detached,
    Event,
    Lost,
    MuxerDeclared,
    ProducerAttached,
    ProducerDetached,
    Published,
    Purged,
    QueueDeclared,
    QueueDeleted,
    Reset,
    Settled,
    Started,
)
from engine.muxer import MuxerKind
from engine.outcome import Outcome, OutcomeKind
from engine.times import iso_time
from engine.word import WORD_BYTES, entry_of, total_size, unpack_words
from tools.names import Names

__all__ = ["EVENT_TYPES", "Line", "iso_time", "tell", "type_of"]

_Told = tuple[str, dict[str, Any]]
"""What happened in words, and the same as values."""

_RANGES_SHOWN: Final = 6


@dataclass(frozen=True, slots=True)
class Line:
    """One event, told."""

    offset: int
    """Of its first record."""
    time: str
    """UTC, ISO 8601."""
    type: str
    """Its kind, such as `published`."""
    words: str
    """What happened."""
    facts: dict[str, Any]
    """The same as values."""

    def __str__(self) -> str:
        return f"{self.offset:>12}  {self.time}  {self.type:<17}  {self.words}"

    def as_json(self) -> dict[str, Any]:
        """Return the line as one object."""
        return {"offset": self.offset, "time": self.time, "type": self.type, **self.facts, "words": self.words}


def tell(event: Event, names: Names) -> Line:
    """Return the line for an event; `names` has heard everything before it, and it."""
    kind, say = _KINDS[type(event)]
    words, facts = say(names, event)
    return Line(event.offset, iso_time(event.time_us), kind, words, facts)


def type_of(event: Event) -> str:
    """Return an event's kind as people write it."""
    return _KINDS[type(event)][0]


def _started(_names: Names, event: Started) -> _Told:
    return f"the broker started, epoch {event.epoch}", {"epoch": event.epoch}


def _queue_declared(_names: Names, event: QueueDeclared) -> _Told:
    limit = event.settings.messages_max
    words = f"queue {event.name!r} declared{f', at most {limit:,} messages' if limit else ''}"
    return words, {"queue": event.name, "id": event.offset, "messages_max": limit}


def _queue_deleted(names: Names, event: QueueDeleted) -> _Told:
    name = names.queue(event.queue)
    return f"queue {name!r} deleted", {"queue": name, "id": event.queue}


def _muxer_declared(_names: Names, event: MuxerDeclared) -> _Told:
    kind = MuxerKind(event.kind).name
    return f"muxer {event.name!r} of class {kind} declared", {"muxer": event.name, "class": kind}


def _attached(names: Names, event: Attached | Detached) -> _Told:
    queue, muxer = names.queue(event.queue), names.muxer(event.muxer)
    verb = "attached to" if isinstance(event, Attached) else "detached from"
    words = f"queue {queue!r} {verb} {muxer!r} for {event.destination!r}"
    return words, {"queue": queue, "muxer": muxer, "destination": event.destination}


def _producer_attached(_names: Names, event: ProducerAttached) -> _Told:
    words = f"{event.container}/{event.link} sends to {event.destination!r}"
    facts = {"producer": event.offset, "destination": event.destination}
    return words, facts | {"container": event.container, "link": event.link}


def _producer_detached(names: Names, event: ProducerDetached) -> _Told:
    return f"{names.link(event.producer)} sends no more", {"producer": event.producer}


def _consumer_attached(names: Names, event: ConsumerAttached) -> _Told:
    queue = names.queue(event.queue)
    words = f"{event.container}/{event.link} receives from {queue!r}"
    facts = {"consumer": event.offset, "queue": queue}
    return words, facts | {"container": event.container, "link": event.link}


def _consumer_detached(names: Names, event: ConsumerDetached) -> _Told:
    return f"{names.link(event.consumer)} receives no more", {"consumer": event.consumer}


def _chunked(names: Names, event: Chunked) -> _Told:
    return f"a piece of a large message from {names.link(event.producer)}", {"producer": event.producer}


def _published(names: Names, event: Published) -> _Told:
    queues = [names.queue(queue) for queue in event.queues]
    count = len(event.words) // WORD_BYTES
    kind = "durable" if event.durable else "not durable"
    words = f"{_messages(count)} to {', '.join(map(repr, queues)) or 'no queue'}, {_bytes(event.size)}, {kind}"
    if event.chunks:
        words += f", in {len(event.chunks) + 1} pieces"
    words += f", from {names.link(event.producer)}"
    facts: dict[str, Any] = {"queues": queues, "count": count, "bytes": event.size, "durable": event.durable}
    return words, facts | {"producer": event.producer, "offsets": _ranges(event.words)}


def _acquired(names: Names, event: Acquired) -> _Told:
    queue, count = names.queue(event.queue), len(event.words) // WORD_BYTES
    consumers = ", ".join(names.link(consumer) for consumer in event.consumers)
    words = f"{_messages(count)} of {queue!r} to {consumers}: {_shown(_ranges(event.words))}"
    facts: dict[str, Any] = {"queue": queue, "count": count, "consumers": list(event.consumers)}
    return words, facts | {"offsets": _ranges(event.words)}


def _settled(names: Names, event: Settled) -> _Told:
    queue, count = names.queue(event.queue), len(event.words) // WORD_BYTES
    outcome = event.outcome.kind.name.lower()
    words = f"{_messages(count)} of {queue!r} {outcome}{_rest_of(event.outcome)} by {names.link(event.consumer)}"
    facts: dict[str, Any] = {"queue": queue, "count": count, "consumer": event.consumer, "outcome": outcome}
    facts |= {"bytes": total_size(event.words), "offsets": _ranges(event.words)}
    return f"{words}: {_shown(_ranges(event.words))}", facts


def _purged(names: Names, event: Purged) -> _Told:
    queue = names.queue(event.queue)
    return f"{queue!r} purged of what was waiting", {"queue": queue, "before": event.before}


def _damaged(names: Names, event: Damaged) -> _Told:
    queue, entry = names.queue(event.queue), entry_of(event.word)
    words = f"message {entry} of {queue!r} cannot be read and is set aside"
    return words, {"queue": queue, "message": entry}


def _lost(_names: Names, event: Lost) -> _Told:
    return f"records {event.first} to {event.end - 1} are lost", {"first": event.first, "end": event.end}


def _reset(_names: Names, _event: Reset) -> _Told:
    return "the virtual host was reset: all queues, messages and links are gone", {}


def _messages(count: int) -> str:
    return "1 message" if count == 1 else f"{count:,} messages"


def _bytes(size: int) -> str:
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size} B"


def _rest_of(outcome: Outcome) -> str:
    parts = []
    if outcome.kind is OutcomeKind.MODIFIED:
        parts.append("delivery failed" if outcome.delivery_failed else "delivery not failed")
        parts += ["undeliverable here"] if outcome.undeliverable_here else []
        parts += [f"{len(outcome.annotations)} annotations"] if outcome.annotations else []
    parts += [part for part in (outcome.condition, outcome.description) if part]
    return f" ({', '.join(parts)})" if parts else ""


def _ranges(words: bytes) -> list[list[int]]:
    """Return the entries of packed words as [first, last] of consecutive ones, in their order."""
    ranges: list[list[int]] = []
    for word in unpack_words(words):
        entry = entry_of(word)
        if ranges and entry == ranges[-1][1] + 1:
            ranges[-1][1] = entry
        else:
            ranges.append([entry, entry])
    return ranges


def _shown(ranges: list[list[int]]) -> str:
    shown = ", ".join(f"{first}" if first == last else f"{first} to {last}" for first, last in ranges[:_RANGES_SHOWN])
    more = sum(last - first + 1 for first, last in ranges[_RANGES_SHOWN:])
    return f"{shown} and {more:,} more" if more else shown


_KINDS: Final[dict[type, tuple[str, Callable[[Names, Any], _Told]]]] = {
    Started: ("started", _started),
    QueueDeclared: ("queue-declared", _queue_declared),
    QueueDeleted: ("queue-deleted", _queue_deleted),
    MuxerDeclared: ("muxer-declared", _muxer_declared),
    Attached: ("attached", _attached),
    Detached: ("detached", _attached),
    ProducerAttached: ("producer-attached", _producer_attached),
    ProducerDetached: ("producer-detached", _producer_detached),
    ConsumerAttached: ("consumer-attached", _consumer_attached),
    ConsumerDetached: ("consumer-detached", _consumer_detached),
    Chunked: ("chunk", _chunked),
    Published: ("published", _published),
    Acquired: ("acquired", _acquired),
    Settled: ("settled", _settled),
    Purged: ("purged", _purged),
    Damaged: ("damaged", _damaged),
    Lost: ("lost", _lost),
    Reset: ("reset", _reset),
}

EVENT_TYPES: Final = tuple(name for name, _ in _KINDS.values())
"""Every kind of event, as `--type` takes them."""
