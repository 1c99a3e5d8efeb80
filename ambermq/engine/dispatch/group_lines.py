"""The groups of a queue's messages: which consumer has which, and the messages that wait for it.

    line      one group: its owner, a heap of the messages that were passed, what its owner holds, what is delayed
    loose     a heap: lines without an owner, and messages that have come back and have no group
    shunned   the same, of those that a consumer with a turn could not take, since they exclude it

Rule 1. A group is bound to the consumer that gets its first message, until no message of the group is left on the
        queue, or until that consumer has gone and what it held is back. Then the next one that gets a message has it.
Rule 2. A message is passed once: it is put into the heap of its line, and served from there. A message that excludes
        the owner waits aside until the group has another one. An owner with a selector finds its messages by its scan
        alone; if it loses a group of which messages were passed, walk and scans begin anew.
Rule 3. While a message of a group waits for its redelivery the line offers nothing.
Rule 4. At most `groups_max` groups have lines of their own. Further ones share 256 lines by their hash, and such a
        line ends with its owner only.
Rule 5. All of this is demand: a start has no binding, but of what suspended links hold. What is missing or too old here
        makes the next walk begin anew, and never delivers a message that is not available.
"""

from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Final, final

from ambermq.engine.dispatch.returned_walk import ReturnedCursor
from ambermq.engine.entries.entry import PLAIN, Entry
from ambermq.engine.entries.entry_word import unpack_words
from ambermq.engine.entries.group import ends_binding, group_of
from ambermq.engine.entries.priority import PRIORITY_MAX
from ambermq.engine.model.queue import Queue
from ambermq.snapshot.persistent_map import PersistentMap

__all__ = ["GroupLines", "Line", "Place", "priority_of", "rank_of", "word_of"]

_SHARED: Final = 256
_STALE_MAX: Final = 1024
_RANK_SHIFT: Final = 64

Rank = int
"""The place of a message in the order of its line: the highest priority first, then by arrival."""


def rank_of(priority: int, word: int) -> Rank:
    """Return the rank of a message."""
    return (PRIORITY_MAX - priority) << _RANK_SHIFT | word


def priority_of(rank: Rank) -> int:
    """Return the priority of a message by its rank."""
    return PRIORITY_MAX - (rank >> _RANK_SHIFT)


def word_of(rank: Rank) -> int:
    """Return the word of a message by its rank."""
    return rank & ((1 << _RANK_SHIFT) - 1)


@final
@dataclass(slots=True, eq=False)
class Line:
    """The messages of one group, or of several that share a line."""

    key: int
    """The group; negative if several share it."""
    owner: int = 0
    """The consumer that has the group; 0 for none."""
    waiting: list[Rank] = field(default_factory=list)
    """A heap of its messages that were passed."""
    excluding: list[Rank] = field(default_factory=list)
    """Those of them that exclude the owner."""
    held: set[int] = field(default_factory=set)
    """The words that its owner holds since it has the group."""
    delayed: set[int] = field(default_factory=set)
    """The words that wait for their redelivery."""
    is_leaving: bool = False
    """Its owner loses it as soon as it holds nothing of it."""
    is_walked: bool = False
    """The walk has passed messages of it that are in no heap, for its owner's scan finds them."""
    is_scanned: bool = False
    """The scan of a selector has passed messages of it that it selects."""


@dataclass(slots=True)
class Place:
    """The position of the walk in the messages of one priority."""

    position: int = -1
    """The last visited word that was never acquired."""
    returned: ReturnedCursor = field(default_factory=ReturnedCursor)


