"""The turns of consumers on a queue whose messages have groups: who gets which message next.

    the words that have come back    all visited first, and put into heaps
    a turn                           the consumer's own lines, then what is loose, then the walk over new messages

Rule 1. The walk is one for all consumers without selectors. It visits each message once, and passes those whose group
        another consumer has.
Rule 2. A turn gives one message. Of the consumers with credit those with the highest priority have turns, and the
        others when these can get nothing more.
Rule 3. The visits of a tick are limited. A message is offered only when all that have come back are visited: so the
        order of a group holds.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import final

from ambermq.engine.dispatch.demand import Want
from ambermq.engine.dispatch.group_lines import GroupLines, Place, priority_of, rank_of, word_of
from ambermq.engine.dispatch.returned_walk import ReturnJournal
from ambermq.engine.entries.entry import PLAIN, Entry
from ambermq.engine.entries.entry_word import WORD_BYTES, size_of, unpack_words
from ambermq.engine.model.queue import Queue

__all__ = ["GroupTurns", "TurnLimits"]


@dataclass(slots=True)
class TurnLimits:
    """What a tick may still deliver and visit."""

    messages: int
    size: int
    visits: int
    has_expired: Callable[[int], bool]
    """Whether an available word has expired, which it notes."""
    cost_of: Callable[[Entry], int]
    """What a delivery counts for beside itself."""

    @property
    def is_spent(self) -> bool:
        """Whether one of them is used up."""
        return self.messages <= 0 or self.size <= 0 or self.visits <= 0


@final
class GroupTurns:
    """The turns of one dispatch on one queue, which is the same value all the time."""

    def __init__(self, queue: Queue, lines: GroupLines, journal: ReturnJournal, limits: TurnLimits) -> None:
        self._queue = queue
        self._lines = lines
        self._journal = journal
        self._limits = limits
        self._picks: dict[int, list[int]] = {}
        """The words that each consumer gets, in the order of its turns."""
        self.last: Want | None = None
        """The consumer that had the last turn."""
        self._runs = {priority: deque[int]() for priority in queue.serving_order}
        """Words of the walk that are read and not visited, by priority."""
        lines.prepare(queue)

    def pick(self, ring: Iterable[Want]) -> Iterator[tuple[Want, list[int]]]:
        """Yield consumers of a ring, each with words that it acquires, in rising order."""
        wants = {want.consumer: want for want in ring if want.credit > 0}
        if wants and self._visit_returned():
            self._lines.compact_shunned()
            attached = [want.consumer for want in ring if not want.is_gone]
            for tier in _tiers(wants.values()):
                self._take_turns(tier, attached)
        for consumer, words in self._picks.items():
            for run in _rising_runs(words):
                yield wants[consumer], run

    def _take_turns(self, tier: deque[Want], attached: Sequence[int]) -> None:
        """Deliver to consumers one message each in turn, until there is none for them, or no credit."""
        idle: list[Want] = []
        while tier and not self._limits.is_spent:
            want = tier.popleft()
            if not self._serve(want.consumer, attached):
                idle.append(want)
                continue
            self.last = want
            if self._lines.loose:
                # The message has ended the binding of its group: others may have what waits.
                tier.extend(idle)
                idle.clear()
            if len(self._picks[want.consumer]) < want.credit:
                tier.append(want)

    def _visit_returned(self) -> bool:
        """Visit all messages that have come back; return whether that is done."""
        queue, lines, limits = self._queue, self._lines, self._limits
        limits.visits = lines.note_delays(queue, limits.visits)
        if limits.visits <= 0:
            return False
        for priority in queue.serving_order:
            place = lines.places.setdefault(priority, Place())
            if not queue.available_of(priority)[0].count:
                continue
            while True:
                visits = self._journal.ahead(queue, [place.returned], max(limits.visits, 1), priority)
                if not visits.words:
                    break
                for word in visits.words:
                    self._visit(word, priority)
                visits.passed(place.returned, len(visits.words))
                if limits.visits <= 0:
                    return False
        return True

    def _visit(self, word: int, priority: int) -> None:
        self._limits.visits -= 1
        self._lines.park(self._queue.entries.get(word >> 16, PLAIN).group, rank_of(priority, word))

    def _serve(self, consumer: int, attached: Sequence[int]) -> bool:
        """Deliver to a consumer its next message; return whether there is one."""
        while not self._limits.is_spent:
            if self._lines.shunned and self._serve_shunned(consumer):
                return True
            ahead = self._ahead()
            own, loose = self._lines.own_head(consumer), self._loose_head()
            best = min([rank for rank in (own, loose) if rank is not None], default=None)
            if best is not None and (ahead is None or best < ahead):
                is_own = own is not None and own == best
                if self._serve_own(consumer, best) if is_own else self._serve_loose(consumer, attached):
                    return True
            elif ahead is None:
                return False
            elif self._walk(consumer, priority_of(ahead)):
                return True
        return False

    def _serve_own(self, consumer: int, rank: int) -> bool:
        """Deliver to a consumer the head of one of its own lines, or pass it; return whether it got the message."""
        lines, word = self._lines, word_of(rank)
        entry = self._queue.entries.get(word >> 16, PLAIN)
        # Not by the group of the entry: a message that has left the queue has none.
        line = lines.own_line(consumer)
        lines.take_head(line)
        self._limits.visits -= 1
        if not self._is_offered(word, entry):
            return False
        if consumer in entry.excluded:
            lines.parked.add(word)
            line.excluding.append(rank)
            return False
        lines.deliver(line, word, entry.group)
        self._give(word, entry, consumer)
        return True

    def _loose_head(self) -> int | None:
        loose, lines = self._lines.loose, self._lines.lines
        while loose:
            rank, key = loose[0]
            line = lines.get(key) if key else None
            if (not key and word_of(rank) in self._lines.parked) or (
                line is not None and not line.owner and self._lines.is_head(line, rank)
            ):
                return rank
            self._lines.pop_loose()
        return None

    def _serve_loose(self, consumer: int, attached: Sequence[int]) -> bool:
        """Deliver to a consumer what is loose, or pass it; return whether it got a message."""
        rank, key = self._lines.pop_loose()
        self._limits.visits -= 1
        word = word_of(rank)
        entry = self._queue.entries.get(word >> 16, PLAIN)
        if not self._queue_has(word, entry):
            self._drop(rank, key)
            return False
        if consumer in entry.excluded and (not key or any(one not in entry.excluded for one in attached)):
            self._lines.shunned.append((rank, key))
            return False
        return self._take(rank, key, entry, consumer)

    def _serve_shunned(self, consumer: int) -> bool:
        """Deliver to a consumer one of the messages that others could not take; return whether there was one."""
        lines = self._lines
        index = lines.shunned_seen.get(consumer, 0)
        while index < len(lines.shunned) and not self._limits.is_spent:
            one = lines.shunned[index]
            index += 1
            lines.shunned_seen[consumer] = index
            if one is None:
                continue
            self._limits.visits -= 1
            rank, key = one
            word = word_of(rank)
            entry = self._queue.entries.get(word >> 16, PLAIN)
            line = lines.lines.get(key) if key else None
            is_there = word in lines.parked if not key else line is not None and not line.owner
            if line is not None and not lines.is_head(line, rank):
                is_there = False
            if not is_there or not self._queue_has(word, entry):
                lines.shunned[index - 1] = None
            elif consumer not in entry.excluded:
                lines.shunned[index - 1] = None
                if self._take(rank, key, entry, consumer):
                    return True
        return False

    def _take(self, rank: int, key: int, entry: Entry, consumer: int) -> bool:
        """Deliver to a consumer a loose message, or the first one of a loose line that does not exclude it."""
        if key:
            # Its next turn, which comes at once, serves it.
            self._lines.bind(self._lines.lines[key], consumer)
            return False
        word = word_of(rank)
        self._lines.parked.discard(word)
        if not self._is_offered(word, entry):
            return False
        self._give(word, entry, consumer)
        return True

    def _drop(self, rank: int, key: int) -> None:
        """Drop a loose message that is not there any more."""
        line = self._lines.lines.get(key) if key else None
        if line is not None and self._lines.is_head(line, rank):
            self._lines.take_head(line)
        self._lines.parked.discard(word_of(rank))

    def _ahead(self) -> int | None:
        """Return the rank of the next message that the walk has not visited; None without one."""
        for priority, run in self._runs.items():
            if run:
                return rank_of(priority, run[0])
            place = self._lines.places.setdefault(priority, Place())
            words = self._queue.available_of(priority)[1].run_above(place.position)
            if words:
                run.extend(unpack_words(words[: self._limits.visits * WORD_BYTES]))
                return rank_of(priority, run[0])
        return None

    def _walk(self, consumer: int, priority: int) -> bool:
        """Visit the next message of a priority; return whether the consumer got it."""
        lines, word = self._lines, self._runs[priority].popleft()
        lines.places[priority].position = word
        self._limits.visits -= 1
        entry = self._queue.entries.get(word >> 16, PLAIN)
        if not entry.group:
            if self._has_expired(word):
                return False
            self._give(word, entry, consumer)
            return True
        line = lines.line(entry.group)
        if line.owner in (0, consumer) and not line.waiting and not line.delayed and word not in lines.parked:
            if self._has_expired(word):
                return False
            if not line.owner:
                lines.bind(line, consumer)
            lines.deliver(line, word, entry.group)
            self._give(word, entry, consumer)
            return True
        lines.park(entry.group, rank_of(priority, word))
        return False

    def _give(self, word: int, entry: Entry, consumer: int) -> None:
        self._limits.messages -= 1 + self._limits.cost_of(entry)
        self._limits.size -= size_of(word)
        self._picks.setdefault(consumer, []).append(word)

    def _is_offered(self, word: int, entry: Entry) -> bool:
        """Return whether a message is available and has not expired."""
        return self._queue_has(word, entry) and not self._has_expired(word)

    def _has_expired(self, word: int) -> bool:
        queue = self._queue
        return bool(queue.expiries.count or queue.runs) and self._limits.has_expired(word)

    def _queue_has(self, word: int, entry: Entry) -> bool:
        queue = self._queue
        # What waited while the queue had no priorities is among those of the default one.
        priorities = {entry.priority, PLAIN.priority} if queue.levels else (PLAIN.priority,)
        return any(words.holds(word) for one in priorities for words in queue.available_of(one))


def _tiers(wants: Iterable[Want]) -> list[deque[Want]]:
    """Return consumers by their priority, the highest first, in their order."""
    tiers: dict[int, deque[Want]] = {}
    for want in wants:
        tiers.setdefault(want.priority, deque()).append(want)
    return [tiers[priority] for priority in sorted(tiers, reverse=True)]


def _rising_runs(words: Sequence[int]) -> Iterator[list[int]]:
    """Yield words in runs that rise."""
    run: list[int] = []
    for word in words:
        if run and word < run[-1]:
            yield run
            run = []
        run.append(word)
    if run:
        yield run
