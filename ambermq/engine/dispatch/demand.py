"""The demand of consumers: their credit, and the order of their turns. It is volatile, mutable, and empty at the start.

Its loss changes no State. Its choices enter the log as Acquired events. Credit is demand, so it is never logged.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Any, Final, final

from ambermq.engine.commands import CutThrough
from ambermq.engine.dispatch.group_lines import GroupLines
from ambermq.engine.dispatch.returned_walk import ReturnedCursor, ReturnJournal
from ambermq.engine.dispatch.selector_scan import SelectorScan
from ambermq.engine.dispatch.token_bucket import TokenBucket
from ambermq.engine.effects import CutThroughEnded, Deliver
from ambermq.engine.entries.outcome import OutcomeKind
from ambermq.engine.entries.priority import PRIORITY_DEFAULT
from ambermq.engine.events import ConsumerDetached, Due, Event, Settled
from ambermq.engine.model.state import State

__all__ = ["RETURN_OUTCOMES", "Demand", "Want"]

RETURN_OUTCOMES: Final = (OutcomeKind.RELEASED, OutcomeKind.MODIFIED)
"""The outcomes that return messages to their queue."""


@final
@dataclass(slots=True, eq=False)
class Want:
    """The demand of one consumer."""

    consumer: int
    queue: int
    link: Any
    settled: bool = False
    """Deliveries leave settled: they count as accepted when they are acquired."""
    credit: int = 0
    """The deliveries that the gateway can still take. Each delivery uses up one."""
    draining: bool = False
    """The consumer drains: the engine reports when no message is available."""
    held: list[Deliver | CutThroughEnded] = field(default_factory=list)
    """Runs of deliveries that have not left yet, in order, and what completes a delivery that has begun."""
    held_count: int = 0
    """The number of deliveries in `held` that use credit."""
    after: int = 0
    """The offset that its last delivery waits for; no later delivery waits for a lower one."""
    scan: SelectorScan | None = None
    """The position of its selector's scan, None for a consumer without a selector."""
    returned: ReturnedCursor = field(default_factory=ReturnedCursor)
    """Its walk over returned messages while some of them exclude consumers; it is excluded from all that it passed."""
    cursors: dict[int, ReturnedCursor] = field(default_factory=dict)
    """The same for the messages of other priorities than the default one."""
    is_gone: bool = False
    """The consumer ended: it has no turns, but may still be in its ring."""
    may_cut_through: bool = True
    """Whether the delivery of a message may begin while that arrives."""
    priority: int = 0
    """Consumers with credit and a higher priority are served first."""
    rate: TokenBucket | None = None
    """What limits its messages by time; None without a limit."""
    throttled: int = 0
    """The credit that its rate holds back, beside `credit`."""

    def cursor(self, priority: int) -> ReturnedCursor:
        """Return its walk over the returned messages of a priority."""
        return self.returned if priority == PRIORITY_DEFAULT else self.cursors.setdefault(priority, ReturnedCursor())

    def grant(self, credit: int) -> None:
        """Set the credit; the part that the rate does not allow now is held back."""
        self.credit = credit if self.rate is None else max(min(credit, self.rate.available), 0)
        self.throttled = credit - self.credit

    def take_back(self, count: int) -> None:
        """Return the credit of messages that the consumer did not get."""
        if self.rate is not None:
            self.rate.take(-count)
        self.credit += count


