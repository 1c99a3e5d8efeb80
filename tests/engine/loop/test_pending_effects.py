"""The order of effects that wait for a sync, while the parts of an earlier release leave."""

from ambermq.engine.dispatch.demand import Demand, Want
from ambermq.engine.effects import Deliver, Drained, PublishDone
from ambermq.engine.loop.pending_effects import PendingEffects
from ambermq.engine.model.outcome import OutcomeKind

DURABLE, UNSYNCED, LATER = 100, 200, 300


def delivery(consumer: int, entry: int, *, after: int, count: int = 1) -> Deliver:
    """Return a run of deliveries to a consumer."""
    words = tuple((entry + index) << 16 for index in range(count))
    return Deliver(consumer, None, 9, words, None, after=after)


def test_no_delivery_overtakes_one_that_waits_behind_a_part() -> None:
    """A delivery that arrives while parts leave may stand behind an unsynced effect: what follows it waits as long."""
    demand = Demand()
    demand.wants[1], demand.wants[2] = Want(1, 9, None), Want(2, 9, None)
    pending = PendingEffects(demand)
    early = [delivery(1, 1000 * index, after=DURABLE, count=1000) for index in range(4)]
    assert not pending.add(early, DURABLE, durable_end=0)
    assert not pending.add([PublishDone("key", 0, 1, OutcomeKind.ACCEPTED, settled=False)], UNSYNCED, durable_end=0)
    first = pending.release(DURABLE)
    assert 0 < len(first) < 4
    assert pending.is_late
    one = delivery(2, 1, after=50)
    assert not pending.add([one], UNSYNCED, DURABLE)
    second = pending.release(DURABLE)
    assert first + second == early
    assert not pending.is_late
    two, drained = delivery(2, 2, after=50), Drained(2, None)
    assert not pending.add([two, drained], LATER, DURABLE)
    assert pending.release(LATER)[-3:] == [one, two, drained]
