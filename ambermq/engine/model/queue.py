"""A queue and its transitions. A queue is a value; each transition returns another one.

Rule 1. A transition ignores words that the queue does not hold.
Rule 2. `now_us` is the elapsed time.
Rule 3. Here stands in which list an entry is. What its columns say after a transition is in queue_parts/columns.py.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final, final

from msgspec.structs import replace

from ambermq.engine.entries.discard_reason import MoveReason
from ambermq.engine.entries.entry import PLAIN, Entry
from ambermq.engine.entries.entry_word import WORD_BYTES, entry_of, size_of, total_size, unpack_words
from ambermq.engine.entries.expiry_runs import NO_RUNS, extended
from ambermq.engine.entries.marks import SetAsideFor, cut_description
from ambermq.engine.entries.outcome import MODIFIED_FAILED, Outcome, OutcomeKind
from ambermq.engine.entries.priority import PRIORITY_DEFAULT
from ambermq.engine.entries.redelivery_order import merge_returned, merge_rising
from ambermq.engine.model.lifetime import Lifetime
from ambermq.engine.model.queue_contents import QueueContents
from ambermq.engine.model.queue_parts import columns
from ambermq.engine.model.queue_parts.attempts import with_attempts
from ambermq.engine.model.queue_parts.counters import Counters
from ambermq.engine.model.queue_parts.expiries import (
    only_expiries,
    with_expiries,
    with_expiry_of_each,
    without_expiries,
)
from ambermq.engine.model.queue_parts.groups import NO_GROUPS, Groups, with_codes, without_codes
from ambermq.engine.model.queue_parts.holdings import Holdings, all_held, distributed, without_held
from ambermq.engine.model.queue_parts.id_window import NO_IDS
from ambermq.engine.model.queue_parts.last_values import NO_KEY, only_words, with_keys, without_keys
from ambermq.engine.model.queue_parts.levels import (
    NO_LEVELS,
    Levels,
    by_priority,
    with_words,
    without_below,
    without_words,
)
from ambermq.engine.model.queue_parts.outcome_annotations import NO_ANNOTATIONS, OutcomeAnnotations
from ambermq.engine.model.queue_parts.scheduled_times import with_dues
from ambermq.engine.model.queue_parts.word_ranges import last_entry, words_below, words_between
from ambermq.engine.settings.queue_settings import Settings
from ambermq.snapshot.persistent_map import PersistentMap
from ambermq.snapshot.persistent_queue import EMPTY_QUEUE, PersistentQueue

__all__ = ["Queue", "new_queue"]

_NO_CHANGES: Final[dict[str, Any]] = {}


@final
class Queue(QueueContents, frozen=True):
    """One queue of a virtual host; immutable."""

    def push(self, words: bytes, size: int, now_us: int) -> "Queue":
        """Return the queue with new entries at its tail; `size` is the sum of the sizes in their words.

        `now_us` is the elapsed time.
        """
        if self.runs or self.settings.message_ttl_ms:
            return self._push_timed(words, size, now_us)
        return replace(
            self,
            ready=self.ready.push(words),
            size=self.size + size,
            published=self.published + len(words) // WORD_BYTES,
        )

    def _push_timed(self, words: bytes, size: int, now_us: int) -> "Queue":
        first = entry_of(int.from_bytes(words[:WORD_BYTES], "little"))
        # A scheduled message has no run: the messages of one event may come to the tail together, or one by one.
        is_empty = self.depth == self.scheduled.count
        runs = extended(NO_RUNS if is_empty else self.runs, first, now_us, self.settings.message_ttl_ms)
        pushed = self.published + len(words) // WORD_BYTES
        return replace(self, ready=self.ready.push(words), size=self.size + size, published=pushed, runs=runs)

    def with_expiries(self, first: int, times: bytes) -> "Queue":
        """Return the queue with packed `times`, when each of the entries from `first` on expires by its own."""
        return replace(self, expiries=with_expiries(self.expiries, first, times))

    def schedule(self, words: bytes, dues: bytes) -> "Queue":
        """Return the queue with those of packed `words` waiting that were never acquired; `dues` are their times."""
        taken, ready = self.ready.remove_ordered(words)
        if not taken:
            return self
        scheduled = merge_rising(self.scheduled, taken)
        return replace(self, ready=ready, scheduled=scheduled, dues=with_dues(self.dues, taken, words, dues))

    def group(self, first: int, count: int, codes: bytes) -> "Queue":
        """Return the queue with groups of `count` entries from `first` on, as an event has them."""
        if not self.settings.groups:
            return self
        words = words_between(self.ready, first, first + count)
        entries, added = columns.with_groups(self.entries, words, first, codes)
        return replace(self, entries=entries, groups=with_codes(self.groups, added))

    def _groups_without(self, words: bytes) -> Groups:
        """Return `groups` without some entries."""
        return without_codes(self.groups, [self.entries.get(word >> 16, PLAIN).group for word in unpack_words(words)])

    def prioritize(self, first: int, count: int, priority: int) -> "Queue":
        """Return the queue with a priority of those of `count` entries from `first` on that were never acquired."""
        if not self.settings.priorities:
            return self
        words = words_between(self.ready, first, first + count)
        later = words_between(self.scheduled, first, first + count)
        entries = columns.with_priority(self.entries, words + later, priority)
        return replace(self, entries=entries)._with_levels_of(words)  # noqa: SLF001 - another value of it

    def with_keys(self, first: int, keys: Sequence[bytes]) -> "Queue":
        """Return the queue with keys of those of the entries from `first` on that wait; NO_KEY is none."""
        if not self.settings.last_value:
            return self
        end = first + len(keys)
        later = unpack_words(words_between(self.scheduled, first, end))
        words = sorted(word for one in self.available_lists for word in unpack_words(words_between(one, first, end)))
        pairs, scheduled = ([(word, keys[(word >> 16) - first]) for word in some] for some in (words, later))
        kept = [[pair for pair in some if pair[1] != NO_KEY] for some in (pairs, scheduled)]
        return replace(self, keyed=with_keys(self.keyed, *kept)) if any(kept) else self

    def _with_levels_of(self, words: bytes) -> "Queue":
        """Return the queue with those of packed `words` in their levels that were never acquired."""
        others = by_priority(words, self.entries)
        others.pop(PRIORITY_DEFAULT, None)
        ready = self.ready
        for some in others.values():
            ready = ready.remove_ordered(some)[1]
        return replace(self, ready=ready, levels=with_words(self.levels, others, are_returned=False))

    def _with_returned(self, words: bytes) -> tuple[PersistentQueue, Levels]:
        """Return `returned` and `levels` with packed words that come back."""
        if not self.settings.priorities or not self.entries:
            return merge_returned(self.returned, words), self.levels
        words_of = by_priority(words, self.entries)
        levels = with_words(self.levels, words_of, are_returned=True)
        return merge_returned(self.returned, words_of.get(PRIORITY_DEFAULT, b"")), levels

    def with_settings(self, settings: Settings) -> "Queue":
        """Return the queue with other settings; its messages stay, in one order if it has no priorities any more."""
        ready, returned = self.ready, self.returned
        ids = self.ids if settings.dedup_window_ms else NO_IDS
        if settings.priorities or not self.levels:
            return replace(self, settings=settings, ids=ids)
        for level in self.levels:
            ready, returned = _merged(ready, level.ready), _merged(returned, level.returned)
        return replace(self, settings=settings, ready=ready, returned=returned, levels=NO_LEVELS, ids=ids)

    def identify(self, words: bytes, digests: bytes, now_us: int, ids_max: int) -> "Queue":
        """Return the queue with the ids of messages, unless it has no dedup window; `now_us` is the elapsed time."""
        if not self.settings.dedup_window_ms:
            return self
        ids = self.ids.add(words, digests, now_us, 1000 * self.settings.dedup_window_ms, ids_max)
        return replace(self, ids=ids)

    def with_entry(self, offset: int, entry: Entry) -> "Queue":
        """Return the queue with columns for one entry."""
        return replace(self, entries=self.entries.set(offset, entry))

    def acquire(self, consumers: tuple[int, ...], words: bytes) -> "Queue":
        """Return the queue after `consumers` acquired available `words`, one each in turn, the first one first."""
        ready, returned = self.ready, self.returned
        if returned.count:
            taken, returned = returned.remove_ordered(words)
            if len(taken) < len(words):
                fresh, ready = ready.remove_ordered(words)
                taken += fresh
        else:
            taken, ready = ready.remove_ordered(words)
        levels = self.levels
        if levels and len(taken) < len(words):
            leveled, levels = without_words(levels, words)
            taken += leveled
        if not taken:
            return self
        acquired, count = self.acquired, len(taken) // WORD_BYTES
        if len(consumers) == 1:
            held = acquired.get(consumers[0], EMPTY_QUEUE)
            acquired = acquired.set(consumers[0], held.push(taken))
        else:
            acquired = distributed(acquired, consumers, taken)
        return replace(
            self,
            ready=ready,
            returned=returned,
            acquired=acquired,
            acquired_count=self.acquired_count + count,
            acquired_size=self.acquired_size + total_size(taken),
            delivered=self.delivered + count,
            levels=levels,
        )

    def settle(self, consumer: int, words: bytes, outcome: Outcome, now_us: int = 0) -> "Queue":
        """Return the queue after an outcome over those of `words` that the consumer holds.

        `now_us` is the elapsed time, from which a redelivery is delayed.
        """
        held = self.acquired.get(consumer)
        if held is None:
            return self
        taken, rest = held.remove(words)
        acquired = self.acquired.set(consumer, rest) if rest.count else self.acquired.delete(consumer)
        if outcome.kind is OutcomeKind.ACCEPTED:
            return self._accepted(taken, acquired)
        if outcome.kind is OutcomeKind.REJECTED:
            if self.settings.dead_letter:
                return self._rejected(taken, acquired, outcome)
            return self._archived(taken, acquired, "rejected")
        if outcome.delivery_failed and self.settings.redelivery_delay_ms:
            return self._delay_entries(taken, acquired, consumer, outcome, now_us)
        return self._return_entries(taken, acquired, consumer, outcome)

    def _accepted(self, taken: bytes, acquired: Holdings) -> "Queue":
        return self._ended(taken, acquired, accepted=self.accepted + len(taken) // WORD_BYTES)

    def _archived(self, taken: bytes, acquired: Holdings, counter: str) -> "Queue":
        return self._ended(taken, acquired, counters=self.counters.plus(counter, len(taken) // WORD_BYTES))

    def _ended(self, taken: bytes, acquired: Holdings, **counted: Any) -> "Queue":
        """Return the queue without taken words, whose messages have ended, and with the field that counts them."""
        size = total_size(taken)
        return replace(
            self,
            acquired=acquired,
            size=self.size - size,
            acquired_count=self.acquired_count - len(taken) // WORD_BYTES,
            acquired_size=self.acquired_size - size,
            keyed=self.keyed and without_keys(self.keyed, taken),
            **(self._columns_without(taken) if self.entries or self.expiries.count else _NO_CHANGES),
            **counted,
        )

    def _columns_without(self, words: bytes) -> dict[str, Any]:
        """Return the fields that change with the end of the columns of packed words."""
        entries, exclusions = columns.without(self.entries, self.exclusions, words)
        return {
            "entries": entries,
            "exclusions": exclusions,
            "expiries": without_expiries(self.expiries, words) if self.expiries.count else self.expiries,
            "groups": self.groups and self._groups_without(words),
            "outcome_annotations": self._annotations_after(entries, words),
        }

    def _annotations_after(self, entries: columns.Columns, words: bytes) -> OutcomeAnnotations:
        """Return `outcome_annotations` after the columns of packed words have changed to those in `entries`."""
        known = self.outcome_annotations
        return known and known.recounted(self.entries, entries, words)

    def _rejected(self, taken: bytes, acquired: Holdings, outcome: Outcome) -> "Queue":
        """Return the queue with rejected words set aside, for its dead-letter target."""
        known, text = self.outcome_annotations, cut_description(outcome.condition, outcome.description)
        why = SetAsideFor(MoveReason.REJECTED, known.shared(text))
        entries, exclusions = columns.set_aside(self.entries, self.exclusions, taken, why)
        return replace(
            self,
            aside=merge_returned(self.aside, taken),
            acquired=acquired,
            acquired_count=self.acquired_count - len(taken) // WORD_BYTES,
            acquired_size=self.acquired_size - total_size(taken),
            entries=entries,
            exclusions=exclusions,
            keyed=self.keyed and without_keys(self.keyed, taken),
            outcome_annotations=known.recounted(self.entries, entries, taken) if known or text else known,
        )

    def _return_entries(self, taken: bytes, acquired: Holdings, consumer: int, outcome: Outcome) -> "Queue":
        count = len(taken) // WORD_BYTES
        entries, exclusions, annotations = self.entries, self.exclusions, self.outcome_annotations
        if outcome.delivery_failed or outcome.undeliverable_here or outcome.annotations:
            entries, exclusions = columns.modified(entries, exclusions, taken, consumer, outcome, annotations.shared)
        if outcome.annotations:
            annotations = annotations.recounted(self.entries, entries, taken)
        if self.settings.lock_ms:
            entries = with_attempts(entries, taken)
        elif not outcome.delivery_failed:
            entries = columns.returned(entries, taken)
        returned, levels = self._with_returned(taken)
        return replace(
            self,
            returned=returned,
            levels=levels,
            acquired=acquired,
            acquired_count=self.acquired_count - count,
            acquired_size=self.acquired_size - total_size(taken),
            entries=entries,
            exclusions=exclusions,
            counters=self.counters.plus("failed" if outcome.delivery_failed else "released", count),
            outcome_annotations=annotations,
        )

    def _delay_entries(
        self,
        taken: bytes,
        acquired: Holdings,
        consumer: int,
        outcome: Outcome,
        now_us: int,
    ) -> "Queue":
        """Return the queue after failed deliveries whose messages are offered again later."""
        queue = self._return_entries(taken, acquired, consumer, outcome)
        after_ms = self.settings.redelivery_after_ms
        entries = columns.delayed(queue.entries, taken, lambda failed: now_us + 1000 * after_ms(failed))
        lists = {"returned": self.returned, "levels": self.levels, "delayed": merge_returned(self.delayed, taken)}
        return replace(queue, entries=entries, **lists)

    def end_delay(self, words: bytes) -> "Queue":
        """Return the queue with those of packed `words` available again, in their old places, that were delayed."""
        taken, left = self.delayed.remove_ordered(words)
        if not taken:
            return self
        counters = self.counters.plus("delayed", len(taken) // WORD_BYTES)
        returned, levels = self._with_returned(taken)
        rest = replace(self, returned=returned, levels=levels, delayed=left)
        return replace(rest, entries=columns.undelayed(self.entries, taken), counters=counters)

    def release_consumer(self, consumer: int, outcome: Outcome, now_us: int = 0) -> "Queue":
        """Return the queue after `outcome` over all entries that a consumer holds; `now_us` is the elapsed time."""
        held = self.acquired.get(consumer)
        return self if held is None else self.settle(consumer, held.to_bytes(), outcome, now_us)

    def release_all(self) -> "Queue":
        """Return the queue with no acquired entry: all are available at once, each with one more failed delivery."""
        if not self.acquired:
            return self
        # One merge for all consumers: a merge for each of a thousand consumers would sort a thousand times.
        taken = all_held(self.acquired)
        return self._return_entries(taken, PersistentMap(), 0, MODIFIED_FAILED)

    def purge(self, before: int, *, scheduled: bool = False) -> "Queue":
        """Return the queue without the waiting entries whose offset is below `before`.

        Those that are scheduled for later stay, unless `scheduled` is set.
        """
        if scheduled:
            kept = self.purge(before)
            removed = words_below(kept.scheduled, before)
            return kept.without(removed, "purged")[1] if removed else kept
        is_all = max(map(last_entry, self.unscheduled_lists)) < before
        if is_all and self.scheduled.count <= self.available:
            return self._purge_all()
        from_returned, from_ready = words_below(self.returned, before), words_below(self.ready, before)
        from_aside, from_delayed = words_below(self.aside, before), words_below(self.delayed, before)
        from_levels, levels = without_below(self.levels, before)
        removed = from_returned + from_ready + from_aside + from_delayed + from_levels
        return replace(
            self,
            ready=self.ready.pop(len(from_ready) // WORD_BYTES)[1],
            returned=self.returned.pop(len(from_returned) // WORD_BYTES)[1],
            aside=self.aside.pop(len(from_aside) // WORD_BYTES)[1],
            delayed=self.delayed.pop(len(from_delayed) // WORD_BYTES)[1],
            size=self.size - total_size(removed),
            counters=self.counters.plus("purged", len(removed) // WORD_BYTES),
            levels=levels,
            keyed=self.keyed and without_keys(self.keyed, removed),
            **self._columns_without(removed),
        )

    def _purge_all(self) -> "Queue":
        # This does not visit the waiting entries, which may be millions: those that stay are fewer.
        words = unpack_words(all_held(self.acquired) + self.scheduled.to_bytes())
        kept = {word >> 16: self.entries[word >> 16] for word in words if word >> 16 in self.entries}
        return replace(
            self,
            ready=EMPTY_QUEUE,
            returned=EMPTY_QUEUE,
            aside=EMPTY_QUEUE,
            delayed=EMPTY_QUEUE,
            levels=NO_LEVELS,
            entries=PersistentMap(kept),
            exclusions=sum([bool(entry.excluded) for entry in kept.values()]),
            expiries=only_expiries(self.expiries, words),
            size=sum(map(size_of, words)),
            counters=self.counters.plus("purged", self.waiting - self.scheduled.count),
            keyed=self.keyed and only_words(self.keyed, words, self.scheduled),
            groups=with_codes(NO_GROUPS, [entry.group for entry in kept.values()]),
            outcome_annotations=NO_ANNOTATIONS.with_entries(kept.values()),
        )

    def without(self, words: bytes, counter: str) -> "tuple[bytes, Queue]":
        """Return those of packed `words` that wait, and the queue without them.

        `counter` is the name of the one that counts them; empty for none.
        """
        removed, rest = self._without_waiting(words)
        if not removed:
            return removed, self
        counters = self.counters.plus(counter, len(removed) // WORD_BYTES) if counter else self.counters
        size = self.size - total_size(removed)
        keyed = self.keyed and without_keys(self.keyed, removed)
        left = replace(rest, size=size, counters=counters, **self._columns_without(removed))
        return removed, left if keyed is self.keyed else replace(left, keyed=keyed)

    def _without_waiting(self, words: bytes) -> "tuple[bytes, Queue]":
        """Return those of packed `words` that wait, and the queue with its lists without them."""
        ready, returned, aside = self.ready, self.returned, self.aside
        delayed, scheduled = self.delayed, self.scheduled
        removed, dues, levels = b"", self.dues, self.levels
        if ready.count:
            removed, ready = ready.remove_ordered(words)
        if returned.count and len(removed) < len(words):
            some, returned = returned.remove_ordered(words)
            removed = some + removed
        if aside.count and len(removed) < len(words):
            some, aside = aside.remove_ordered(words)
            removed += some
        if delayed.count and len(removed) < len(words):
            some, delayed = delayed.remove_ordered(words)
            removed += some
        if scheduled.count and len(removed) < len(words):
            some, scheduled = scheduled.remove_ordered(words)
            removed += some
            dues = dues.without([word >> 16 for word in unpack_words(some)])
        if levels and len(removed) < len(words):
            some, levels = without_words(levels, words)
            removed += some
        if not removed:
            return removed, self
        lists = {"ready": ready, "returned": returned, "aside": aside, "delayed": delayed, "scheduled": scheduled}
        return removed, replace(self, levels=levels, dues=dues, **lists)

    def set_aside(self, words: bytes, why: SetAsideFor) -> "Queue":
        """Return the queue with those of packed `words` set aside that wait otherwise."""
        taken, rest = replace(self, aside=EMPTY_QUEUE)._without_waiting(words)  # noqa: SLF001 - another value of it
        if not taken:
            return self
        entries, exclusions = columns.set_aside(self.entries, self.exclusions, taken, why)
        keyed = self.keyed and without_keys(self.keyed, taken)
        return replace(
            rest, aside=merge_returned(self.aside, taken), entries=entries, exclusions=exclusions, keyed=keyed
        )

    def receive(self, words: bytes, entries: "Iterable[tuple[int, Entry]]", now_us: int) -> "Queue":
        """Return the queue with messages of other queues at its tail; `entries` has the columns by entry."""
        known, arrived = self.entries.mutate(), tuple(entries)
        known.update(arrived)
        groups = with_codes(self.groups, [entry.group for _, entry in arrived])
        changes: dict[str, Any] = {"entries": known.finish(), "groups": groups}
        if annotated := [entry for _, entry in arrived if entry.annotations or entry.marks is not None]:
            changes["outcome_annotations"] = self.outcome_annotations.with_entries(annotated)
        queue = replace(self.push(words, total_size(words), now_us), **changes)
        return queue._with_levels_of(words) if self.settings.priorities else queue  # noqa: SLF001 - another value of it

    def deliver(
        self, words: bytes, arrivals: bytes, entries: "Sequence[tuple[int, Entry]]", now_us: int, times: Sequence[int]
    ) -> "Queue":
        """Return the queue with scheduled `words` at its tail, as `arrivals` with columns by entry.

        `times` say when each of them expires by its own time to live, 0 for never; empty if none has one.
        """
        rest = self.without(words, "")[1]
        # One by one they would not leave the queue empty, so it keeps its runs: n messages have the result of n events.
        runs = extended(self.runs, entry_of(unpack_words(arrivals)[0]), now_us, self.settings.message_ttl_ms)
        expiries = with_expiry_of_each(rest.expiries, arrivals, times)
        return replace(rest.receive(arrivals, entries, now_us), published=self.published, expiries=expiries, runs=runs)

    def remove_damaged(self, words: bytes) -> "Queue":
        """Return the queue without those of packed `words` that it has, waiting or acquired: damaged messages."""
        from_held, acquired = without_held(self.acquired, words)
        from_waiting, rest = self._without_waiting(words)
        if not from_held and not from_waiting:
            return self
        # `_archived` subtracts all of them from the acquired ones, so the waiting ones are added first.
        count = self.acquired_count + len(from_waiting) // WORD_BYTES
        size = self.acquired_size + total_size(from_waiting)
        without = replace(rest, acquired_count=count, acquired_size=size)
        return Queue._archived(without, from_held + from_waiting, acquired, "damaged")


def _merged(words: PersistentQueue, others: PersistentQueue) -> PersistentQueue:
    return merge_returned(words, others.to_bytes()) if others else words


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
        0,
        Counters(),
        lifetime,
    )
