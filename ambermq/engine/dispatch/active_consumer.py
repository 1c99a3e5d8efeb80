"""The active consumer of an exclusive queue: each consumer is told whether it is the one."""

from ambermq.engine.dispatch.demand import Demand
from ambermq.engine.effects import ActiveChanged
from ambermq.engine.model.queue import Queue

__all__ = ["told_of_active"]


def told_of_active(demand: Demand, queue: Queue) -> list[ActiveChanged]:
    """Find the active consumer of a queue: the first one of an exclusive queue; return what consumers are told of it.

    It waits until all that earlier consumers held is back.
    """
    before, active = demand.active.get(queue.id), None
    if queue.settings.exclusive:
        active = demand.first_of(queue.id)
        if active is not None and any(holder < active.consumer for holder in queue.acquired):
            active = None
    told = [(want, False) for want in demand.untold.pop(queue.id, ()) if want is not active]
    if active is not before:
        told += [(before, False)] if before is not None else []
        told += [(active, True)] if active is not None else []
        demand.active.pop(queue.id, None)
        if active is not None:
            demand.active[queue.id] = active
    return [ActiveChanged(one.consumer, one.link, is_so) for one, is_so in told if not one.is_gone]
