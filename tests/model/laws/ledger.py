"""Where each message of a mix is, kept from the events alone; the laws of single events hold here.

The ledger knows none of the engine's lists: an entry waits, is scheduled, is set aside, or is held by one consumer. So
what it says of a queue is held against the engine's own state.
"""

from collections import Counter
from typing import Any

from ambermq.engine.entries.discard_reason import DiscardReason, MoveReason
from ambermq.engine.entries.entry import PLAIN
from ambermq.engine.entries.entry_word import unpack_words
from ambermq.engine.entries.outcome import OutcomeKind
from ambermq.engine.events import (
    Acquired,
    Committed,
    ConsumerDetached,
    Damaged,
    Discarded,
    Due,
    Duplicated,
    LinkEnded,
    LinkResumed,
    Moved,
    Published,
    Purged,
    QueueConfigured,
    QueueDeclared,
    QueueDeleted,
    QueueUpdated,
    Scheduled,
    SetAside,
    Settled,
    Started,
    Timed,
)
from ambermq.engine.model.state import State
from tests.model.laws.group_holders import GroupHolders

__all__ = ["Ledger"]

WAITS = 0
SCHEDULED = -1
ASIDE = -2
"""Other places than the id of a consumer, which is above 0."""


def _entries(words: bytes) -> list[int]:
    return [word >> 16 for word in unpack_words(words)]


class Ledger:
    """The places of all entries, and what became of those that have left."""

    def __init__(self) -> None:
        self.places: dict[int, dict[int, int]] = {}
        """Queue -> entry -> its place."""
        self.ends: Counter[str] = Counter()
        """How many entries have ended for each reason."""
        self.stored: list[int] = []
        """Offsets of published messages, in order."""
        self.origins: dict[int, int] = {}
        """Entry -> the offset of its publish record."""
        self.ended: dict[int, str] = {}
        """Origin -> the last reason for which an entry of it ended."""
        self.duplicates = 0
        self.restless: set[int] = set()
        """Queues that may be above their maximum: messages came back, a transaction was committed, a limit fell."""
        self.published: set[int] = set()
        """Queues that got messages since the last check."""
        self._fresh: dict[tuple[int, int, int, int], int] = {}
        """Queue, priority, group and consumer -> the newest entry that was acquired for the first time."""
        self._seen: set[tuple[int, int]] = set()
        """Entries that were acquired before."""
        self._groups = GroupHolders()
        self._expiry: dict[tuple[int, int], int] = {}
        self._due: dict[tuple[int, int], int] = {}
        self._not_before: dict[tuple[int, int], int] = {}
        self.early: set[int] = set()
        """Uploads whose delivery began before they were published: it has the order of that time."""
        self.counted: set[tuple[int, int]] = set()
        """Entries whose failed deliveries may be at the maximum: a restart counted, or the maximum fell."""

    def note(self, state: State, event: Any, selecting: frozenset[int]) -> None:
        """Note an event that `state` does not have yet; `selecting` are the consumers with a selector."""
        note = _NOTES.get(type(event))
        if type(event) is not Acquired or not self._groups.is_next(event):
            self._fresh.update(self._groups.newest)
            self._groups.end_round(self.places)
        if note is not None:
            if note is _acquired:
                _acquired(self, state, event, selecting)
            else:
                note(self, state, event)

    def remove(self, queue: int, entry: int, reason: str) -> int:
        """Remove an entry; return its place."""
        self._due.pop((queue, entry), None)
        place = self.places[queue].pop(entry)
        self.ends[reason] += 1
        self.ended[self.origins[entry]] = reason
        return place

    def check(self, state: State) -> None:
        """Hold the places against the queues of a state."""
        assert set(self.places) == set(state.queues)
        for queue in state.queues.values():
            places = self.places[queue.id]
            waiting = {word >> 16 for words in queue.waiting_lists for word in words}
            assert waiting == {entry for entry, place in places.items() if place <= WAITS}
            for consumer, words in queue.acquired.items():
                assert {word >> 16 for word in words} == {one for one, place in places.items() if place == consumer}
            assert {word >> 16 for word in queue.scheduled} == {
                entry for entry, place in places.items() if place == SCHEDULED
            }
            assert queue.depth == len(places)
            _check_counts(queue)