@final
class Demand:
    """The demand of all consumers, with a ring for each queue, and the queues that a dispatch must visit.

    A consumer that ends stays in its ring without credit until half of the ring has ended. A search through the ring
    for each of 100,000 consumers would take minutes.
    """

    __slots__ = (
        *(
            "_first",
            "_gone",
            "active",
            "cut_throughs",
            "dirty",
            "has_locks",
            "groups",
            "journals",
            "parked",
            "passed_over",
            "prioritized",
            "rings",
            "scanning",
        ),
        *("starved", "untold", "wants"),
    )

    def __init__(self) -> None:
        self.wants: dict[int, Want] = {}
        """By consumer."""
        self.dirty: dict[int, None] = {}
        """Queues with new messages or new credit since their last dispatch, in order."""
        self.parked: dict[int, None] = {}
        """Queues whose selectors wait until messages are read from the disk."""
        self.passed_over: set[int] = set()
        """Queues whose selecting consumers used up a tick. The others are served first in the next one."""
        self.rings: dict[int, deque[Want]] = {}
        """Consumers without a selector, by queue; the first one has the next turn. Ended ones have no credit."""
        self.scanning: dict[int, deque[Want]] = {}
        """Consumers with a selector, by queue, in the same order."""
        self._gone: dict[tuple[int, bool], int] = {}
        """The number of ended consumers in a ring, by queue and by whether they have no selector."""
        self.journals: dict[int, ReturnJournal] = {}
        """The returns of the queues that have walks."""
        self.groups: dict[int, GroupLines] = {}
        """The groups of the queues whose messages have some."""
        self.prioritized: set[int] = set()
        """Queues with a consumer whose priority is not 0."""
        self._first: dict[int, Want] = {}
        """The consumer that attached first, by queue, where that was asked for."""
        self.active: dict[int, Want] = {}
        """The active consumers of exclusive queues, by queue; one may have ended since the last dispatch."""
        self.has_locks = False
        """Whether a delivery with a lock was dispatched since the start."""
        self.starved: list[Want] = []
        """The consumers whose rate holds back all of their credit since the last dispatch."""
        self.untold: dict[int, list[Want]] = {}
        """The consumers of exclusive queues that do not know yet whether they are active, by queue."""
        self.cut_throughs: dict[int, CutThrough] = {}
        """The deliveries of messages that arrive, one for each queue."""

    def add(self, want: Want) -> None:
        """Add a consumer at the end of its queue's ring."""
        self.wants[want.consumer] = want
        rings = self.rings if want.scan is None else self.scanning
        rings.setdefault(want.queue, deque()).append(want)
        if want.priority:
            self.prioritized.add(want.queue)

    def remove(self, consumer: int) -> Want | None:
        """Remove a consumer and return its demand, None if it is unknown."""
        want = self.wants.pop(consumer, None)
        if want is not None:
            want.credit, want.draining, want.is_gone = 0, False, True
            want.throttled = 0
            lines = self.groups.get(want.queue)
            if lines is not None:
                lines.note_gone(consumer)
            cut_through = self.cut_throughs.get(want.queue)
            if cut_through is not None and cut_through.consumer == consumer:
                self.end_cut_through(cut_through)
            self._remove_from_ring(want)
            # It may stay in its ring for long, and must not hold its link, which holds its whole connection.
            want.link = want.scan = None
        return want

    def end_cut_through(self, cut_through: CutThrough) -> None:
        """End a reservation. The message, if it comes, is one like the others of its queue, unless it is acquired."""
        if not cut_through.is_ended:
            cut_through.is_ended, cut_through.upload.cut_through = True, None
            del self.cut_throughs[cut_through.queue]

    def _remove_from_ring(self, want: Want) -> None:
        rings = self.rings if want.scan is None else self.scanning
        ring = rings[want.queue]
        if len(ring) > 1:
            key = (want.queue, want.scan is None)
            gone = self._gone[key] = self._gone.get(key, 0) + 1
            if gone * 2 < len(ring):
                return
            del self._gone[key]
            left = deque([one for one in ring if not one.is_gone])
            if left:
                rings[want.queue] = left
                return
        del rings[want.queue]
        if want.queue not in self.rings and want.queue not in self.scanning:
            self.journals.pop(want.queue, None)
            if want.queue in self.groups:
                # The groups themselves stay until all that their consumers held is back.
                self.groups[want.queue].forget_walk()
            self.prioritized.discard(want.queue)
            self._first.pop(want.queue, None)
            self.active.pop(want.queue, None)
            self.untold.pop(want.queue, None)
        self.passed_over.discard(want.queue)

    def first_of(self, queue: int) -> Want | None:
        """Return the consumer of a queue that attached first; None without one."""
        known = self._first.get(queue)
        if known is None or known.is_gone:
            both = (*self.rings.get(queue, ()), *self.scanning.get(queue, ()))
            known = min((one for one in both if not one.is_gone), key=lambda one: one.consumer, default=None)
            if known is None:
                self._first.pop(queue, None)
            else:
                self._first[queue] = known
        return known

    def await_active(self, want: Want) -> None:
        """Note a new consumer of an exclusive queue: the next dispatch says whether it is the active one."""
        self.untold.setdefault(want.queue, []).append(want)
        self.dirty[want.queue] = None

    def check_active(self, queue: int) -> None:
        """Mark a queue as dirty, whatever its consumers wait for: its active consumer may be another one."""
        if queue in self.rings or queue in self.scanning:
            self.dirty[queue] = None

    def touch(self, queue: int) -> None:
        """Mark a queue as dirty if it has consumers; a single consumer without credit needs no dispatch."""
        ring = self.rings.get(queue)
        if queue in self.scanning or (ring is not None and (len(ring) > 1 or ring[0].credit > 0)):
            self.dirty[queue] = None

    def unpark(self) -> None:
        """Mark the parked queues as dirty: their messages may have been read."""
        parked, self.parked = self.parked, {}
        for queue in parked:
            self.touch(queue)

    def restart_walks(self, queue: int) -> None:
        """Begin all walks of a queue anew: its messages have other places."""
        for want in (*self.rings.get(queue, ()), *self.scanning.get(queue, ())):
            want.returned, want.cursors = ReturnedCursor(), {}
            if want.scan is not None:
                want.scan.restart()

    def journal(self, queue: int) -> ReturnJournal:
        """Return the journal of a queue, for a walk."""
        known = self.journals.get(queue)
        if known is None:
            known = self.journals[queue] = ReturnJournal()
        return known

    def lines(self, queue: int, groups_max: int) -> GroupLines:
        """Return the groups of a queue."""
        known = self.groups.get(queue)
        if known is None:
            known = self.groups[queue] = GroupLines(groups_max)
        return known

    def note_returns(self, event: Event, state: State) -> None:
        """Note the messages that an event gives back to a queue; `state` is the state before it."""
        if type(event) is Settled:
            if event.outcome.kind in RETURN_OUTCOMES and event.queue in self.journals:
                self.journals[event.queue].note(event.words)
        elif type(event) is Due:
            if event.queue in self.journals:
                self.journals[event.queue].note(event.words)
        elif type(event) is ConsumerDetached and event.consumer in state.consumers:
            queue = state.queues.get(state.consumers[event.consumer].queue)
            if queue is not None and queue.id in self.journals:
                self.journals[queue.id].note(queue.held_by(event.consumer).to_bytes())
