"""Cut-through: the delivery of a large message to one consumer begins while the message arrives.

    a piece of it is stored       a consumer is reserved: CutThroughBegun leaves when the pieces so far are durable
    another piece is stored       the delivery goes on when it is durable
    the last piece                Published and Acquired in one decision: the delivery is one like the others
    anything else                 the delivery is aborted, and nothing of the message is on the queue

Rule 1. A reservation is demand: it is volatile, changes no State, and nothing of it is in the log. If its consumer
        goes, the message is one for the other consumers, as if no delivery had begun.
Rule 2. It is for a message with one route, which no field of it decides, to a queue with `cut_through`, on which
        nothing waits: so it overtakes none. One message of a queue at a time.
Rule 3. The consumer is the one that would get the message if it were complete. It is tried at each piece. If that one
        needs the place of the message, none is reserved.
Rule 4. The reserved consumer gets nothing else until the message is published: frames of two deliveries of a link do
        not mix. Its credit is held back here until its link knows of the delivery, and then by the link. The other
        consumers get the later messages of the queue meanwhile.
"""

from collections import deque
from collections.abc import Iterable
from typing import Final

from ambermq.engine.commands import CutThrough, Upload
from ambermq.engine.dispatch.demand import Demand, Want
from ambermq.engine.dispatch.turn_shares import most_wanted, priority_of
from ambermq.engine.effects import CutThroughBegun
from ambermq.engine.model.queue import Queue
from ambermq.engine.routing.router import FieldsOf
from ambermq.engine.selectors.pausable_fields import LONG_BYTES

__all__ = ["ALL_CREDIT", "begin_cut_through"]

ALL_CREDIT: Final = 1 << 40
"""More credit than any link has. It counts as held by a reserved consumer."""
_SELECTING_MAX: Final = 32
"""The consumers whose selectors are tested at each piece."""


def begin_cut_through(
    demand: Demand, queue: Queue, upload: Upload, fields_of: FieldsOf, elapsed_us: int
) -> CutThroughBegun | None:
    """Reserve a consumer of a queue for a message that arrives; return the effect, None if none can be reserved.

    The caller knows that the message has its only route to this queue.
    """
    settings = queue.settings
    if not settings.cut_through or settings.paused or queue.available or queue.id in demand.cut_throughs:
        return None
    want = _next_consumer(demand, queue, upload, fields_of)
    if want is None:
        return None
    cut_through = CutThrough(queue.id, want.consumer, want.link, upload, want.settled, settings.message_ttl_ms)
    upload.cut_through = demand.cut_throughs[queue.id] = cut_through
    want.credit = want.throttled = 0
    want.held_count += ALL_CREDIT
    if want.rate is not None:
        want.rate.refill(elapsed_us)
        want.rate.take(1)
    return CutThroughBegun(want.consumer, want.link, cut_through)


def _next_consumer(demand: Demand, queue: Queue, upload: Upload, fields_of: FieldsOf) -> Want | None:
    """Return the consumer that has the next turn, which this uses up; None without one that has credit.

    Consumers with a selector are before the others, as in a dispatch.
    """
    ring, scanning = demand.rings.get(queue.id), demand.scanning.get(queue.id)
    if queue.settings.exclusive:
        active = demand.active.get(queue.id)
        ring, scanning = _only(active, ring), _only(active, scanning)
    selecting = _with_credit(scanning)
    if selecting and (len(upload.head) > LONG_BYTES or len(selecting) > _SELECTING_MAX):
        # The tests take too long for one tick.
        return None
    if selecting:
        fields = fields_of(upload.head)
        for want in sorted(selecting, key=priority_of):
            if want.scan is not None and want.scan.selector.matches(fields):
                return _served(want, demand.scanning[queue.id]) if want.may_cut_through else None
    wants = _with_credit(ring)
    if queue.id in demand.prioritized:
        wants = most_wanted(wants)
    return _served(wants[0], demand.rings[queue.id]) if wants and wants[0].may_cut_through else None


def _only(active: Want | None, ring: deque[Want] | None) -> deque[Want] | None:
    """Return a ring with the active consumer alone; None if it is not in this ring."""
    return None if active is None or active not in (ring or ()) else deque((active,))


def _with_credit(ring: Iterable[Want] | None) -> list[Want]:
    return [want for want in ring or () if want.credit > 0]


def _served(want: Want, ring: deque[Want]) -> Want:
    """Use up the turn of a consumer, and return it."""
    while ring[-1] is not want:
        ring.rotate(-1)
    return want
