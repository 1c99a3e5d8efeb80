"""A queue: which entries are available, acquired or gone. A value; each transition returns another.

Rule 1. An entry is AVAILABLE in `ready` (never acquired yet) or in `returned` (was acquired, came back), or ACQUIRED by
        one consumer; ARCHIVED ones are gone from here and live on in the log alone.
Rule 2. `ready` and `returned` are ordered by entry; `returned` is served first: what came back goes out again in order.
Rule 3. `entries` holds columns for the few entries that have any; it never outlives the entry.
Rule 4. Words that a transition names and the queue does not hold are ignored: the caller gets back what was there.
"""

from dataclasses import dataclass, fields
from typing import Final, final

from msgspec import Struct
from msgspec.structs import replace

from ambermq.engine.model.entry import PLAIN, Entry
from ambermq.engine.model.entry_word import WORD_BYTES, entry_of, size_of, total_size, unpack_words
from ambermq.engine.model.lifetime import Lifetime
from ambermq.engine.model.outcome import MODIFIED_FAILED, Outcome, OutcomeKind
from ambermq.engine.model.returned_entries import merge_returned
from ambermq.snapshot.persistent_map import PersistentMap
from ambermq.snapshot.persistent_queue import EMPTY_QUEUE, PersistentQueue

__all__ = ["COUNT_MAX", "Counters", "Queue", "Settings", "new_queue"]

# Part of the fold: an old log must give the same state, so these never change.
EXCLUSIONS_MAX = 64
ANNOTATIONS_BYTES_MAX = 65_536
COUNT_MAX: Final = (1 << 63) - 1
"""The highest number of messages, or of anything else, that can be told: a long of AMQP, and of the log."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What a queue goes by. A later field is added with a default, so old records stay readable."""

    template: str = "normal"
    """The template that it was made from."""
    messages_max: int = 0
    """Messages waiting at most; 0 for the engine's own limit."""