def _check_counts(queue: Any) -> None:
    counters = queue.counters
    gone = queue.accepted + counters.rejected + counters.purged + counters.damaged
    gone += counters.discarded + counters.dead_lettered + counters.moved
    assert queue.published == queue.depth + gone, queue.name
    assert queue.size >= queue.acquired_size >= 0
    words = [word for one in queue.waiting_lists for word in one]
    assert len(words) == len(set(words)) == queue.waiting
    held = {word >> 16 for one in queue.acquired.values() for word in one}
    assert set(queue.entries) <= {word >> 16 for word in words} | held
    assert {entry for entry, _ in queue.expiries.items()} <= {word >> 16 for word in words} | held
    assert not any(entry.expires_us for entry in queue.entries.values())
    codes = Counter(entry.group for entry in queue.entries.values() if entry.group)
    assert codes.total() == sum(dict(queue.groups).values()) if queue.groups else not codes


def _published(ledger: Ledger, state: State, event: Published) -> None:
    for entry in _entries(event.words):
        ledger.stored.append(entry)
        ledger.origins[entry] = entry
        for queue in event.queues:
            ledger.places[queue][entry] = WAITS
            ledger.published.add(queue)
            ttl_ms = state.queues[queue].settings.message_ttl_ms
            if ttl_ms:
                # The queue's expiry is at most a thousandth late.
                ledger._expiry[queue, entry] = state.elapsed_us(event.time_us) + 1000 * ttl_ms + 2 * ttl_ms


def _timed(ledger: Ledger, state: State, event: Timed) -> None:
    for queue in event.queues:
        for entry in range(event.first, event.first + event.count):
            expiry = state.elapsed_us(event.time_us) + 1000 * _ttl_ms_of(event, entry)
            ledger._expiry[queue, entry] = min(expiry, ledger._expiry.get((queue, entry), expiry))


def _ttl_ms_of(event: Timed, entry: int) -> int:
    start = (entry - event.first) * 8
    return int.from_bytes(event.ttls[start : start + 8], "little") if event.ttls else event.ttl_ms


def _scheduled(ledger: Ledger, state: State, event: Scheduled) -> None:
    for queue in event.queues:
        for entry in _entries(event.words):
            assert ledger.places[queue][entry] == WAITS
            ledger.places[queue][entry] = SCHEDULED
            ledger._due[queue, entry] = event.due_us - state.stepped_us
            # The time to live of the queue begins when the message is available.
            ledger._expiry.pop((queue, entry), None)


def _moved(ledger: Ledger, state: State, event: Moved) -> None:
    now_us = state.elapsed_us(event.time_us)
    for offset, entry in enumerate(_entries(event.words), event.offset):
        place = ledger.places[event.source][entry]
        if event.reason is MoveReason.DUE:
            assert place == SCHEDULED
            assert ledger._due[event.source, entry] <= now_us
        else:
            assert place in (WAITS, ASIDE) or (place == SCHEDULED and event.reason is MoveReason.EXPIRED)
        ledger.origins[offset] = ledger.origins[entry]
        if event.reason is not MoveReason.COPIED:
            ledger.remove(event.source, entry, event.reason.text)
        for target in event.targets:
            ledger.places[target][offset] = WAITS
            if event.reason is not MoveReason.DUE:
                ledger.published.add(target)


