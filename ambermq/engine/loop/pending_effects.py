"""The effects that wait for a sync: one queue, in the order of ticks.

Rule 1. A promise waits for the end of its tick, a delivery for the record that enqueued its message.
Rule 2. On a link no delivery overtakes another: it waits at least as long as the previous one.
Rule 3. A message that was not published as durable waits for no sync.
Rule 4. One sync may release the effects of many ticks. They leave in parts, each of the work of about one tick. While a
        part is left, no later effect overtakes it. A later effect that needs no sync leaves immediately after it.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Final, final

from ambermq.engine.dispatch.demand import Demand
from ambermq.engine.effects import (
    AT_CLOSE,
    ActiveChanged,
    Answered,
    ConsumerReady,
    CutThroughBegun,
    CutThroughEnded,
    Deliver,
    Drained,
    Effect,
    OutcomeApplied,
    ProducerReady,
    ProducersEnded,
    RefusedCommand,
)
from ambermq.engine.loop.volatile_ranges import VolatileRanges

__all__ = ["PendingEffects"]


_FEW: Final = 4
"""So many effects are not measured: a tick has at most 2,000 deliveries."""
_WORK_MAX: Final = 2000
"""The work of one part, in deliveries. So one turn of the event loop carries out about as much as one tick decides."""
_WORK: Final[Mapping[type, int]] = {ConsumerReady: 32, ProducerReady: 32, Answered: 32, RefusedCommand: 32}
"""The work of an effect by its type; 8 for the others."""
_WORK_OF_ROW: Final = 2
_ORDERED: Final = (Deliver, Drained, ActiveChanged, OutcomeApplied, CutThroughBegun, CutThroughEnded)
"""The effects that keep their order on a link. An outcome has no consumer if no delivery waits for it."""
_Ordered = ActiveChanged | CutThroughBegun | CutThroughEnded | Deliver | Drained | OutcomeApplied


def _work_of(effect: Effect) -> int:
    """Return the work of carrying out an effect, in deliveries."""
    if type(effect) is Deliver:
        return len(effect.words)
    if type(effect) is ProducersEnded:
        return 8 * len(effect.producers)
    work = _WORK.get(type(effect), 8)
    if type(effect) is Answered and isinstance(effect.value, dict):
        work += _WORK_OF_ROW * len(effect.value.get("results", ()))
    return work


@final
class PendingEffects:
    """The effects that were decided and written, and wait for a sync."""

    __slots__ = ("_demand", "_ready_queue", "is_late", "last_after", "queue", "volatile")

    def __init__(self, demand: Demand) -> None:
        self._demand = demand
        self.last_after = 0
        """The `after` of the last effect in the queue."""
        self.is_late = False
        """Whether effects that may leave are still in the queue: the next part of a release."""
        self.queue: deque[Effect] = deque()
        """The effects in the order in which they leave; their `after` never falls. If it is empty, no effect waits."""
        self._ready_queue: deque[Effect] = deque()
        """The effects that came while a part was left and need no sync; `after` is the durable end at that time.

        They leave after the effects of `queue` that were durable then, and before the others.
        """
        self.volatile = VolatileRanges()
        """The messages of rule 3, by their offsets."""

    def add(self, effects: Sequence[Effect], log_end: int, durable_end: int) -> list[Effect]:
        """Queue the effects that wait for the disk, at the end of their tick; return the others, which leave now."""
        ready: list[Effect] = []
        for effect in effects:
            after = effect.after
            if after == AT_CLOSE:
                after = log_end
            # If the queue is empty, no earlier delivery of the link waits.
            if (after > durable_end or self.queue) and isinstance(effect, _ORDERED):
                after = self._delivery_after(effect, after, durable_end)
            if after <= durable_end:
                if self.is_late:
                    effect.after = durable_end
                    self._ready_queue.append(effect)
                else:
                    ready.append(effect)
            else:
                self.last_after = effect.after = max(after, self.last_after)
                self.queue.append(effect)
        return ready

    def release(self, durable_end: int) -> list[Effect]:
        """Return the effects that a durable end releases, or the next part of them."""
        if self.volatile.ends:
            self.volatile.forget_below(durable_end)
        queue, ready_queue = self.queue, self._ready_queue
        if self.last_after <= durable_end and len(queue) <= _FEW and not ready_queue:
            # All effects leave: the usual case of a quiet log.
            ready: list[Effect] = list(queue)
            queue.clear()
            self.is_late = False
            return ready
        ready, work_left = [], _WORK_MAX
        while queue and work_left > 0:
            # Of two that are equal, the one in `queue` was durable when the other one came.
            first = ready_queue if ready_queue and ready_queue[0].after < queue[0].after else queue
            if first[0].after > durable_end:
                break
            ready.append(first.popleft())
            work_left -= _work_of(ready[-1])
            if ready_queue and not queue:
                queue += ready_queue
                ready_queue.clear()
        self.is_late = bool(queue) and (bool(ready_queue) or queue[0].after <= durable_end)
        return ready

    def _delivery_after(self, effect: _Ordered, after: int, durable_end: int) -> int:
        """Return the offset that a delivery waits for, which is at least that of the delivery before on its link."""
        if type(effect) is Deliver and after > durable_end and self.volatile.ends and not effect.settled:
            unsynced = [word >> 16 for word in effect.words if word >> 16 >= durable_end]
            if self.volatile.covers(unsynced):
                after = 0
        want = self._demand.wants.get(effect.consumer)
        if want is not None:
            after = max(after, want.after)
            if after > durable_end:
                after = want.after = max(after, self.last_after)
        return after
