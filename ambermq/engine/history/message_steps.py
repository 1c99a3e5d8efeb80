"""The steps of one message: the fold of the log's events for its entries.

Rule 1. An event is a step if it changes the place of the message. An event that names it and changes nothing is none,
as in the fold of the state.
Rule 2. A message has one place for each queue that it was routed to, and one more for each queue that a move took it
        to. Each place has its own entry and its own steps.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

from ambermq.engine.entries.discard_reason import DiscardReason, MoveReason
from ambermq.engine.entries.entry_word import WORD_BYTES
from ambermq.engine.entries.outcome import MODIFIED_FAILED, Outcome, OutcomeKind
from ambermq.engine.events import (
    Acquired,
    ConsumerDetached,
    Damaged,
    Discarded,
    Due,
    Duplicated,
    Event,
    LinkEnded,
    LinkResumed,
    Moved,
    Published,
    Purged,
    QueueDeleted,
    Reset,
    Scheduled,
    SetAside,
    Settled,
    Started,
)

__all__ = ["MessagePlace", "MessagePlaceState", "Step", "StepKind", "Track"]


class StepKind(StrEnum):
    """What happened to the message."""

    PUBLISHED = "published"
    ACQUIRED = "acquired"
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    RELEASED = "released"
    MODIFIED = "modified"
    RETURNED = "returned"
    """Its consumer detached, or the broker started, while it was acquired."""
    PURGED = "purged"
    DELETED = "deleted"
    """Its queue was deleted, or the virtual host was reset."""
    DAMAGED = "damaged"
    DISCARDED = "discarded"
    """The broker discarded it by itself."""
    SET_ASIDE = "set aside"
    """Its dead-letter target could not take it."""
    MOVED = "moved"
    """It left for other queues."""
    COPIED = "copied"
    """It came to other queues too."""
    ARRIVED = "arrived"
    """It came from another queue."""
    SCHEDULED = "scheduled"
    """It is available later."""
    RESUMED = "resumed"
    """Its consumer's link was suspended, and another one resumed it."""
    DUE = "due"
    """The time that it waited for has come."""
    DUPLICATED = "duplicated"
    """Another message with its message-id came, and was not stored."""


class MessagePlaceState(StrEnum):
    """The state of a message on a queue."""

    AVAILABLE = "available"
    SCHEDULED = "scheduled"
    ACQUIRED = "acquired"
    SET_ASIDE = "set aside"
    ARCHIVED = "archived"


@dataclass(frozen=True, slots=True)
class Step:
    """One event of a message's story."""

    offset: int
    """The offset of the record."""
    time_us: int
    """The time of the record, in microseconds."""
    kind: StepKind
    """What happened."""
    queue: int
    """The queue; 0 for the publish itself."""
    link: int
    """The producer or consumer; 0 if no link caused it."""
    attempt: int
    """The number of the delivery on this queue that it belongs to, from 1; 0 before the first."""
    count: int
    """The failed deliveries after it: AMQP's delivery-count."""
    outcome: Outcome | None
    """The outcome that the consumer sent, if it did."""
    event: Event
    """The whole event."""


@dataclass(frozen=True, slots=True)
class MessagePlace:
    """The place of a message on one queue."""

    queue: int
    """The id of the queue."""
    state: MessagePlaceState
    """The state of the message on the queue."""
    word: int
    """Its entry there, with the code of its size."""
    consumer: int = 0
    """The consumer that has acquired it; 0 for none."""
    count: int = 0
    """Failed deliveries."""
    attempts: int = 0
    """Deliveries."""
    last: Step | None = None
    """The last step; None if it was in this place when the history begins."""


_OF_OUTCOME = {
    OutcomeKind.ACCEPTED: StepKind.ACCEPTED,
    OutcomeKind.REJECTED: StepKind.REJECTED,
    OutcomeKind.RELEASED: StepKind.RELEASED,
    OutcomeKind.MODIFIED: StepKind.MODIFIED,
}