def _acquired(ledger: Ledger, state: State, event: Acquired, selecting: frozenset[int]) -> None:
    queue, now_us = state.queues[event.queue], state.elapsed_us(event.time_us)
    settings, words = queue.settings, unpack_words(event.words)
    has_early = False
    assert not settings.paused
    assert not settings.non_destructive
    ledger._groups.begin(event)
    for index, word in enumerate(words):
        entry, consumer = word >> 16, event.consumers[index % len(event.consumers)]
        key, column = (queue.id, entry), queue.entries.get(entry, PLAIN)
        assert ledger.places[queue.id][entry] == WAITS
        assert now_us <= ledger._expiry.get(key, now_us), "an expired message is offered"
        assert now_us >= ledger._not_before.get(key, 0), "a delayed message is offered"
        assert consumer not in column.excluded
        assert not settings.delivery_count_max or column.count < settings.delivery_count_max or key in ledger.counted
        ledger.places[queue.id][entry] = consumer
        is_early = bool(column.chunks) and column.chunks[0] in ledger.early
        has_early |= is_early
        priority = column.priority if settings.priorities else -1
        if queue.has_groups and column.group:
            ledger._groups.acquired(consumer, entry, column.group)
        if key not in ledger._seen and consumer not in selecting and not is_early:
            # Where some messages have groups, the deliveries of one dispatch are an event for each consumer. An odd
            # code is of the last message of a binding: the next one may go to another consumer.
            is_free = queue.has_groups and (not column.group or column.group % 2)
            line = queue.id, priority, column.group, consumer if is_free else 0
            assert entry > ledger._fresh.get(line, -1), "a message overtakes another one"
            ledger._groups.note_newest(line, entry, consumer)
        ledger._seen.add(key)
    if not selecting & set(event.consumers) and not queue.has_groups and not has_early:
        _check_priorities(queue, words, now_us)


def _check_priorities(queue: Any, words: Any, now_us: int) -> None:
    """No available message without group and exclusions is of a higher priority than one that was taken.

    An expired one is passed by: its timer may be late.
    """
    lowest = min(queue.entries.get(word >> 16, PLAIN).priority for word in words)
    taken = set(words)
    for priority in queue.serving_order:
        if priority <= lowest or not queue.settings.priorities:
            return
        for word in (word for one in queue.available_of(priority) for word in one):
            column = queue.entries.get(word >> 16, PLAIN)
            is_expired = 0 < queue.expiries.get(word >> 16) <= now_us
            assert word in taken or column.excluded or column.group or is_expired, "a higher priority waits"


def _settled(ledger: Ledger, state: State, event: Settled) -> None:
    queue = state.queues[event.queue]
    for entry in _entries(event.words):
        assert ledger.places[queue.id][entry] == event.consumer
        if event.outcome.kind is OutcomeKind.ACCEPTED:
            ledger.remove(queue.id, entry, "accepted")
        elif event.outcome.kind is OutcomeKind.REJECTED and not queue.settings.dead_letter:
            ledger.remove(queue.id, entry, "rejected")
        elif event.outcome.kind is OutcomeKind.REJECTED:
            ledger.places[queue.id][entry] = ASIDE
            ledger.restless.add(queue.id)
        else:
            _return(ledger, state, queue, entry, event.time_us, is_failed=event.outcome.delivery_failed)


def _return(ledger: Ledger, state: State, queue: Any, entry: int, time_us: int, *, is_failed: bool) -> None:
    ledger.places[queue.id][entry] = WAITS
    ledger.restless.add(queue.id)
    if is_failed:
        ledger.counted.discard((queue.id, entry))
    if is_failed and queue.settings.redelivery_delay_ms:
        delay_ms = queue.settings.redelivery_after_ms(queue.entries.get(entry, PLAIN).count + 1)
        ledger._not_before[queue.id, entry] = state.elapsed_us(time_us) + 1000 * delay_ms


def _detached(ledger: Ledger, state: State, event: ConsumerDetached) -> None:
    consumer = state.consumers[event.consumer]
    queue = state.queues.get(consumer.queue)
    for entry, place in list(ledger.places.get(consumer.queue, {}).items()):
        if place == event.consumer:
            _return(ledger, state, queue, entry, event.time_us, is_failed=True)


