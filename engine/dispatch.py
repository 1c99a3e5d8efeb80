"""Ready messages meet consumers with credit: one delivery each in turn, exactly.

Rule 1. What came back is served before what is new, each in the order of entries.
Rule 2. Turns are exact: of k consumers with credit the i-th gets words[i::k]; the ring stands where it stopped, so the
        next turn is that of whoever follows the one served last.
Rule 3. An entry that a consumer has excluded (undeliverable-here) passes it by, and never blocks what stands behind it.
        What nobody here may have is looked through once, not again until something has changed.
Rule 4. Who takes not everything has a walk of its own (scanning.py), before the others, and never stands in their way.
Rule 5. A dispatch deals at most its budget of messages, and deals no more once that of bytes is used up: the message
        that takes it there is the last, so one always goes. A queue that has more stays dirty for the next tick, and so
        do those beyond as many queues, for to look at one where nobody may have anything is work too.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Sequence
from itertools import accumulate, islice

from msgspec import Struct

from engine.apply import apply
from engine.demand import Demand, Want
from engine.effects import AT_CLOSE, Deliver, Drained, Effect
from engine.entry import Entry
from engine.events import Acquired, Event, Settled
from engine.outcome import ACCEPTED
from engine.queue import Queue
from engine.routing.fields import Fields
from engine.scanning import Look, Scan
from engine.state import State
from engine.word import WORD_BYTES, pack_words, size_of, total_size, unpack_words

__all__ = ["Dispatched", "dispatch", "look_at_nothing"]


def look_at_nothing(_queue: int, words: Sequence[int], _entries: Sequence[Entry | None]) -> list[Fields | None]:
    """Return that no message can be read: nobody who selects gets any."""
    return [None for _ in words]


class Dispatched(Struct, frozen=True):
    """What a dispatch came to."""

    state: State
    events: list[Event]
    effects: list[Effect]


def dispatch(
    state: State,
    demand: Demand,
    now_us: int,
    next_offset: int,
    budget: int,
    bytes_max: int,
    look: Look = look_at_nothing,
    looks_max: int = 200,
) -> Dispatched:
    """Deal at most `budget` deliveries on the dirty queues, of `bytes_max` bytes or one message beyond them.

    `next_offset` is that of the first event. At most `looks_max` messages are looked at for those who select.
    """
    dealer = _Dealer(state, now_us, next_offset, budget, bytes_max)
    dealer.look, dealer.looks = look, looks_max
    for queue_id in list(islice(demand.dirty, budget)):
        if dealer.budget <= 0 or dealer.bytes_left <= 0:
            break
        queue = dealer.state.queues.get(queue_id)
        ring = demand.ring(queue_id)
        has_more = False
        scanning = demand.scanning.get(queue_id)
        if queue is not None and scanning:
            has_more = dealer.select(queue, scanning, demand)
            queue = dealer.state.queues[queue_id]
        if queue is None or not dealer.serve(queue, ring, demand):
            del demand.dirty[queue_id]
            if has_more:
                # Behind the other queues: they share what may be looked at.
                demand.dirty[queue_id] = None
            dealer.drain(ring)
    return Dispatched(dealer.state, dealer.events, dealer.effects)


class _Dealer:
    """One dispatch under way."""

    __slots__ = ("budget", "bytes_left", "effects", "events", "look", "looks", "next_offset", "now_us", "state")

    def __init__(self, state: State, now_us: int, next_offset: int, budget: int, bytes_left: int) -> None:
        self.state = state
        self.now_us = now_us
        self.next_offset = next_offset
        self.budget = budget
        self.bytes_left = bytes_left
        self.events: list[Event] = []
        self.effects: list[Effect] = []
        self.look: Look = look_at_nothing
        self.looks = 0

    def select(self, queue: Queue, ring: deque[Want], demand: Demand) -> bool:
        """Deal what consumers select from a queue; return whether they may have more in the next tick."""
        has_more = False
        for want in list(ring):
            if want.credit <= 0:
                continue
            scan = want.scan
            assert scan is not None
            while want.credit > 0 and (words := scan.ahead(queue, self.looks or 1)):
                if self.looks <= 0 or self.budget <= 0 or self.bytes_left <= 0:
                    has_more = True
                    break
                entries = [queue.entries.get(word >> 16) for word in words]
                fields = self.look(queue.id, words, entries)
                if fields is None:
                    demand.parked[queue.id] = None
                    break
                queue = self._select_among(queue, want, scan, list(zip(words, entries, fields, strict=False)))
            else:
                self.drain((want,))
        # Another one begins the next time.
        ring.rotate(-1)
        return has_more

    def _select_among(
        self, queue: Queue, want: Want, scan: Scan, seen: list[tuple[int, Entry | None, Fields | None]]
    ) -> Queue:
        """Deal those of the messages that a consumer wants, as far as its credit goes."""
        for word, entry, fields in seen:
            if want.credit <= 0 or self.budget <= 0 or self.bytes_left <= 0:
                break
            self.looks -= 1
            scan.pass_by(word, entry)
            is_wanted = fields is not None and scan.selector.matches(fields)
            if is_wanted and want.consumer not in (entry.excluded if entry else ()) and scan.is_there(queue, word):
                self.bytes_left -= size_of(word)
                queue = self._acquire(queue, [want], pack_words([word]))
        return queue

    def serve(self, queue: Queue, ring: deque[Want], demand: Demand) -> bool:
        """Deal what the queue has; return whether it may have more for the next tick."""
        if queue.exclusions and queue.returned.count:
            queue = self._serve_excluded(queue, ring, demand)
        while self.budget > 0 and self.bytes_left > 0:
            source = queue.returned if queue.returned.count and not queue.exclusions else queue.ready
            if not source.count:
                return False
            # A ring of one is the common case.
            wants = [want for want in ring if want.credit > 0] if len(ring) != 1 else [ring[0]] * (ring[0].credit > 0)
            if not wants:
                return False
            count = min(source.count, self.budget)
            count = min(count, wants[0].credit) if len(wants) == 1 else _fair_share(wants, count)
            words = source.head(count)
            size = total_size(words)
            if size >= self.bytes_left and count > 1:
                count = _count_within(words, self.bytes_left)
                count = count if len(wants) == 1 else _fair_share(wants, count)
                words = words[: count * WORD_BYTES]
                size = total_size(words)
            self.bytes_left -= size
            queue = self._acquire(queue, wants, words)
            last = wants[-1]
            while ring[-1] is not last:
                ring.rotate(-1)
        return True

    def _acquire(self, queue: Queue, wants: list[Want], words: bytes) -> Queue:
        consumers = (wants[0].consumer,) if len(wants) == 1 else tuple([want.consumer for want in wants])
        self._happened(Acquired(self.next_offset, self.now_us, queue.id, consumers, words))
        numbers = unpack_words(words)
        self.budget -= len(numbers)
        for turn, want in enumerate(wants):
            share = numbers if len(wants) == 1 else numbers[turn :: len(wants)]
            want.credit -= len(share)
            self._deliver(queue, want, share)
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
        # The delivery waits for the record that enqueued it; a settled one for its settlement too.
        after = AT_CLOSE if want.settled else max(share) // 65536 + 1
        effect = Deliver(want.consumer, want.link, queue.id, share, entries, want.settled, after)
        want.held.append(effect)
        want.held_count += len(share)
        self.effects.append(effect)
        if want.settled:
            words = pack_words(share)
            self._happened(Settled(self.next_offset, self.now_us, queue.id, want.consumer, ACCEPTED, words))

    def _serve_excluded(self, queue: Queue, ring: deque[Want], demand: Demand) -> Queue:
        # Entry by entry: seldom, because somebody said undeliverable-here.
        wants = [want for want in ring if want.credit > 0]
        if not wants or demand.is_in_vain(queue, wants):
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
            if not wants or self.budget <= 0 or self.bytes_left <= 0:
                return queue
        demand.note_in_vain(queue, wants)
        return queue

    def _happened(self, event: Event) -> None:
        self.state = apply(self.state, event)
        self.events.append(event)
        self.next_offset += 1

    def drain(self, ring: Iterable[Want]) -> None:
        """Tell the consumers that asked for it that nothing more is available."""
        for want in ring:
            if want.draining and want.credit > 0:
                want.draining = False
                want.credit = 0
                self.effects.append(Drained(want.consumer, want.link))


def _count_within(words: bytes, size: int) -> int:
    """Return how many of packed `words`, which account for `size` bytes at least, it takes to reach that."""
    return bisect_left(list(accumulate(map(size_of, unpack_words(words)))), size) + 1


def _fair_share(wants: list[Want], count: int) -> int:
    """Return how many words whole rounds over `wants` take; with less than a round, `wants` is cut to their number."""
    if count < len(wants):
        del wants[count:]
        return count
    rounds = min(count // len(wants), *[want.credit for want in wants])
    return rounds * len(wants)