class Track:
    """The places and steps of one message, folded from events in the order of the log."""

    def __init__(self, word: int) -> None:
        """Begin without a place: `apply` the publish event, or `put` places."""
        self._word = word
        self.places: dict[tuple[int, int], MessagePlace] = {}
        """The places by queue and word."""
        self.steps: list[Step] = []
        """The steps until now, in order."""

    def put(self, place: MessagePlace) -> None:
        """Set a place."""
        self.places[place.queue, place.word] = place

    @property
    def is_over(self) -> bool:
        """Whether no further step is possible."""
        # A rejected message may go on as a dead letter.
        places = self.places.values()
        return all(place.state is MessagePlaceState.ARCHIVED and not _is_rejected(place) for place in places)

    def apply(self, event: Event) -> None:
        """Apply the next event."""
        match event:
            case Published():
                step = Step(event.offset, event.time_us, StepKind.PUBLISHED, 0, event.producer, 0, 0, None, event)
                self.steps.append(step)
                self.places.clear()
                for queue in event.queues:
                    self.put(MessagePlace(queue, MessagePlaceState.AVAILABLE, self._word, last=step))
            case Scheduled():
                self._scheduled(event)
            case Acquired():
                self._acquired(event)
            case Settled():
                self._settled(event)
            case Damaged():
                for place, _ in self._named(event.queue, event.words):
                    self._end(place, event, StepKind.DAMAGED)
            case Discarded():
                self._discarded(event)
            case Due():
                for place, _ in self._named(event.queue, event.words):
                    if place.state is MessagePlaceState.AVAILABLE:
                        self._step(place, event, StepKind.DUE)
            case Duplicated():
                self._duplicated(event)
            case SetAside():
                self._set_aside(event)
            case Moved():
                self._moved(event)
            case Purged():
                self._purged(event)
            case QueueDeleted():
                for place in self._on(event.queue):
                    self._end(place, event, StepKind.DELETED)
            case Reset():
                for place in list(self.places.values()):
                    self._end(place, event, StepKind.DELETED)
            case ConsumerDetached():
                self._return_from((event.consumer,), event)
            case LinkEnded():
                self._return_from((event.link,), event)
            case LinkResumed():
                self._resumed(event)
            case Started():
                held = {place.consumer for place in self.places.values()}
                self._return_from(tuple(held.difference(event.kept)), event)

    def _resumed(self, event: LinkResumed) -> None:
        for place in list(self.places.values()):
            if _is_held(place, event.link):
                self._step(replace(place, consumer=event.successor), event, StepKind.RESUMED, event.successor)

    def _scheduled(self, event: Scheduled) -> None:
        for queue in event.queues:
            for place, _ in self._named(queue, event.words):
                if place.state is MessagePlaceState.AVAILABLE:
                    self._step(replace(place, state=MessagePlaceState.SCHEDULED), event, StepKind.SCHEDULED)

    def _acquired(self, event: Acquired) -> None:
        for place, at in self._named(event.queue, event.words):
            if place.state is MessagePlaceState.AVAILABLE:
                consumer = event.consumers[at % len(event.consumers)]
                held = replace(place, state=MessagePlaceState.ACQUIRED, consumer=consumer, attempts=place.attempts + 1)
                self._step(held, event, StepKind.ACQUIRED, consumer)

    def _settled(self, event: Settled) -> None:
        outcome = event.outcome
        is_back = outcome.kind in (OutcomeKind.RELEASED, OutcomeKind.MODIFIED)
        state = MessagePlaceState.AVAILABLE if is_back else MessagePlaceState.ARCHIVED
        for place, _ in self._named(event.queue, event.words):
            if _is_held(place, event.consumer):
                after = replace(place, state=state, consumer=0, count=place.count + outcome.delivery_failed)
                self._step(after, event, _OF_OUTCOME[outcome.kind], event.consumer, outcome)

    def _discarded(self, event: Discarded) -> None:
        for place, _ in self._named(event.queue, event.words):
            # A message that was rejected ends so at once where its dead letters would go in a circle.
            if _is_waiting(place) or (event.reason is DiscardReason.LOOP and _is_rejected(place)):
                after = replace(place, state=MessagePlaceState.ARCHIVED, consumer=0)
                self._step(after, event, StepKind.DISCARDED, place.consumer)

    def _duplicated(self, event: Duplicated) -> None:
        for queue in event.queues:
            for place, _ in self._named(queue, event.words):
                self._step(place, event, StepKind.DUPLICATED, event.producer)

    def _set_aside(self, event: SetAside) -> None:
        for place, _ in self._named(event.queue, event.words):
            if place.state is MessagePlaceState.AVAILABLE or _is_rejected(place):
                self._step(replace(place, state=MessagePlaceState.SET_ASIDE), event, StepKind.SET_ASIDE)

    def _moved(self, event: Moved) -> None:
        for place, at in self._named(event.source, event.words):
            if event.reason is MoveReason.DUE:
                # It has another entry on its queue now, which is no other place.
                if place.state is MessagePlaceState.SCHEDULED:
                    del self.places[place.queue, place.word]
                    word = event.offset + at << 16 | place.word & 0xFFFF
                    self._step(replace(place, state=MessagePlaceState.AVAILABLE, word=word), event, StepKind.DUE)
                continue
            # A rejected message is not set aside by an event of its own: its outcome says that it was not accepted.
            if _is_waiting(place) or _is_rejected(place):
                if event.reason is MoveReason.COPIED:
                    self._step(place, event, StepKind.COPIED)
                else:
                    self._step(replace(place, state=MessagePlaceState.ARCHIVED), event, StepKind.MOVED)
                word = event.offset + at << 16 | place.word & 0xFFFF
                for target in event.targets:
                    arrived = MessagePlace(target, MessagePlaceState.AVAILABLE, word)
                    self._step(arrived, event, StepKind.ARRIVED)

    def _purged(self, event: Purged) -> None:
        for place in self._on(event.queue):
            is_purged = place.state is not MessagePlaceState.SCHEDULED or event.scheduled
            if is_purged and _is_waiting(place) and place.word >> 16 < event.before:
                self._end(place, event, StepKind.PURGED)

    def _on(self, queue: int) -> list[MessagePlace]:
        return [place for place in self.places.values() if place.queue == queue]

    def _named(self, queue: int, words: bytes) -> list[tuple[MessagePlace, int]]:
        """Return the places on a queue whose entries are among packed words, each with its index there."""
        found = ((place, _index(words, place.word)) for place in self._on(queue))
        return [(place, at) for place, at in found if at is not None]

    def _return_from(self, consumers: tuple[int, ...], event: Event) -> None:
        for place in list(self.places.values()):
            if place.state is MessagePlaceState.ACQUIRED and place.consumer in consumers:
                after = replace(place, state=MessagePlaceState.AVAILABLE, consumer=0, count=place.count + 1)
                self._step(after, event, StepKind.RETURNED, place.consumer, MODIFIED_FAILED)

    def _end(self, place: MessagePlace, event: Event, kind: StepKind) -> None:
        if place.state is not MessagePlaceState.ARCHIVED:
            self._step(replace(place, state=MessagePlaceState.ARCHIVED, consumer=0), event, kind, place.consumer)

    def _step(
        self, after: MessagePlace, event: Event, kind: StepKind, link: int = 0, outcome: Outcome | None = None
    ) -> None:
        step = Step(event.offset, event.time_us, kind, after.queue, link, after.attempts, after.count, outcome, event)
        self.steps.append(step)
        self.put(replace(after, last=step))


def _is_held(place: MessagePlace, consumer: int) -> bool:
    return place.state is MessagePlaceState.ACQUIRED and place.consumer == consumer


def _is_waiting(place: MessagePlace) -> bool:
    return place.state in (MessagePlaceState.AVAILABLE, MessagePlaceState.SCHEDULED, MessagePlaceState.SET_ASIDE)


def _is_rejected(place: MessagePlace) -> bool:
    return place.last is not None and place.last.kind is StepKind.REJECTED


def _index(words: bytes, word: int) -> int | None:
    """Return the index of a word among packed words, None if it is not there."""
    packed = word.to_bytes(WORD_BYTES, "little")
    at = words.find(packed)
    while at >= 0 and at % WORD_BYTES:
        at = words.find(packed, at + 1)
    return at // WORD_BYTES if at >= 0 else None