@final
class GroupLines:
    """The lines of one queue."""

    __slots__ = (
        *("_groups_max", "_ready", "gone", "is_stale", "lines", "lines_of", "loose", "parked", "places"),
        *("restarts_scans", "selecting", "shunned", "shunned_seen", "stale_count", "visited_delays"),
    )

    def __init__(self, groups_max: int) -> None:
        self._groups_max = groups_max
        self.lines: dict[int, Line] = {}
        self.lines_of: dict[int, dict[int, Line]] = {}
        """The lines of each consumer."""
        self._ready: dict[int, list[tuple[Rank, int]]] = {}
        """A heap for each consumer: the heads of its lines that it may have now, with their keys."""
        self.loose: list[tuple[Rank, int]] = []
        """A heap of heads of lines without an owner; the key 0 for a message without a group."""
        self.shunned: list[tuple[Rank, int] | None] = []
        self.shunned_seen: dict[int, int] = {}
        """How many of these each consumer has seen."""
        self.parked: set[int] = set()
        """The words in heaps."""
        self.places: dict[int, Place] = {}
        """The positions of the walk, by priority."""
        self.visited_delays = -1
        """The last delayed word that was visited; later ones are noted when they become delayed."""
        self.gone: list[int] = []
        """The consumers that have ended, and may hold messages still."""
        self.selecting: set[int] = set()
        """The consumers with selectors that have lines. Their scans find the messages, so the walk only passes them."""
        self.stale_count = 0
        self.is_stale = False
        """Whether the walk begins anew."""
        self.restarts_scans = False
        """Whether the scans of selectors begin anew: they have passed messages whose group has no owner now."""

    # Events.

    def note_back(self, entries: "PersistentMap[int, Entry]", queue: Queue, words: bytes, *, are_delayed: bool) -> None:
        """Note words that a consumer does not hold any more; `entries` has their columns, `queue` is the one after."""
        for word in unpack_words(words):
            line = self._known(entries.get(word >> 16, PLAIN).group)
            if line is None:
                continue
            line.held.discard(word)
            if are_delayed:
                line.delayed.add(word)
            elif line.key > 0 and line.key not in queue.groups:
                self._end(line)
                continue
            if line.is_leaving and not line.held:
                self.unbind(line)

    def note_due(self, entries: "PersistentMap[int, Entry]", words: bytes) -> None:
        """Note words that do not wait for their redelivery any more."""
        for word in unpack_words(words):
            line = self._known(entries.get(word >> 16, PLAIN).group)
            if line is not None:
                self._wake(line, word)

    def note_removed(self, entries: "PersistentMap[int, Entry]", queue: Queue, words: bytes) -> None:
        """Note words that wait no more, without a delivery."""
        self.note_due(entries, words)
        self.note_back(entries, queue, words, are_delayed=False)
        self.parked.difference_update(unpack_words(words))
        self.stale_count += len(words)
        if self.stale_count > max(_STALE_MAX, len(self.parked)):
            self.is_stale = True

    def note_gone(self, consumer: int) -> None:
        """Note a consumer that has ended."""
        self._ready.pop(consumer, None)
        self.shunned_seen.pop(consumer, None)
        if consumer in self.lines_of:
            self.gone.append(consumer)

    def note_resumed(self, link: int, successor: int, *, selects: bool) -> None:
        """Note a consumer that goes on with what a suspended link holds, and with its groups."""
        lines, had_selector = self.lines_of.pop(link, {}), link in self.selecting
        self.selecting.discard(link)
        self.gone = [one for one in self.gone if one != link]
        for line in lines.values():
            line.is_walked |= selects and bool(line.waiting or line.excluding)
            for rank in line.excluding:
                heappush(line.waiting, rank)
            line.excluding.clear()
            if selects:
                self._forget_heap(line)
            self.bind(line, successor)
        if lines and selects:
            self.selecting.add(successor)
        # Without a selector only the walk finds what the scan of the link would have found.
        self.is_stale |= had_selector and not selects

    def note_kept(self, link: int, queue: Queue) -> None:
        """Note a link that has kept what it holds over a start: its groups are bound to it as before."""
        for word in sorted(unpack_words(queue.held_by(link).to_bytes())):
            code = queue.entries.get(word >> 16, PLAIN).group
            line = self.line(code) if code else None
            if line is not None and line.owner in (0, link):
                if not line.owner:
                    self.bind(line, link)
                self.deliver(line, word, code)
        self.note_gone(link)

    def note_attached(self) -> None:
        """Note a new consumer that takes groups of the others, as soon as nothing of them is out."""
        for line in list(self.lines.values()):
            line.is_leaving = line.owner > 0
            if line.is_leaving and not line.held:
                self.unbind(line)

    # The walk.

    def prepare(self, queue: Queue) -> None:
        """Unbind the groups of consumers that have ended and hold nothing, and begin anew if that is due."""
        if self.gone:
            left = [consumer for consumer in self.gone if consumer in queue.acquired]
            for consumer in set(self.gone).difference(left):
                for line in list(self.lines_of[consumer].values()):
                    self.unbind(line)
                del self.lines_of[consumer]
                self._ready.pop(consumer, None)
                self.selecting.discard(consumer)
            self.gone = left
        if self.is_stale:
            self._restart(queue)

    def note_delays(self, queue: Queue, visits: int) -> int:
        """Note the messages that wait for their redelivery; return how many visits are left, 0 or less for not all."""
        while run := queue.delayed.run_above(self.visited_delays):
            for word in unpack_words(run):
                visits -= 1
                if code := queue.entries.get(word >> 16, PLAIN).group:
                    self.line(code).delayed.add(word)
            self.visited_delays = word
            if visits <= 0:
                break
        return visits

    def park(self, code: int, rank: Rank) -> None:
        """Put a visited message into its heap."""
        word = word_of(rank)
        if word in self.parked:
            return
        if not code:
            self.parked.add(word)
            heappush(self.loose, (rank, 0))
            return
        line = self.line(code)
        if line.owner in self.selecting:
            line.is_walked = True
            return
        self.parked.add(word)
        heappush(line.waiting, rank)
        if line.waiting[0] == rank:
            self.offer(line)

    def offer(self, line: Line) -> None:
        """Offer the head of a line to its owner, or to all."""
        if line.delayed or not line.waiting:
            return
        head = (line.waiting[0], line.key)
        heappush(self._ready.setdefault(line.owner, []) if line.owner else self.loose, head)

    def line(self, code: int) -> Line:
        """Return the line of a message with a group; a new one if there is none."""
        line = self._known(code)
        if line is None:
            group = group_of(code)
            key = group if len(self.lines) < self._groups_max else _shared_key(group)
            line = self.lines[key] = Line(key)
        return line

    def own_head(self, consumer: int) -> Rank | None:
        """Return the first message that waits for a consumer which has its group."""
        ready = self._ready.get(consumer)
        while ready:
            rank, key = ready[0]
            line = self.lines.get(key)
            if line is not None and line.owner == consumer and self.is_head(line, rank):
                return rank
            heappop(ready)
        return None

    def own_line(self, consumer: int) -> Line:
        """Return the line whose head `own_head` has just returned."""
        return self.lines[self._ready[consumer][0][1]]

    def is_head(self, line: Line, rank: Rank) -> bool:
        """Return whether a line offers a message now."""
        return bool(line.waiting) and line.waiting[0] == rank and not line.delayed

    def take_head(self, line: Line) -> Rank:
        """Remove the head of a line, and offer the next one."""
        rank = heappop(line.waiting)
        self.parked.discard(word_of(rank))
        self.offer(line)
        return rank

    def bind(self, line: Line, consumer: int) -> None:
        """Assign a line to a consumer."""
        line.owner = consumer
        self.lines_of.setdefault(consumer, {})[line.key] = line
        self.offer(line)

    def unbind(self, line: Line) -> None:
        """Remove a line from its owner."""
        owner, line.owner, line.is_leaving = line.owner, 0, False
        lines = self.lines_of.get(owner)
        if lines is not None:
            lines.pop(line.key, None)
        line.held.clear()
        for rank in line.excluding:
            heappush(line.waiting, rank)
        line.excluding.clear()
        self.is_stale |= line.is_walked
        self.restarts_scans |= line.is_scanned
        line.is_walked = line.is_scanned = False
        if line.waiting or line.delayed:
            self.offer(line)
        else:
            self.lines.pop(line.key, None)

    def admits(self, consumer: int, code: int, word: int) -> bool:
        """Return whether a consumer with a selector may have a message that it selects; then it has its group."""
        line = self.line(code)
        if line.delayed or line.owner not in (0, consumer):
            line.is_scanned = True
            return False
        if not line.owner:
            # Its scan finds the other messages.
            line.is_walked |= bool(line.waiting)
            self._forget_heap(line)
            self.selecting.add(consumer)
            self.bind(line, consumer)
        self.deliver(line, word, code)
        return True

    def deliver(self, line: Line, word: int, code: int) -> None:
        """Note that the owner of a line gets a message of it."""
        line.held.add(word)
        if ends_binding(code):
            self.unbind(line)

    def pop_loose(self) -> tuple[Rank, int]:
        """Remove and return the first of what is loose."""
        return heappop(self.loose)

    def _forget_heap(self, line: Line) -> None:
        self.parked.difference_update(map(word_of, line.waiting))
        line.waiting.clear()

    def _known(self, code: int) -> Line | None:
        if not code:
            return None
        group = group_of(code)
        return self.lines.get(group) or self.lines.get(_shared_key(group))

    def _wake(self, line: Line, word: int) -> None:
        if word in line.delayed:
            line.delayed.discard(word)
            if not line.delayed:
                self.offer(line)
                self.restarts_scans |= line.is_scanned
                line.is_scanned = False

    def _end(self, line: Line) -> None:
        """End a line none of whose messages are left."""
        self.lines.pop(line.key, None)
        lines = self.lines_of.get(line.owner)
        if lines is not None:
            lines.pop(line.key, None)
        self._forget_heap(line)

    def _restart(self, queue: Queue) -> None:
        """Begin the walk anew; the bindings stay."""
        self.forget_walk()
        self.is_stale = False
        for line in list(self.lines.values()):
            line.delayed = {word for word in line.delayed if queue.delayed.holds(word)}
            is_over = line.key > 0 and line.key not in queue.groups
            if is_over or not (line.owner or line.delayed):
                self._end(line)

    def forget_walk(self) -> None:
        """Forget what the walk has visited."""
        self.is_stale, self.stale_count = True, 0
        for known in (self.loose, self._ready, self.shunned, self.shunned_seen, self.parked, self.places):
            known.clear()
        for line in self.lines.values():
            line.waiting.clear()
            line.excluding.clear()
            line.is_walked = False

    def compact_shunned(self) -> None:
        """Drop what was taken of the shunned ones, if that is more than half."""
        left: list[tuple[Rank, int] | None] = [one for one in self.shunned if one is not None]
        if 2 * len(left) < len(self.shunned):
            self.shunned = left
            self.shunned_seen.clear()


def _shared_key(group: int) -> int:
    return -1 - group % _SHARED