@final
@dataclass(slots=True)
class Counters:
    """What has happened on a queue since it was declared, in messages."""

    published: int = 0
    acquired: int = 0
    accepted: int = 0
    rejected: int = 0
    released: int = 0
    """Released, and modified without delivery-failed."""
    failed: int = 0
    """Modified with delivery-failed, and lost with their consumer."""
    purged: int = 0
    damaged: int = 0

    def plus(self, name: str, count: int) -> "Counters":
        """Return these counters with one of them moved on."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        values[name] += count
        return Counters(**values)


@final
class Queue(Struct, frozen=True):
    """One queue of a virtual host; immutable."""

    id: int
    """The offset of the record that declared it."""
    name: str
    settings: Settings
    ready: PersistentQueue
    """Words of entries that were never acquired."""
    returned: PersistentQueue
    """Words of entries that came back."""
    acquired: "PersistentMap[int, PersistentQueue]"
    """Consumer to the words that it holds, in the order it got them."""
    entries: "PersistentMap[int, Entry]"
    """Entry offset to its columns."""
    exclusions: int
    """How many of `entries` exclude a consumer."""
    size: int
    """Bytes of the messages available and acquired."""
    acquired_count: int
    """Messages acquired."""
    published: int
    """Messages published, ever."""
    delivered: int
    """Messages acquired, ever."""
    accepted: int
    """Messages accepted, ever: the counters of the hot path stand here, the rest in `counters`."""
    counters: Counters
    lifetime: Lifetime = Lifetime.PERMANENT
    consumers: int = 0
    """Links that receive from it."""

    @property
    def available(self) -> int:
        """Messages available."""
        return self.ready.count + self.returned.count

    @property
    def depth(self) -> int:
        """Messages available and acquired."""
        return self.ready.count + self.returned.count + self.acquired_count

    def push(self, words: bytes, size: int) -> "Queue":
        """Return the queue with these new entries at its tail; `size` is what their words account for."""
        return replace(
            self,
            ready=self.ready.push(words),
            size=self.size + size,
            published=self.published + len(words) // WORD_BYTES,
        )

    def with_entry(self, offset: int, entry: Entry) -> "Queue":
        """Return the queue with columns for one entry."""
        return replace(self, entries=self.entries.set(offset, entry))

    def acquire(self, consumers: tuple[int, ...], words: bytes) -> "Queue":
        """Return the queue with available `words` dealt to `consumers`, one each in turn, beginning with the first."""
        ready, returned = self.ready, self.returned
        if returned.count:
            taken, returned = returned.remove(words)
            if len(taken) < len(words):
                fresh, ready = ready.remove(words)
                taken += fresh
        else:
            taken, ready = ready.remove(words)
        if not taken:
            return self
        acquired, count = self.acquired, len(taken) // WORD_BYTES
        if len(consumers) == 1:
            held = acquired.get(consumers[0], EMPTY_QUEUE)
            acquired = acquired.set(consumers[0], held.push(taken))
        else:
            acquired = self._dealt(consumers, taken)
        return replace(
            self,
            ready=ready,
            returned=returned,
            acquired=acquired,
            acquired_count=self.acquired_count + count,
            delivered=self.delivered + count,
        )

    def _dealt(self, consumers: tuple[int, ...], words: bytes) -> "PersistentMap[int, PersistentQueue]":
        view = memoryview(words).cast("Q")
        acquired = self.acquired.mutate()
        for turn, consumer in enumerate(consumers):
            share = bytes(view[turn :: len(consumers)])
            if share:
                acquired[consumer] = acquired.get(consumer, EMPTY_QUEUE).push(share)
        return acquired.finish()

    def held_by(self, consumer: int) -> PersistentQueue:
        """Return the words that a consumer holds."""
        return self.acquired.get(consumer, EMPTY_QUEUE)

    def settle(self, consumer: int, words: bytes, outcome: Outcome) -> "Queue":
        """Return the queue after an outcome over those of `words` that the consumer holds."""
        held = self.acquired.get(consumer)
        if held is None:
            return self
        taken, rest = held.remove(words)
        acquired = self.acquired.set(consumer, rest) if rest.count else self.acquired.delete(consumer)
        if outcome.kind is OutcomeKind.ACCEPTED:
            return self._accepted(taken, acquired)
        if outcome.kind is OutcomeKind.REJECTED:
            return self._archived(taken, acquired, "rejected")
        return self._given_back(taken, acquired, consumer, outcome)

    def _accepted(self, taken: bytes, acquired: "PersistentMap[int, PersistentQueue]") -> "Queue":
        count = len(taken) // WORD_BYTES
        entries, exclusions = self._without(taken) if self.entries else (self.entries, self.exclusions)
        return replace(
            self,
            acquired=acquired,
            entries=entries,
            exclusions=exclusions,
            size=self.size - total_size(taken),
            acquired_count=self.acquired_count - count,
            accepted=self.accepted + count,
        )

    def _archived(self, taken: bytes, acquired: "PersistentMap[int, PersistentQueue]", counter: str) -> "Queue":
        count = len(taken) // WORD_BYTES
        entries, exclusions = self._without(taken)
        return replace(
            self,
            acquired=acquired,
            acquired_count=self.acquired_count - count,
            entries=entries,
            exclusions=exclusions,
            size=self.size - total_size(taken),
            counters=self.counters.plus(counter, count),
        )

    def _given_back(
        self, taken: bytes, acquired: "PersistentMap[int, PersistentQueue]", consumer: int, outcome: Outcome
    ) -> "Queue":
        count = len(taken) // WORD_BYTES
        entries, exclusions = self.entries, self.exclusions
        if outcome.delivery_failed or outcome.undeliverable_here or outcome.annotations:
            entries, exclusions = self._modified(taken, consumer, outcome)
        return replace(
            self,
            returned=merge_returned(self.returned, taken),
            acquired=acquired,
            acquired_count=self.acquired_count - count,
            entries=entries,
            exclusions=exclusions,
            counters=self.counters.plus("failed" if outcome.delivery_failed else "released", count),
        )

    def _modified(self, taken: bytes, consumer: int, outcome: Outcome) -> "tuple[PersistentMap[int, Entry], int]":
        exclusions = self.exclusions
        entries = self.entries.mutate()
        # Neighbours are mostly alike, such as all that a lost consumer had for the first time: they share one value.
        known, after = None, PLAIN
        for word in unpack_words(taken):
            before = entries.get(word >> 16, PLAIN)
            if before is not known:
                known = before
                after = before.modified(
                    outcome, consumer, exclusions_max=EXCLUSIONS_MAX, annotations_bytes_max=ANNOTATIONS_BYTES_MAX
                )
            entries[word >> 16] = after
            exclusions += bool(after.excluded) - bool(before.excluded)
        return entries.finish(), exclusions

    def _without(self, words: bytes) -> "tuple[PersistentMap[int, Entry], int]":
        exclusions = self.exclusions
        entries = self.entries.mutate()
        for word in unpack_words(words):
            entry = entries.pop(word >> 16, PLAIN)
            exclusions -= bool(entry.excluded)
        return entries.finish(), exclusions

    def release_consumer(self, consumer: int, outcome: Outcome) -> "Queue":
        """Return the queue with all that a consumer held given back by `outcome`."""
        held = self.acquired.get(consumer)
        return self if held is None else self.settle(consumer, held.to_bytes(), outcome)

    def release_all(self) -> "Queue":
        """Return the queue with all that anybody held given back, each with one more failed delivery."""
        if not self.acquired:
            return self
        # In one go: putting back what a thousand consumers held, one after the other, would sort a thousand times.
        taken = b"".join([held.to_bytes() for held in self.acquired.values()])
        return self._given_back(taken, PersistentMap(), 0, MODIFIED_FAILED)

    def purge(self, before: int) -> "Queue":
        """Return the queue without the available entries whose offset is below `before`."""
        if max(_last_entry(self.ready), _last_entry(self.returned)) < before:
            return self._emptied()
        from_returned, from_ready = _below(self.returned, before), _below(self.ready, before)
        gone = from_returned + from_ready
        entries, exclusions = self._without(gone) if self.entries else (self.entries, self.exclusions)
        return replace(
            self,
            ready=self.ready.pop(len(from_ready) // WORD_BYTES)[1],
            returned=self.returned.pop(len(from_returned) // WORD_BYTES)[1],
            entries=entries,
            exclusions=exclusions,
            size=self.size - total_size(gone),
            counters=self.counters.plus("purged", len(gone) // WORD_BYTES),
        )

    def _emptied(self) -> "Queue":
        # A million available entries are not looked at one by one: what stays is what is acquired, and that is bounded.
        words = unpack_words(b"".join([held.to_bytes() for held in self.acquired.values()]))
        kept = {word >> 16: self.entries[word >> 16] for word in words if word >> 16 in self.entries}
        return replace(
            self,
            ready=EMPTY_QUEUE,
            returned=EMPTY_QUEUE,
            entries=PersistentMap(kept),
            exclusions=sum([bool(entry.excluded) for entry in kept.values()]),
            size=sum(map(size_of, words)),
            counters=self.counters.plus("purged", self.available),
        )

    def remove_damaged(self, words: bytes) -> "Queue":
        """Return the queue without those of packed `words` that it holds, wherever: their messages cannot be read."""
        from_held, acquired = self._without_held(words)
        from_ready, ready = self.ready.remove(words)
        from_returned, returned = self.returned.remove(words)
        from_available = from_returned + from_ready
        if not from_held and not from_available:
            return self
        # As if all of them had been acquired: archiving counts them off again.
        count = self.acquired_count + len(from_available) // WORD_BYTES
        without = replace(self, ready=ready, returned=returned, acquired_count=count)
        return Queue._archived(without, from_held + from_available, acquired, "damaged")

    def _without_held(self, words: bytes) -> "tuple[bytes, PersistentMap[int, PersistentQueue]]":
        """Return those of packed `words` that consumers hold, and what the consumers hold without them."""
        found, acquired = b"", self.acquired
        for consumer, held in self.acquired.items():
            taken, left = held.remove(words)
            if taken:
                found += taken
                acquired = acquired.set(consumer, left) if left else acquired.delete(consumer)
        return found, acquired


def _below(words: PersistentQueue, before: int) -> bytes:
    """Return the packed words at the head of an ordered queue whose entries lie below an offset."""
    runs = []
    for run in words.chunks():
        last = entry_of(int.from_bytes(run[-WORD_BYTES:], "little"))
        if last >= before:
            kept = [word for word in unpack_words(run) if entry_of(word) < before]
            runs.append(run[: len(kept) * WORD_BYTES])
            break
        runs.append(run)
    return b"".join(runs)


def _last_entry(words: PersistentQueue) -> int:
    return entry_of(int.from_bytes(words.last(), "little")) if words else -1


def new_queue(queue_id: int, name: str, settings: Settings, lifetime: Lifetime = Lifetime.PERMANENT) -> Queue:
    """Return an empty queue."""
    return Queue(
        queue_id,
        name,
        settings,
        EMPTY_QUEUE,
        EMPTY_QUEUE,
        PersistentMap(),
        PersistentMap(),
        0,
        0,
        0,
        0,
        0,
        0,
        Counters(),
        lifetime,
    )