def _due(ledger: Ledger, state: State, event: Due) -> None:
    for entry in _entries(event.words):
        assert ledger.places[event.queue][entry] == WAITS
        assert ledger._not_before.pop((event.queue, entry), 0) <= state.elapsed_us(event.time_us)


def _aside(ledger: Ledger, _: State, event: SetAside) -> None:
    for entry in _entries(event.words):
        place = ledger.places[event.queue][entry]
        assert place in (WAITS, ASIDE) or (place == SCHEDULED and event.reason is MoveReason.EXPIRED)
        ledger.places[event.queue][entry] = ASIDE


def _discarded(ledger: Ledger, state: State, event: Discarded) -> None:
    now_us = state.elapsed_us(event.time_us)
    for entry in _entries(event.words):
        if event.reason is DiscardReason.EXPIRED:
            assert state.queues[event.queue].expiry_of(entry << 16) <= now_us
        assert ledger.remove(event.queue, entry, event.reason.text) <= WAITS


def _purged(ledger: Ledger, _: State, event: Purged) -> None:
    for entry, place in list(ledger.places[event.queue].items()):
        if entry < event.before and (place in (WAITS, ASIDE) or (event.scheduled and place == SCHEDULED)):
            ledger.remove(event.queue, entry, "purged")


def _damaged(_ledger: Ledger, _state: State, _event: Damaged) -> None:
    raise AssertionError("nothing is damaged here")


def _ended(ledger: Ledger, state: State, event: LinkEnded) -> None:
    suspended = state.suspended[event.link]
    queue = state.queues.get(suspended.queue)
    for entry, place in list(ledger.places.get(suspended.queue, {}).items()):
        if place == event.link:
            _return(ledger, state, queue, entry, event.time_us, is_failed=True)


def _resumed(ledger: Ledger, _: State, event: LinkResumed) -> None:
    ledger._groups.succeed(event.link, event.successor)
    for places in ledger.places.values():
        for entry, place in places.items():
            if place == event.link:
                places[entry] = event.successor


def _started(ledger: Ledger, _: State, event: Started) -> None:
    for queue, places in ledger.places.items():
        for entry, place in places.items():
            if place > WAITS and place not in event.kept:
                places[entry] = WAITS
                ledger.restless.add(queue)
                ledger.counted.add((queue, entry))


def _declared(ledger: Ledger, _: State, event: QueueDeclared) -> None:
    ledger.places[event.offset] = {}


def _configured(ledger: Ledger, _: State, event: QueueConfigured | QueueUpdated) -> None:
    ledger.restless.add(event.queue)
    ledger.counted.update((event.queue, entry) for entry in ledger.places[event.queue])


def _deleted(ledger: Ledger, _: State, event: QueueDeleted) -> None:
    for entry in list(ledger.places[event.queue]):
        ledger.remove(event.queue, entry, "deleted")
    del ledger.places[event.queue]


def _committed(ledger: Ledger, _: State, __: Committed) -> None:
    ledger.restless.update(ledger.places)


def _duplicated(ledger: Ledger, _: State, event: Duplicated) -> None:
    ledger.duplicates += len(_entries(event.words)) * len(event.queues)


_NOTES: dict[type, Any] = {
    Acquired: _acquired,
    Committed: _committed,
    ConsumerDetached: _detached,
    Damaged: _damaged,
    Discarded: _discarded,
    Due: _due,
    Duplicated: _duplicated,
    LinkEnded: _ended,
    LinkResumed: _resumed,
    Moved: _moved,
    Published: _published,
    Purged: _purged,
    QueueConfigured: _configured,
    QueueUpdated: _configured,
    QueueDeclared: _declared,
    QueueDeleted: _deleted,
    Scheduled: _scheduled,
    SetAside: _aside,
    Settled: _settled,
    Started: _started,
    Timed: _timed,
}
