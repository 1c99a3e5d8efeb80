"""The dispatch: consumers with credit acquire available messages, one delivery each in turn.

Rule 1. Returned messages are served before new ones, both in the order of entries.
Rule 2. Turns are exact: of k consumers with credit the i-th gets words[i::k]. The ring keeps its position, so the
        consumer after the last served one is next.
Rule 3. A consumer that excluded an entry (undeliverable-here) is skipped for it, and the entry blocks no later
        entry. If no consumer may have any returned entry, they are not visited again until something has changed.
Rule 4. A consumer with a selector has its own scan (selector_scan.py), before the other consumers. If the scans use up
        a tick, the other consumers are served first in the queue's next one.
Rule 5. A dispatch delivers at most `budget` messages, and stops after the message that uses up the budget of bytes. So
        it always delivers one. A queue with more messages stays dirty for the next tick, after the others. At most
        `budget` queues are visited, because a visit without a delivery costs time too.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from itertools import accumulate, islice
from operator import attrgetter
from typing import final

from msgspec import Struct

from ambermq.engine.config import EngineConfig
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
    """Return None for each message: none can be read, so no selector matches."""
    return [None for _ in words]


def dispatch(
    state: State,
    demand: Demand,
    now_us: int,
    next_offset: int,
    config: EngineConfig,
    peek: Peek = peek_nothing,
) -> "Dispatch":
    """Return a dispatch on the dirty queues, within the limits of `config` for deliveries, bytes and selector peeks.

    One message may go beyond the limit of bytes. `next_offset` is the offset of the first event.
    """
    budget, bytes_max, peeks_max = config.dispatch_messages_max, config.dispatch_bytes_max, config.scan_messages_max
    result = Dispatch(state, demand, now_us, next_offset, budget, bytes_max, peek, peeks_max)
    for queue_id in list(islice(demand.dirty, budget)):
        if result.budget <= 0 or result.bytes_left <= 0:
            break
        queue = result.state.queues.get(queue_id)
        ring, scanning = demand.rings.get(queue_id), demand.scanning.get(queue_id)
        has_more = False
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
    events: list[Event] = []
    effects: list[Effect] = []

    @property
    def is_spent(self) -> bool:
        """Whether a budget is used up."""
        return self.budget <= 0 or self.bytes_left <= 0

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
                queue = self._deliver_matches(queue, want, scan, list(zip(words, entries, fields, strict=False)))
            else:
                self.drain(want)
        # Another consumer is first the next time.
        ring.rotate(-1)
        return has_more

    def _deliver_matches(
        self, queue: Queue, want: Want, scan: SelectorScan, seen: list[tuple[int, Entry | None, Fields | None]]
    ) -> Queue:
        """Deliver the messages that match a consumer's selector, until its credit or a budget is used up."""
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
        """Deliver the messages of a queue; return False if a budget ended it, True if messages or credit did."""
        if queue.exclusions and queue.returned.count:
            queue = self._serve_returned(queue, ring)
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
            for index, want in enumerate(wants):
                self._deliver(queue, want, numbers[index :: len(wants)])
        return self.state.queues[queue.id]

    def _deliver(self, queue: Queue, want: Want, share: tuple[int, ...]) -> None:
        entries: list[Entry | None] | None = None
        if queue.entries:
            entries = [queue.entries.get(word >> 16) for word in share]
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
            self.state = settled(self.state, event)
        else:
            # The delivery waits for the publish record of its last message.
            after = (share[-1] >> 16) + 1
        effect = Deliver(want.consumer, want.link, queue.id, share, entries, want.settled, after)
        self.effects.append(effect)
        want.held.append(effect)
        want.held_count += count
        want.credit -= count
        self.budget -= count

    def _serve_returned(self, queue: Queue, ring: deque[Want]) -> Queue:
        # Entry by entry, which is slow but rare: a consumer must have set undeliverable-here.
        wants = [want for want in ring if want.credit > 0]
        if not wants or self.is_spent or self.demand.are_excluded(queue, wants):
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
        self.demand.note_excluded(queue, wants)
        return queue

    def drain(self, want: Want) -> None:
        """Report to a draining consumer that no message is available, and use up its credit."""
        if want.draining and want.credit > 0:
            want.draining = False
            want.credit = 0
            self.effects.append(Drained(want.consumer, want.link))


def _count_within(words: bytes, size: int) -> int:
    """Return how many of packed `words` reach `size` bytes; together they have at least that size."""
    return bisect_left(list(accumulate(map(size_of, unpack_words(words)))), size) + 1


def _fair_share(wants: list[Want], count: int) -> int:
    """Return the number of words in whole rounds over `wants`. For less than one round, cut `wants` to that number."""
    if not wants:
        return 0
    if len(wants) > AUX_MAX:
        # A record cannot name more consumers. These have one turn, and the next record has the others.
        del wants[AUX_MAX:]
        count = min(count, AUX_MAX)
    if count < len(wants):
        del wants[count:]
        return count
    rounds = min(count // len(wants), *[want.credit for want in wants])
    return rounds * len(wants)
