"""The events of a log as a person would tell them. Pure: events in, lines out.

Rule 1: a line says when, where in the log, what kind, and what happened in words; `facts` are the same as values, for
        JSON: those that engine/records/event_fields.py tells to every program.
Rule 2: times are UTC in ISO 8601 with microseconds, whatever the machine's own zone is.
"""

from collections.abc import Callable
from dataclasses import dataclass
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
from ambermq.engine.history.timestamps import iso_time
from ambermq.engine.model.condition_text import argument_text
from ambermq.engine.model.entry_word import WORD_BYTES
from ambermq.engine.model.lifetime import Lifetime
from ambermq.engine.model.muxer import MuxerKind
from ambermq.engine.model.outcome import Outcome, OutcomeKind
from ambermq.engine.records.event_fields import EVENT_TYPES, facts_of, ranges_of, type_of
from ambermq.tools.past.id_names import IdNames

__all__ = ["EVENT_TYPES", "Line", "iso_time", "tell", "type_of"]

_RANGES_SHOWN: Final = 6
_ENDS: Final = {
    Lifetime.ON_CLOSE: "until its link closes",
    Lifetime.NO_LINKS: "until its last link goes",
    Lifetime.NO_MESSAGES: "until its last message goes",
    Lifetime.NO_LINKS_OR_MESSAGES: "until its last link and message go",
}


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


def tell(event: Event, names: IdNames) -> Line:
    """Return the line for an event; `names` has heard everything before it, and it."""
    facts = facts_of(event, names.known_queue)
    return Line(event.offset, iso_time(event.time_us), type_of(event), _SAY[type(event)](names, event), facts)


def _started(_names: IdNames, event: Started) -> str:
    mode = f", in {event.mode.text} mode" if event.mode else ""
    return f"the broker started, epoch {event.epoch}{mode}"


def _queue_declared(_names: IdNames, event: QueueDeclared) -> str:
    limit = event.settings.messages_max
    bound = f", at most {limit:,} messages" if limit else ""
    return f"queue {event.name!r} declared{bound}{_ends(event.lifetime)}"


def _queue_updated(names: IdNames, event: QueueUpdated) -> str:
    limit = event.settings.messages_max
    bound = f"{limit:,} messages" if limit else "as many messages as the broker takes"
    return f"queue {names.queue(event.queue)!r} updated, at most {bound}"


def _queue_deleted(names: IdNames, event: QueueDeleted) -> str:
    return f"queue {names.queue(event.queue)!r} deleted"


def _muxer_declared(_names: IdNames, event: MuxerDeclared) -> str:
    options = event.options
    told = f"muxer {event.name!r} of class {MuxerKind(event.kind).name} declared"
    told += f", separator {options.separator!r}" if options.separator != "." else ""
    told += f", probability {options.probability}, seed {options.seed}" if event.kind == MuxerKind.LOSSY else ""
    return told + _ends(options.lifetime)


def _ends(lifetime: Lifetime) -> str:
    return f", {_ENDS[lifetime]}" if lifetime else ""


def _muxer_updated(names: IdNames, event: MuxerUpdated) -> str:
    options = event.options
    return f"muxer {names.muxer(event.muxer)!r} updated, probability {options.probability}, seed {options.seed}"


def _muxer_deleted(names: IdNames, event: MuxerDeleted) -> str:
    return f"muxer {names.muxer(event.muxer)!r} deleted"


def _attached(names: IdNames, event: Attached | Detached) -> str:
    argument = argument_text(event.argument)
    verb = "attached to" if isinstance(event, Attached) else "detached from"
    words = f"{names.member(event.member)} {verb} {names.muxer(event.muxer)!r}"
    return f"{words} for {argument!r}" if argument else words


def _drawn(names: IdNames, event: Drawn) -> str:
    return f"{names.muxer(event.muxer)!r} drew for {_messages(event.count)}"


def _producer_attached(_names: IdNames, event: ProducerAttached) -> str:
    return f"{event.container}/{event.link} sends to {event.destination!r}"


def _subscribed(names: IdNames, event: Subscribed) -> str:
    one = event.subscription
    kind = f"{'volatile' if one.is_volatile else 'durable'}{', shared' if one.is_shared else ''}"
    who = "" if one.container is None else f"{one.container}/"
    selected = f" where {one.selector}" if one.selector else ""
    own = ", but for its own messages" if one.is_no_local else ""
    return f"{names.queue(event.queue)!r} subscribes {who}{one.name} to topic {one.topic!r}{selected} ({kind}){own}"


