"""The steps of one message: the fold of the log's events for a single entry.

Rule 1. An event is a step if it changes the place of the message. An event that names it and changes nothing is none,
as in the fold of the state.
Rule 2. A message has one place for each queue that it was routed to; each place has its own steps.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

from ambermq.engine.entries.entry_word import WORD_BYTES
from ambermq.engine.entries.outcome import MODIFIED_FAILED, Outcome, OutcomeKind
from ambermq.engine.events import (
    Acquired,
    ConsumerDetached,
    Damaged,
    Discarded,
    Event,
    Published,
    Purged,
    QueueDeleted,
    Reset,
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


class MessagePlaceState(StrEnum):
    """The state of a message on a queue."""

    AVAILABLE = "available"
    ACQUIRED = "acquired"
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
    """The places and steps of one entry, folded from events in the order of the log."""

    def __init__(self, word: int) -> None:
        """Begin without a place: `apply` the publish event, or set `places`."""
        self._word = word
        self.places: dict[int, MessagePlace] = {}
        """The places by queue."""
        self.steps: list[Step] = []
        """The steps until now, in order."""

    @property
    def is_over(self) -> bool:
        """Whether no further step is possible."""
        return all(place.state is MessagePlaceState.ARCHIVED for place in self.places.values())

    def apply(self, event: Event) -> None:
        """Apply the next event."""
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
            case Discarded():
                self._discarded(event)
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

    def _discarded(self, event: Discarded) -> None:
        place = self.places.get(event.queue)
        is_available = place is not None and place.state is MessagePlaceState.AVAILABLE
        if is_available and _index(event.words, self._word) is not None:
            self._end(event.queue, event, StepKind.DISCARDED)

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
    """Return the index of a word among packed words, None if it is not there."""
    packed = word.to_bytes(WORD_BYTES, "little")
    at = words.find(packed)
    while at >= 0 and at % WORD_BYTES:
        at = words.find(packed, at + 1)
    return at // WORD_BYTES if at >= 0 else None
