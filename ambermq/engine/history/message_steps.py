"""What becomes of one message, step by step: the fold of the log's events for one entry alone.

Rule 1. An event is a step when it changes where the message is; what names it and changes nothing is none, as in the
fold of everything.
Rule 2. A message is in as many places as it was routed to queues; each has a way of its own.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

from ambermq.engine.events import (
    Acquired,
    ConsumerDetached,
    Damaged,
    Event,
    Published,
    Purged,
    QueueDeleted,
    Reset,
    Settled,
    Started,
)
from ambermq.engine.model.entry_word import WORD_BYTES
from ambermq.engine.model.outcome import MODIFIED_FAILED, Outcome, OutcomeKind

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
    """Its consumer went, or the broker started again, while it was held."""
    PURGED = "purged"
    DELETED = "deleted"
    """With its queue, or as the virtual host was reset."""
    DAMAGED = "damaged"


class MessagePlaceState(StrEnum):
    """What a queue has of a message."""

    AVAILABLE = "available"
    ACQUIRED = "acquired"
    ARCHIVED = "archived"


@dataclass(frozen=True, slots=True)
class Step:
    """One event of a message's life."""

    offset: int
    """Of the record."""
    time_us: int
    """When it was written, microseconds."""
    kind: StepKind
    """What happened."""
    queue: int
    """On which queue; 0 for the publish itself."""
    link: int
    """The producer or consumer; 0 where none did it."""
    attempt: int
    """Which delivery of the message on this queue it belongs to, counted from 1; 0 before the first."""
    count: int
    """Failed deliveries after it: AMQP's delivery-count."""
    outcome: Outcome | None
    """What the consumer said, where it did."""
    event: Event
    """All of it."""


@dataclass(frozen=True, slots=True)
class MessagePlace:
    """Where a message is on one queue."""

    queue: int
    """The queue's id."""
    state: MessagePlaceState
    """What the queue has of it."""
    consumer: int = 0
    """Who holds it, 0 where nobody does."""
    count: int = 0
    """Failed deliveries."""
    attempts: int = 0
    """Deliveries."""
    last: Step | None = None
    """What brought it there; None where it was there when the history begins."""


_OF_OUTCOME = {
    OutcomeKind.ACCEPTED: StepKind.ACCEPTED,
    OutcomeKind.REJECTED: StepKind.REJECTED,
    OutcomeKind.RELEASED: StepKind.RELEASED,
    OutcomeKind.MODIFIED: StepKind.MODIFIED,
}


class Track:
    """Follows one entry through events in the order of the log."""

    def __init__(self, word: int) -> None:
        """Begin without a place; `hear` the publish event, or put the places where they are known to be."""
        self._word = word
        self.places: dict[int, MessagePlace] = {}
        """By queue."""
        self.steps: list[Step] = []
        """So far, in order."""

    @property
    def is_over(self) -> bool:
        """Whether nothing can happen to the message any more."""
        return all(place.state is MessagePlaceState.ARCHIVED for place in self.places.values())

    def hear(self, event: Event) -> None:
        """Take the next event."""
        match event:
            case Published():
                step = Step(event.offset, event.time_us, StepKind.PUBLISHED, 0, event.producer, 0, 0, None, event)
                self.steps.append(step)
                self.places = {
                    queue: MessagePlace(queue, MessagePlaceState.AVAILABLE, last=step) for queue in event.queues
                }
            case Acquired():
                self._acquired(event)
            case Settled():
                self._settled(event)
            case Damaged():
                if _index(event.words, self._word) is not None:
                    self._end(event.queue, event, StepKind.DAMAGED)
            case Purged():
                self._purged(event)
            case QueueDeleted():
                self._end(event.queue, event, StepKind.DELETED)
            case Reset():
                for queue in list(self.places):
                    self._end(queue, event, StepKind.DELETED)
            case ConsumerDetached():
                self._return_from((event.consumer,), event)
            case Started():
                self._return_from(None, event)

    def _acquired(self, event: Acquired) -> None:
        place = self.places.get(event.queue)
        if place is None or place.state is not MessagePlaceState.AVAILABLE:
            return
        at = _index(event.words, self._word)
        if at is None:
            return
        consumer = event.consumers[at % len(event.consumers)]
        held = replace(place, state=MessagePlaceState.ACQUIRED, consumer=consumer, attempts=place.attempts + 1)
        self._step(held, event, StepKind.ACQUIRED, consumer)

    def _settled(self, event: Settled) -> None:
        place = self.places.get(event.queue)
        if place is None or not _is_held(place, event.consumer) or _index(event.words, self._word) is None:
            return
        outcome = event.outcome
        is_back = outcome.kind in (OutcomeKind.RELEASED, OutcomeKind.MODIFIED)
        state = MessagePlaceState.AVAILABLE if is_back else MessagePlaceState.ARCHIVED
        after = replace(place, state=state, consumer=0, count=place.count + outcome.delivery_failed)
        self._step(after, event, _OF_OUTCOME[outcome.kind], event.consumer, outcome)

    def _purged(self, event: Purged) -> None:
        place = self.places.get(event.queue)
        if place is not None and place.state is MessagePlaceState.AVAILABLE and self._word >> 16 < event.before:
            self._end(event.queue, event, StepKind.PURGED)

    def _return_from(self, consumers: tuple[int, ...] | None, event: Event) -> None:
        for place in list(self.places.values()):
            if place.state is MessagePlaceState.ACQUIRED and (consumers is None or place.consumer in consumers):
                after = replace(place, state=MessagePlaceState.AVAILABLE, consumer=0, count=place.count + 1)
                self._step(after, event, StepKind.RETURNED, place.consumer, MODIFIED_FAILED)

    def _end(self, queue: int, event: Event, kind: StepKind) -> None:
        place = self.places.get(queue)
        if place is not None and place.state is not MessagePlaceState.ARCHIVED:
            self._step(replace(place, state=MessagePlaceState.ARCHIVED, consumer=0), event, kind, place.consumer)

    def _step(
        self, after: MessagePlace, event: Event, kind: StepKind, link: int = 0, outcome: Outcome | None = None
    ) -> None:
        step = Step(event.offset, event.time_us, kind, after.queue, link, after.attempts, after.count, outcome, event)
        self.steps.append(step)
        self.places[after.queue] = replace(after, last=step)


def _is_held(place: MessagePlace, consumer: int) -> bool:
    return place.state is MessagePlaceState.ACQUIRED and place.consumer == consumer


def _index(words: bytes, word: int) -> int | None:
    """Return the index of a word among packed ones, None where it is not there."""
    packed = word.to_bytes(WORD_BYTES, "little")
    at = words.find(packed)
    while at >= 0 and at % WORD_BYTES:
        at = words.find(packed, at + 1)
    return at // WORD_BYTES if at >= 0 else None