def _producer_detached(names: IdNames, event: ProducerDetached) -> str:
    return f"{names.link(event.producer)} sends no more"


def _consumer_attached(names: IdNames, event: ConsumerAttached) -> str:
    selected = f" where {event.selector}" if event.selector else ""
    return f"{event.container}/{event.link} receives from {names.queue(event.queue)!r}{selected}"


def _consumer_detached(names: IdNames, event: ConsumerDetached) -> str:
    return f"{names.link(event.consumer)} receives no more"


def _chunked(names: IdNames, event: Chunked) -> str:
    return f"a piece of a large message from {names.link(event.producer)}"


def _published(names: IdNames, event: Published) -> str:
    queues = ", ".join(repr(names.queue(queue)) for queue in event.queues) or "no queue"
    kind = "durable" if event.durable else "not durable"
    pieces = f", in {len(event.chunks) + 1} pieces" if event.chunks else ""
    count = _messages(len(event.words) // WORD_BYTES)
    return f"{count} to {queues}, {_bytes(event.size)}, {kind}{pieces}, from {names.link(event.producer)}"


def _acquired(names: IdNames, event: Acquired) -> str:
    consumers = ", ".join(names.link(consumer) for consumer in event.consumers)
    count = _messages(len(event.words) // WORD_BYTES)
    return f"{count} of {names.queue(event.queue)!r} to {consumers}: {_shown(ranges_of(event.words))}"


def _settled(names: IdNames, event: Settled) -> str:
    outcome = event.outcome.kind.name.lower() + _rest_of(event.outcome)
    count = _messages(len(event.words) // WORD_BYTES)
    who = names.link(event.consumer)
    return f"{count} of {names.queue(event.queue)!r} {outcome} by {who}: {_shown(ranges_of(event.words))}"


def _purged(names: IdNames, event: Purged) -> str:
    return f"{names.queue(event.queue)!r} purged of what was waiting"


def _damaged(names: IdNames, event: Damaged) -> str:
    count = len(event.words) // WORD_BYTES
    said = "cannot be read and is set aside" if count == 1 else "cannot be read and are set aside"
    return f"{_messages(count)} of {names.queue(event.queue)!r} {said}: {_shown(ranges_of(event.words))}"


def _lost(_names: IdNames, event: Lost) -> str:
    return f"records {event.first} to {event.end - 1} are lost"


def _compacted(_names: IdNames, event: Compacted) -> str:
    bytes_told = f"{event.bytes_before:,} bytes became {event.bytes_after:,}"
    # Of whole segments that went nobody has read how many there were.
    records_told = f", {event.records_before:,} records {event.records_after:,}" if event.records_before else ""
    return f"compacted: history begins at {event.horizon}, {bytes_told}{records_told}"


def _reset(_names: IdNames, _event: Reset) -> str:
    return "the virtual host was reset: all queues, messages and links are gone"


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


def _shown(ranges: list[list[int]]) -> str:
    shown = ", ".join(f"{first}" if first == last else f"{first} to {last}" for first, last in ranges[:_RANGES_SHOWN])
    more = sum(last - first + 1 for first, last in ranges[_RANGES_SHOWN:])
    return f"{shown} and {more:,} more" if more else shown


_SAY: Final[dict[type, Callable[[IdNames, Any], str]]] = {
    Started: _started,
    QueueDeclared: _queue_declared,
    QueueUpdated: _queue_updated,
    QueueDeleted: _queue_deleted,
    MuxerDeclared: _muxer_declared,
    MuxerUpdated: _muxer_updated,
    MuxerDeleted: _muxer_deleted,
    Drawn: _drawn,
    Attached: _attached,
    Detached: _attached,
    ProducerAttached: _producer_attached,
    ProducerDetached: _producer_detached,
    ConsumerAttached: _consumer_attached,
    ConsumerDetached: _consumer_detached,
    Chunked: _chunked,
    Published: _published,
    Acquired: _acquired,
    Settled: _settled,
    Purged: _purged,
    Damaged: _damaged,
    Lost: _lost,
    Reset: _reset,
    Compacted: _compacted,
    Subscribed: _subscribed,
}
