"""Ready messages meet consumers with credit: one delivery each in turn, exactly.

Rule 1. What came back is served before what is new, each in the order of entries.
Rule 2. Turns are exact: of k consumers with credit the i-th gets words[i::k]; the ring stands where it stopped, so the
        next turn is that of whoever follows the one served last.
Rule 3. An entry that a consumer has excluded (undeliverable-here) passes it by, and never blocks what stands behind it.
        What nobody here may have is looked through once, not again until something has changed.
Rule 4. Who takes not everything has a walk of its own (scanning.py), before the others, and never stands in their way:
        where that uses up a tick, the others go first in the queue's next one.
Rule 5. A dispatch deals at most its budget of messages, and deals no more once that of bytes is used up: the message
        that takes it there is the last, so one always goes. A queue that has more stays dirty for the next tick, behind
        the others, and so do those beyond as many queues: to look at one where nobody may have anything is work too.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from itertools import accumulate, islice
from operator import attrgetter
from typing import final

from msgspec import Struct

from ambermq.engine.dispatch.demand import Demand, Want
from ambermq.engine.dispatch.selector_scan import Peek, SelectorScan
from ambermq.engine.effects import AT_CLOSE, Deliver, Drained, Effect
from ambermq.engine.events import Acquired, Event, Settled
from ambermq.engine.fold.apply import acquired, settled
from ambermq.engine.model.entry import Entry
from ambermq.engine.model.entry_word import WORD_BYTES, pack_words, size_of, total_size, unpack_words
from ambermq.engine.model.outcome import ACCEPTED
from ambermq.engine.model.queue import Queue
from ambermq.engine.model.state import State
from ambermq.engine.selectors.fields import Fields
from ambermq.log.format.record import AUX_MAX

__all__ = ["Dispatch", "dispatch", "peek_nothing"]

_consumer_of = attrgetter("consumer")


def peek_nothing(_queue: int, words: Sequence[int], _entries: Sequence[Entry | None]) -> list[Fields | None]:
    """Return that no message can be read: nobody who selects gets any."""
    return [None for _ in words]


def dispatch(
    state: State,
    demand: Demand,
    now_us: int,
    next_offset: int,
    budget: int,
    bytes_max: int,
    peek: Peek = peek_nothing,
    peeks_max: int = 200,
) -> "Dispatch":
    """Deal at most `budget` deliveries on the dirty queues, of `bytes_max` bytes or one message beyond them.

    `next_offset` is that of the first event. At most `peeks_max` messages are looked at for those who select.
    """
    dealt = Dispatch(state, demand, now_us, next_offset, budget, bytes_max, peek, peeks_max)
    for queue_id in list(islice(demand.dirty, budget)):
        if dealt.budget <= 0 or dealt.bytes_left <= 0:
            break
        queue = dealt.state.queues.get(queue_id)
        ring, scanning = demand.rings.get(queue_id), demand.scanning.get(queue_id)
        has_more = False
        if queue is not None and scanning:
            has_more = dealt.share(queue, scanning, ring)
            queue = dealt.state.queues[queue_id]
        if ring is not None:
            if queue is not None and not dealt.serve(queue, ring):
                # Behind the others the next time: one with endless credit would always have all.
                demand.dirty[queue_id] = demand.dirty.pop(queue_id)
                break
            for want in ring:
                if want.draining:
                    dealt.drain(want)
        del demand.dirty[queue_id]
        if has_more:
            # Behind the other queues: they share what may be looked at.
            demand.dirty[queue_id] = None
    return dealt


@final
class Dispatch(Struct):
    """A dispatch under way, and at its end what it came to: the state, the events in order, the effects."""

    state: State
    demand: Demand
    now_us: int
    first_offset: int
    """That of the first event; each is one record."""
    budget: int
    """Deliveries that are left to deal."""
    bytes_left: int
    peek: Peek
    peeks_left: int
    """Messages that may still be looked at."""
    events: list[Event] = []
    effects: list[Effect] = []

    @property
    def is_spent(self) -> bool:
        """Whether no more is dealt."""
        return self.budget <= 0 or self.bytes_left <= 0

    def share(self, queue: Queue, scanning: deque[Want], ring: deque[Want] | None) -> bool:
        """Deal what consumers select, the others first where they were passed over; return what `select` returns.

        The others are served behind it in any case: who went first has no credit then, or nothing left to get.
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
        """Deal what consumers select from a queue; return whether they may have more in the next tick."""
        has_more = False
        for want in list(ring):
            if want.credit <= 0:
                continue
            scan = want.scan
            assert scan is not None
            while want.credit > 0 and (words := scan.ahead(queue, self.peeks_left or 1)):
                if self.peeks_left <= 0 or self.is_spent:
                    has_more = True
                    break
                entries = [queue.entries.get(word >> 16) for word in words]
                fields = self.peek(queue.id, words, entries)
                if fields is None:
                    self.demand.parked[queue.id] = None
                    break
                queue = self._select_among(queue, want, scan, list(zip(words, entries, fields, strict=False)))
            else:
                self.drain(want)
        # Another one begins the next time.
        ring.rotate(-1)
        return has_more

    def _select_among(
        self, queue: Queue, want: Want, scan: SelectorScan, seen: list[tuple[int, Entry | None, Fields | None]]
    ) -> Queue:
        """Deal those of the messages that a consumer with credit wants, as far as that goes."""
        for word, entry, fields in seen:
            self.peeks_left -= 1
            scan.pass_by(word, entry)
            is_wanted = fields is not None and scan.selector.matches(fields)
            if is_wanted and want.consumer not in (entry.excluded if entry else ()) and scan.take(queue, word):
                self.bytes_left -= size_of(word)
                queue = self._acquire(queue, [want], pack_words([word]))
                if want.credit <= 0 or self.is_spent:
                    break
        return queue

    def serve(self, queue: Queue, ring: deque[Want]) -> bool:
        """Deal what the queue has; return whether it is done with: False where no more is dealt."""
        if queue.exclusions and queue.returned.count:
            queue = self._serve_excluded(queue, ring)
        while self.budget > 0 and self.bytes_left > 0:
            source = queue.returned if queue.returned.count and not queue.exclusions else queue.ready
            if not source.count:
                return True
            if len(ring) == 1:
                # The common case.
                want = ring[0]
                wants, count = [want], min(source.count, self.budget, want.credit)
            else:
                wants = [want for want in ring if want.credit > 0]
                count = _fair_share(wants, min(source.count, self.budget))
            if not count:
                return True
            words = source.head(count)
            size = total_size(words)
            if size >= self.bytes_left and count > 1:
                count = _fair_share(wants, _count_within(words, self.bytes_left))
                words = words[: count * WORD_BYTES]
                size = total_size(words)
            self.bytes_left -= size
            queue = self._acquire(queue, wants, words)
            last = wants[-1]
            while ring[-1] is not last:
                ring.rotate(-1)
        return False

    def _acquire(self, queue: Queue, wants: list[Want], words: bytes) -> Queue:
        consumers = tuple(map(_consumer_of, wants))
        event = Acquired(self.first_offset + len(self.events), self.now_us, queue.id, consumers, words)
        self.events.append(event)
        self.state = acquired(self.state, event)
        numbers = unpack_words(words)
        if len(wants) == 1:
            self._deliver(queue, wants[0], numbers)
        else:
            for turn, want in enumerate(wants):
                self._deliver(queue, want, numbers[turn :: len(wants)])
        return self.state.queues[queue.id]

    def _deliver(self, queue: Queue, want: Want, share: tuple[int, ...]) -> None:
        entries: list[Entry | None] | None = None
        if queue.entries:
            entries = [queue.entries.get(word >> 16) for word in share]
            if len(share) > 1 and any(entry is not None and entry.chunks for entry in entries):
                # A large message leaves by itself, so that no more than one is read back and held at a time.
                for word in share:
                    self._deliver(queue, want, (word,))
                return
        count = len(share)
        if want.settled:
            # The delivery waits for its settlement too.
            after, offset = AT_CLOSE, self.first_offset + len(self.events)
            event = Settled(offset, self.now_us, queue.id, want.consumer, ACCEPTED, pack_words(share))
            self.events.append(event)
            self.state = settled(self.state, event)
        else:
            # It waits for the record that enqueued its last message.
            after = (share[-1] >> 16) + 1
        effect = Deliver(want.consumer, want.link, queue.id, share, entries, want.settled, after)
        self.effects.append(effect)
        want.held.append(effect)
        want.held_count += count
        want.credit -= count
        self.budget -= count

    def _serve_excluded(self, queue: Queue, ring: deque[Want]) -> Queue:
        # Entry by entry: seldom, because somebody said undeliverable-here.
        wants = [want for want in ring if want.credit > 0]
        if not wants or self.is_spent or self.demand.is_in_vain(queue, wants):
            return queue
        for word in unpack_words(queue.returned.to_bytes()):
            entry = queue.entries.get(word >> 16)
            excluded = entry.excluded if entry else ()
            want = next((want for want in wants if want.consumer not in excluded), None)
            if want is None:
                continue
            self.bytes_left -= size_of(word)
            queue = self._acquire(queue, [want], pack_words([word]))
            while ring[-1] is not want:
                ring.rotate(-1)
            wants = [want for want in ring if want.credit > 0]
            if not wants or self.is_spent:
                return queue
        self.demand.note_in_vain(queue, wants)
        return queue

    def drain(self, want: Want) -> None:
        """Tell a consumer, where it asked for that, that nothing more is available."""
        if want.draining and want.credit > 0:
            want.draining = False
            want.credit = 0
            self.effects.append(Drained(want.consumer, want.link))


def _count_within(words: bytes, size: int) -> int:
    """Return how many of packed `words`, which account for `size` bytes at least, it takes to reach that."""
    return bisect_left(list(accumulate(map(size_of, unpack_words(words)))), size) + 1


def _fair_share(wants: list[Want], count: int) -> int:
    """Return how many words whole rounds over `wants` take; with less than a round, `wants` is cut to their number."""
    if not wants:
        return 0
    if len(wants) > AUX_MAX:
        # No record names more consumers: it is one turn of these, and the next ones follow.
        del wants[AUX_MAX:]
        count = min(count, AUX_MAX)
    if count < len(wants):
        del wants[count:]
        return count
    rounds = min(count // len(wants), *[want.credit for want in wants])
    return rounds * len(wants)
