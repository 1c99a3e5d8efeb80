"""Who wants how much, and whose turn it is: volatile, mutable, empty at the start.

Losing all of it changes no State; its choices enter history as Acquired events. Credit is demand: never logged.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Any, final

from ambermq.engine.dispatch.selector_scan import SelectorScan
from ambermq.engine.effects import Deliver
from ambermq.engine.model.queue import Queue
from ambermq.snapshot.persistent_queue import PersistentQueue

__all__ = ["Demand", "Want"]


@final
@dataclass(slots=True, eq=False)
class Want:
    """One consumer's wish."""

    consumer: int
    queue: int
    link: Any
    settled: bool = False
    """Deliveries leave settled: they count as accepted when they are dealt."""
    credit: int = 0
    """Deliveries that the gateway can still take; dealing them uses it up."""
    draining: bool = False
    """The consumer wants to hear when nothing more is available."""
    held: list[Deliver] = field(default_factory=list)
    """Runs dealt that have not left yet, in order."""
    held_count: int = 0
    """Deliveries in them."""
    after: int = 0
    """What its last delivery waits for; no later one waits for less."""
    scan: SelectorScan | None = None
    """Where it stands on the queue, when it takes not everything."""
    is_gone: bool = False
    """It has no turns any more, though it may stand in its ring still."""


@final
class Demand:
    """The wants of all consumers, in a ring a queue, and the queues that are worth a look.

    Who goes stays in its ring without credit until half of that has gone: looking for each of 100,000 would be minutes.
    """

    __slots__ = ("_gone", "_in_vain", "dirty", "parked", "passed_over", "rings", "scanning", "wants")

    def __init__(self) -> None:
        self.wants: dict[int, Want] = {}
        """By consumer."""
        self.dirty: dict[int, None] = {}
        """Queues where something became available or wanted, in order."""
        self.parked: dict[int, None] = {}
        """Queues of which messages must be read before it is known who wants them."""
        self.passed_over: set[int] = set()
        """Queues where those who take not everything used up a tick before the others: these go first in the next."""
        self.rings: dict[int, deque[Want]] = {}
        """By queue its consumers; whose turn it is stands first. Those that have gone have no credit."""
        self.scanning: dict[int, deque[Want]] = {}
        """The same of the consumers that take not everything."""
        self._gone: dict[tuple[int, bool], int] = {}
        """How many have gone and stand in the ring of a queue, of those who take everything or not."""
        self._in_vain: dict[int, tuple[PersistentQueue, frozenset[int]]] = {}

    def add(self, want: Want) -> None:
        """Let a consumer take turns on its queue, after the others."""
        self.wants[want.consumer] = want
        rings = self.rings if want.scan is None else self.scanning
        rings.setdefault(want.queue, deque()).append(want)

    def remove(self, consumer: int) -> Want | None:
        """Forget a consumer and return what it wanted, None when it is unknown."""
        want = self.wants.pop(consumer, None)
        if want is not None:
            want.credit, want.draining, want.is_gone = 0, False, True
            self._leave_ring(want)
        return want

    def _leave_ring(self, want: Want) -> None:
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
        self._in_vain.pop(want.queue, None)
        self.passed_over.discard(want.queue)

    def set_credit(self, consumer: int, credit: int, *, draining: bool = False) -> Want | None:
        """Say how many deliveries a consumer can take from now on, those held for it included; returns its wish."""
        want = self.wants.get(consumer)
        if want is not None:
            want.credit = max(credit - want.held_count, 0)
            want.draining = draining
        return want

    def touch(self, queue: int) -> None:
        """Note that something became available on a queue."""
        if queue in self.rings or queue in self.scanning:
            self.dirty[queue] = None

    def unpark(self) -> None:
        """Peek again at the queues of which messages had to be read."""
        parked, self.parked = self.parked, {}
        for queue in parked:
            self.touch(queue)

    def note_in_vain(self, queue: Queue, wants: list[Want]) -> None:
        """Remember that these consumers may have nothing of all that came back to a queue."""
        self._in_vain[queue.id] = queue.returned, frozenset([want.consumer for want in wants])

    def is_in_vain(self, queue: Queue, wants: list[Want]) -> bool:
        """Return whether it is known that these consumers may have nothing of what came back to a queue."""
        returned, consumers = self._in_vain.get(queue.id, (None, frozenset()))
        return returned is queue.returned and consumers.issuperset([want.consumer for want in wants])
