"""The dispatch: consumers with credit acquire available messages, one delivery each in turn.

Rule 1. Messages of a higher priority are served first. Of one priority returned messages are served before new ones,
        both in the order of entries.
Rule 2. Turns are exact: of k consumers with credit the i-th gets words[i::k]. The ring keeps its position, so the
        consumer after the last served one is next.
Rule 3. A consumer that excluded an entry (undeliverable-here) is skipped for it, and the entry blocks no later entry.
        A consumer passes each entry that excludes it once (returned_walk.py), within a limit of visits in a tick.
Rule 4. A consumer with a selector has its own scan (selector_scan.py), before the other consumers. If the scans use up
        a tick, the other consumers are served first in the queue's next one. The scans of a tick have a limit of time.
Rule 5. Of the consumers with credit those with the highest priority are served. An exclusive queue serves one consumer,
        the first that attached. Credit that a consumer's rate holds back is no credit here.
Rule 6. Messages of a group go to the consumer that has the group (group_turns.py); a queue without such messages pays
        nothing for that.
Rule 7. A dispatch delivers at most `budget` messages, and stops after the message that uses up the budget of bytes. So
        it always delivers one. A queue with more messages stays dirty for the next tick, after the others. At most
        `budget` queues are visited, because a visit without a delivery costs time too. A delivery with annotations that
        outcomes have added counts as several: its message is decoded.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import cycle, islice
from operator import attrgetter, itemgetter
from typing import Final, final

from msgspec import Struct

from ambermq.engine.config import EngineConfig
from ambermq.engine.dispatch.active_consumer import told_of_active
from ambermq.engine.dispatch.demand import Demand, Want
from ambermq.engine.dispatch.group_notes import note_groups
from ambermq.engine.dispatch.group_turns import GroupTurns, TurnLimits
from ambermq.engine.dispatch.returned_walk import Visits
from ambermq.engine.dispatch.selector_scan import Peek, SelectorScan, is_available
from ambermq.engine.dispatch.turn_shares import count_within, entry_cost, fair_share, most_wanted, priority_of
from ambermq.engine.effects import AT_CLOSE, Deliver, Drained, Effect
from ambermq.engine.entries.entry import Entry
from ambermq.engine.entries.entry_word import WORD_BYTES, pack_words, size_of, total_size, unpack_words
from ambermq.engine.entries.outcome import ACCEPTED
from ambermq.engine.entries.priority import PRIORITY_DEFAULT
from ambermq.engine.events import Acquired, Event, Settled
from ambermq.engine.fold.apply import acquired, settled
from ambermq.engine.model.queue import Queue
from ambermq.engine.model.state import State
from ambermq.engine.selectors.fields import Fields
from ambermq.engine.time_budget import MatchUnfinished, TimeBudget

__all__ = ["Dispatch", "dispatch", "peek_nothing"]

_VISITS_PER_DELIVERY: Final = 8
"""A visit of a returned message costs at most an eighth of a delivery."""


_consumer_of = attrgetter("consumer")


def peek_nothing(_queue: int, words: Sequence[int], _entries: Sequence[Entry | None]) -> list[Fields | None]:
    """Return None for each message: none can be read, so no selector matches."""
    return [None for _ in words]


def dispatch(
    state: State,
    demand: Demand,
    now_us: int,
    next_offset: int,
    config: EngineConfig,
    peek: Peek = peek_nothing,
    matching: TimeBudget | None = None,
) -> "Dispatch":
    """Return a dispatch on the dirty queues, within the limits of `config` for deliveries, bytes and selector peeks.

    One message may go beyond the limit of bytes. `next_offset` is the offset of the first event. `matching` is the time
    for selectors; without it they have no limit of time.
    """
    budget, bytes_max, peeks_max = config.dispatch_messages_max, config.dispatch_bytes_max, config.scan_messages_max
    visits_max = _VISITS_PER_DELIVERY * budget
    matching = matching or TimeBudget()
    elapsed_us = now_us - state.stepped_us
    result = Dispatch(
        state, demand, now_us, next_offset, budget, bytes_max, peek, peeks_max, matching, visits_max, elapsed_us
    )
    result.groups_max = config.groups_max
    for queue_id in list(islice(demand.dirty, budget)):
        if result.budget <= 0 or result.bytes_left <= 0 or result.visits_left <= 0:
            break
        queue = result.state.queues.get(queue_id)
        ring, scanning = demand.rings.get(queue_id), demand.scanning.get(queue_id)
        has_more = False
        if queue is not None and (queue.settings.exclusive or queue_id in demand.active):
            result.effects += told_of_active(demand, queue)
        if queue is not None and queue.settings.paused:
            result.drain_all(ring, scanning)
            del demand.dirty[queue_id]
            continue
        if queue is not None and queue.settings.exclusive:
            ring, scanning = result.only_active(queue, ring, scanning)
        if queue is not None and scanning:
            has_more = result.share(queue, scanning, ring)
            queue = result.state.queues[queue_id]
        if ring is not None:
            if queue is not None and not result.serve(queue, ring):
                # The queue is next after the others, else a queue with unlimited credit would use every tick.
                demand.dirty[queue_id] = demand.dirty.pop(queue_id)
                break
            for want in ring:
                if want.draining:
                    result.drain(want)
        del demand.dirty[queue_id]
        if has_more:
            # The queue is next after the others, because all queues share `peeks_max`.
            demand.dirty[queue_id] = None
    return result


@final
class Dispatch(Struct):
    """A running dispatch, and its result: the state, the events in order, the effects."""

    state: State
    demand: Demand
    now_us: int
    first_offset: int
    """The offset of the first event; each event is one record."""
    budget: int
    """The deliveries that are left."""
    bytes_left: int
    peek: Peek
    peeks_left: int
    """The messages that may still be read for selectors."""
    matching: TimeBudget
    """The time that is left for selectors."""
    visits_left: int
    """The returned messages that may still be visited for consumers that some of them exclude."""
    elapsed_us: int
    """The elapsed time, by which messages expire."""
    events: list[Event] = []
    effects: list[Effect] = []
    expired: dict[int, list[int]] = {}
    """Available words that have expired, by queue. No consumer gets them."""
    groups_max: int = 0
    """The groups of a queue that have bindings of their own."""

    @property
    def is_spent(self) -> bool:
        """Whether a budget is used up."""
        return self.budget <= 0 or self.bytes_left <= 0 or self.visits_left <= 0

    def share(self, queue: Queue, scanning: deque[Want], ring: deque[Want] | None) -> bool:
        """Serve selecting consumers; if `passed_over` has the queue, serve the others first. Return as `select` does.

        The caller serves the others again afterwards. If they were first, they have no credit or no message then.
        """
        passed_over = self.demand.passed_over
        if queue.id in passed_over:
            passed_over.discard(queue.id)
            if ring is not None and not self.serve(queue, ring):
                return True
            return self.select(self.state.queues[queue.id], scanning)
        has_more = self.select(queue, scanning)
        if ring is not None and self.is_spent:
            passed_over.add(queue.id)
        return has_more

    def select(self, queue: Queue, ring: deque[Want]) -> bool:
        """Deliver the messages that consumers select from a queue; return whether the next tick may deliver more."""
        has_more, last = False, None
        if queue.groups and queue.has_groups:
            self._prepare_groups(queue, ring)
        for want in sorted(ring, key=priority_of) if queue.id in self.demand.prioritized else list(ring):
            if want.credit <= 0:
                self.drain(want)
                continue
            event_count = len(self.events)
            scan, journal = want.scan, self.demand.journal(queue.id)
            assert scan is not None
            while want.credit > 0 and (words := scan.ahead(queue, journal, self.peeks_left or 1)):
                if self.peeks_left <= 0 or self.is_spent or self.matching.is_spent():
                    has_more = True
                    break
                entries = [queue.entries.get(word >> 16) for word in words]
                fields = self.peek(queue.id, words, entries)
                if fields is None:
                    self.demand.parked[queue.id] = None
                    break
                queue = self._deliver_matches(queue, want, scan, list(zip(words, entries, fields, strict=False)))
            else:
                self.drain(want)
            if len(self.events) > event_count:
                last = want
        # The consumer after the last one that was served is first the next time. A visit that had to wait for a message
        # serves none, and leaves the turns as they are: else two visits a message would give all to every second one.
        if last is not None:
            while ring[-1] is not last:
                ring.rotate(-1)
        elif has_more:
            ring.rotate(-1)
        if queue.groups and queue.has_groups:
            has_more |= self.demand.lines(queue.id, self.groups_max).restarts_scans
        return has_more

    def _deliver_matches(
        self, queue: Queue, want: Want, scan: SelectorScan, seen: list[tuple[int, Entry | None, Fields | None]]
    ) -> Queue:
        """Deliver the messages that match a consumer's selector, until its credit or a budget is used up.

        The caller has checked the time, so at least one message is tested, or a part of a large one.
        """
        for word, entry, fields in seen:
            self.peeks_left -= 1
            try:
                is_wanted = fields is not None and scan.selects(word, entry, fields, self.matching)
            except MatchUnfinished:
                break
            scan.pass_by(word)
            if is_wanted and (queue.expiries.count or queue.runs) and self._has_expired(queue, word):
                continue
            if is_wanted and want.consumer not in (entry.excluded if entry else ()) and is_available(queue, word):
                if entry is not None and entry.group and not self._admits(queue, want, entry, word):
                    continue
                self.bytes_left -= size_of(word)
                queue = self._acquire(queue, [want], pack_words([word]))
                if want.credit <= 0 or self.is_spent:
                    break
            if self.matching.is_spent():
                break
        return queue

    def serve(self, queue: Queue, ring: deque[Want], priority: int | None = None) -> bool:
        """Deliver the messages of a queue; return False if a budget ended it, True if messages or credit did.

        With `priority` those that have it; then the queue has several.
        """
        if queue.groups and queue.has_groups:
            return self._serve_groups(queue, ring)
        if priority is None and queue.levels:
            return all(self.serve(self.state.queues[queue.id], ring, one) for one in queue.serving_order)
        returned, ready = (queue.returned, queue.ready) if priority is None else queue.available_of(priority)
        if queue.exclusions and returned.count:
            queue = self._serve_returned(queue, ring, PRIORITY_DEFAULT if priority is None else priority)
        while self.budget > 0 and self.bytes_left > 0 and self.visits_left > 0:
            returned, ready = (queue.returned, queue.ready) if priority is None else queue.available_of(priority)
            source = returned if returned.count and not queue.exclusions else ready
            if not source.count:
                return True
            if len(ring) == 1:
                # The common case.
                want = ring[0]
                wants, count = [want], min(source.count, self.budget, want.credit)
            else:
                wants = [want for want in ring if want.credit > 0]
                if queue.id in self.demand.prioritized:
                    wants = most_wanted(wants)
                count = fair_share(wants, min(source.count, self.budget))
            if not count:
                return True
            words = source.head(count)
            if queue.expiries.count or queue.runs:
                words = self._before_expired(queue, words)
                count = fair_share(wants, len(words) // WORD_BYTES)
                if not count:
                    # The loop gives up what has expired. The next tick goes on behind it.
                    return False
                words = words[: count * WORD_BYTES]
            size = total_size(words)
            is_plain = not queue.entries and not queue.expiries.count
            count_max = count if is_plain else self._count_affordable(queue, words)
            if (size >= self.bytes_left or count_max < count) and count > 1:
                count = fair_share(wants, min(count_within(words, self.bytes_left), count_max))
                words = words[: count * WORD_BYTES]
                size = total_size(words)
            self.bytes_left -= size
            queue = self._acquire(queue, wants, words)
            last = wants[-1]
            while ring[-1] is not last:
                ring.rotate(-1)
        return False

    def _serve_groups(self, queue: Queue, ring: deque[Want]) -> bool:
        """Deliver the messages of a queue of which some have groups; return as `serve` does."""
        lines, journal = self.demand.lines(queue.id, self.groups_max), self.demand.journal(queue.id)
        has_expired = partial(self._has_expired, queue)
        limits = TurnLimits(self.budget, self.bytes_left, self.visits_left, has_expired, entry_cost)
        turns = GroupTurns(queue, lines, journal, limits)
        for want, words in turns.pick(ring):
            queue = self._acquire(queue, [want], pack_words(words))
        self.bytes_left, self.visits_left = limits.size, limits.visits
        while turns.last is not None and ring[-1] is not turns.last:
            ring.rotate(-1)
        is_waiting = lines.restarts_scans and queue.id in self.demand.scanning
        return not (limits.is_spent or lines.is_stale or is_waiting)

    def _prepare_groups(self, queue: Queue, ring: Iterable[Want]) -> None:
        """Restart the scans that have passed messages which they may have now; note what holds groups back."""
        lines = self.demand.lines(queue.id, self.groups_max)
        lines.prepare(queue)
        self.visits_left = lines.note_delays(queue, self.visits_left)
        if lines.restarts_scans:
            lines.restarts_scans = False
            for want in ring:
                if want.scan is not None:
                    want.scan.restart()

    def _admits(self, queue: Queue, want: Want, entry: Entry, word: int) -> bool:
        """Return whether the group of a message is, or can be, that of a consumer."""
        lines = self.demand.lines(queue.id, self.groups_max) if queue.has_groups else None
        return lines is None or lines.admits(want.consumer, entry.group, word)

    def _before_expired(self, queue: Queue, words: bytes) -> bytes:
        """Return those of packed words that come before the first one that has expired."""
        if not queue.runs:
            times = queue.expiries.values_of([word >> 16 for word in unpack_words(words)])
            if not [time_us for time_us in times if 0 < time_us <= self.elapsed_us]:
                # The frequent case.
                return words
        for index, word in enumerate(unpack_words(words)):
            if self._has_expired(queue, word):
                for other in unpack_words(words[(index + 1) * WORD_BYTES :]):
                    self._has_expired(queue, other)
                return words[: index * WORD_BYTES]
        return words

    def _has_expired(self, queue: Queue, word: int) -> bool:
        """Return whether a message has expired, and note it."""
        if not 0 < queue.expiry_of(word) <= self.elapsed_us:
            return False
        self.expired.setdefault(queue.id, []).append(word)
        return True

    def _count_affordable(self, queue: Queue, words: bytes) -> int:
        """Return how many of packed `words` use up the budget, with the annotations that their deliveries rebuild."""
        spent, cost = 0, bool(queue.expiries.count)
        for count, word in enumerate(unpack_words(words), 1):
            spent += 1 + (entry_cost(queue.entries.get(word >> 16)) or cost)
            if spent >= self.budget:
                return count
        return len(words) // WORD_BYTES

    def _acquire(self, queue: Queue, wants: list[Want], words: bytes) -> Queue:
        consumers = tuple(map(_consumer_of, wants))
        event = Acquired(self.first_offset + len(self.events), self.now_us, queue.id, consumers, words)
        self.events.append(event)
        self.state = acquired(self.state, event)
        numbers = unpack_words(words)
        if len(wants) == 1:
            self._deliver(queue, wants[0], numbers)
        elif len(wants) == len(numbers):
            shares: dict[int, tuple[Want, list[int]]] = {}
            for want, word in zip(wants, numbers, strict=True):
                shares.setdefault(want.consumer, (want, []))[1].append(word)
            for want, share in shares.values():
                self._deliver(queue, want, tuple(share))
        else:
            for index, want in enumerate(wants):
                self._deliver(queue, want, numbers[index :: len(wants)])
        return self.state.queues[queue.id]

    def _deliver(self, queue: Queue, want: Want, share: tuple[int, ...]) -> None:
        entries: list[Entry | None] | None = None
        if queue.entries or queue.expiries.count:
            entries = queue.columns_of(share)
            if len(share) > 1 and any(entry is not None and entry.chunks for entry in entries):
                # Each large message is a delivery of its own, so that only one at a time is read and held.
                for word in share:
                    self._deliver(queue, want, (word,))
                return
        count = len(share)
        if want.settled:
            # The delivery also waits for its Settled event.
            after, offset = AT_CLOSE, self.first_offset + len(self.events)
            event = Settled(offset, self.now_us, queue.id, want.consumer, ACCEPTED, pack_words(share))
            self.events.append(event)
            before, self.state = self.state, settled(self.state, event)
            if self.demand.groups:
                note_groups(self.demand.groups, event, before, self.state)
        else:
            # The delivery waits for the publish record of its last message.
            after = (share[-1] >> 16) + 1
        effect = Deliver(want.consumer, want.link, queue.id, share, entries, want.settled, after)
        if entries is not None:
            effect.elapsed_us = self.elapsed_us
        if queue.settings.lock_ms and not want.settled:
            effect.lock_ms = queue.settings.lock_ms
            self.demand.has_locks = True
        self.effects.append(effect)
        want.held.append(effect)
        want.held_count += count
        want.credit -= count
        if want.rate is not None:
            # Else the time before this delivery would count for the next ones.
            want.rate.refill(self.elapsed_us)
            want.rate.take(count)
            if want.throttled and not want.credit:
                self.demand.starved.append(want)
        self.budget -= count if entries is None else count + sum(map(entry_cost, entries))

    def _serve_returned(self, queue: Queue, ring: deque[Want], priority: int) -> Queue:
        """Deliver the returned messages of a priority, some of which exclude consumers."""
        journal = self.demand.journal(queue.id)
        while not self.is_spent:
            some = [want for want in ring if want.credit > 0]
            is_prioritized = queue.id in self.demand.prioritized
            wants = deque(sorted(some, key=priority_of) if is_prioritized else some)
            cursors = [want.cursor(priority) for want in wants]
            visits = journal.ahead(queue, cursors, self.visits_left, priority) if wants else None
            if not visits or not visits.words:
                break
            picked = self._pick(queue, wants, visits, priority, is_prioritized=is_prioritized)
            if picked:
                queue = self._acquire_each(queue, picked)
                while ring[-1] is not picked[-1][1]:
                    ring.rotate(-1)
        return queue

    def _pick(
        self, queue: Queue, wants: deque[Want], visits: Visits, priority: int, *, is_prioritized: bool
    ) -> list[tuple[int, Want]]:
        """Return visited words, each with the next consumer in turn that it does not exclude; advance their walks.

        With `is_prioritized` it is always the first such consumer.
        """
        picked: list[tuple[int, Want]] = []
        credit = {want.consumer: want.credit for want in wants}
        budget, count = self.budget, 0
        for word in visits.words:
            count += 1
            entry = queue.entries.get(word >> 16)
            if (queue.expiries.count or queue.runs) and self._has_expired(queue, word):
                continue
            excluded = entry.excluded if entry else ()
            turn = next((turn for turn, want in enumerate(wants) if want.consumer not in excluded), None)
            if turn is None:
                continue
            if not is_prioritized:
                wants.rotate(-turn - 1)
                turn = len(wants) - 1
            want = wants[turn]
            picked.append((word, want))
            budget -= 1 + entry_cost(entry)
            self.bytes_left -= size_of(word)
            credit[want.consumer] -= 1
            if not credit[want.consumer]:
                # It passes no word behind its last one, since it may have that later.
                visits.passed(want.cursor(priority), count)
                del wants[turn]
            if not wants or budget <= 0 or self.bytes_left <= 0:
                break
        self.visits_left -= count
        for want in wants:
            visits.passed(want.cursor(priority), count)
        return picked

    def _acquire_each(self, queue: Queue, picked: list[tuple[int, Want]]) -> Queue:
        """Deliver words to their consumers by one event, whose consumers repeat if their turns do.

        The queue deals the words in the order of entries, so the event has them in that order.
        """
        words, wants = zip(*sorted(picked, key=itemgetter(0)), strict=True)
        turns = wants[: len(set(map(_consumer_of, wants)))]
        repeats = all(want is turn for want, turn in zip(wants, cycle(turns), strict=False))
        return self._acquire(queue, list(turns if repeats else wants), pack_words(words))

    def only_active(
        self, queue: Queue, ring: deque[Want] | None, scanning: deque[Want] | None
    ) -> tuple[deque[Want] | None, deque[Want] | None]:
        """Return the consumers of an exclusive queue that may get messages: the active one, or none."""
        first, active = self.demand.first_of(queue.id), self.demand.active.get(queue.id)
        self.drain_all(*[[one for one in some or () if one is not first] for some in (ring, scanning)])
        if active is None:
            return None, None
        alone = deque((active,))
        return (alone, None) if active.scan is None else (None, alone)

    def drain_all(self, *rings: Iterable[Want] | None) -> None:
        """Report to draining consumers that no message is available to them."""
        for ring in rings:
            for want in ring or ():
                self.drain(want)

    def drain(self, want: Want) -> None:
        """Report to a draining consumer that no message is available, and use up its credit.

        A message that its rate holds back is not available.
        """
        if want.draining and (want.credit > 0 or want.throttled):
            want.draining = False
            want.credit = want.throttled = 0
            self.effects.append(Drained(want.consumer, want.link))
