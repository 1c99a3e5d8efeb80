"""The order of effects that wait for a sync, while the parts of an earlier release leave."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ambermq.engine.dispatch.demand import Demand, Want
from ambermq.engine.effects import Deliver, Drained, Effect, PublishDone
from ambermq.engine.entries.outcome import OutcomeKind
from ambermq.engine.loop.pending_effects import PendingEffects

DURABLE, UNSYNCED, LATER = 100, 200, 300


def delivery(consumer: int, entry: int, *, after: int, count: int = 1) -> Deliver:
    """Return a run of deliveries to a consumer."""
    words = tuple((entry + index) << 16 for index in range(count))
    return Deliver(consumer, None, 9, words, None, after=after)


def parts() -> tuple[PendingEffects, list[Deliver], PublishDone]:
    """Return effects of which a part has left, the deliveries among them, and the last one, which is not durable."""
    demand = Demand()
    demand.wants[1], demand.wants[2] = Want(1, 9, None), Want(2, 9, None)
    pending = PendingEffects(demand)
    early = [delivery(1, 1000 * index, after=DURABLE, count=1000) for index in range(4)]
    unsynced = PublishDone("key", 0, 1, OutcomeKind.ACCEPTED, settled=False)
    assert not pending.add(early, DURABLE, durable_end=0)
    assert not pending.add([unsynced], UNSYNCED, durable_end=0)
    assert pending.release(DURABLE) == early[:2]
    assert pending.is_late
    return pending, early, unsynced


def test_what_needs_no_sync_leaves_immediately_after_the_parts_before_it() -> None:
    """It waits for no other sync, though an effect in the queue does; the queue is not empty before it has left."""
    pending, early, unsynced = parts()
    one = delivery(2, 1, after=50)
    assert not pending.add([one], UNSYNCED, DURABLE)
    assert pending.release(DURABLE) == early[2:]
    assert pending.is_late
    two = delivery(2, 2, after=50)
    assert not pending.add([two], UNSYNCED, DURABLE)
    assert pending.release(DURABLE) == [one, two]
    assert not pending.is_late
    three = delivery(2, 3, after=50)
    assert pending.add([three], UNSYNCED, DURABLE) == [three]
    assert pending.release(UNSYNCED) == [unsynced]
    assert not pending.queue


@pytest.mark.parametrize("unsynced", [[], [delivery(2, 2, after=UNSYNCED)]])
def test_a_few_that_are_left_leave_with_what_needs_no_sync(unsynced: list[Effect]) -> None:
    """The short way of a quiet log leaves none behind, whether or not an effect still waits for a sync."""
    demand = Demand()
    demand.wants[2] = Want(2, 9, None)
    pending = PendingEffects(demand)
    early = [delivery(1, 1000 * index, after=DURABLE, count=600) for index in range(5)]
    pending.add(early, DURABLE, durable_end=0)
    assert pending.release(DURABLE) == early[:4]
    one = delivery(2, 1, after=50)
    pending.add([one, *unsynced], UNSYNCED, DURABLE + 10)
    assert pending.release(DURABLE + 10) == [early[4], one]
    assert not pending.is_late
    assert list(pending.queue) == unsynced


def test_no_delivery_overtakes_an_unsynced_one_of_its_link_while_parts_leave() -> None:
    """It waits as long as the one before, and so does what follows it."""
    pending, early, unsynced = parts()
    one, two, drained = delivery(2, 1, after=LATER), delivery(2, 2, after=50), Drained(2, None)
    assert not pending.add([one, two, drained], LATER, DURABLE)
    assert pending.release(DURABLE) == early[2:]
    assert not pending.is_late
    assert pending.release(UNSYNCED) == [unsynced]
    assert pending.release(LATER) == [one, two, drained]


_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(1, 3), st.integers(-3, 3), st.sampled_from((1, 700, 1500))),
        st.tuples(st.just("sync"), st.just(0), st.integers(0, 4), st.just(0)),
    ),
    max_size=60,
)


@given(_STEPS)
def test_links_keep_their_order_and_promises_wait_for_their_sync(steps: list[tuple[str, int, int, int]]) -> None:
    """Whatever ticks and syncs come: no delivery leaves early or overtakes, and what needs no sync waits for parts."""
    demand = Demand()
    demand.wants.update({link: Want(link, 9, None) for link in (1, 2, 3)})
    pending, log_end, durable_end = PendingEffects(demand), 100, 100
    added: dict[int, list[int]] = {1: [], 2: [], 3: []}
    left: dict[int, list[int]] = {1: [], 2: [], 3: []}
    for number, (kind, link, change, count) in enumerate(steps):
        log_end += kind == "add"
        if kind == "add":
            # The largest is the end of the tick, the others are below the durable end.
            need = log_end if change > 0 else durable_end + change
            effect = delivery(link, 10_000 * number, after=need, count=count)
            added[link].append(number)
            gone = pending.add([effect], log_end, durable_end)
        else:
            durable_end = min(durable_end + change, log_end)
            gone = pending.release(durable_end)
        for each in gone:
            assert isinstance(each, Deliver)
            assert each.after <= durable_end
            left[each.consumer].append((each.words[0] >> 16) // 10_000)
        if not pending.is_late:
            assert all(each.after > durable_end for each in pending.queue)
    while pending.queue:
        left_before = len(pending.queue)
        for each in pending.release(log_end):
            assert isinstance(each, Deliver)
            left[each.consumer].append((each.words[0] >> 16) // 10_000)
        assert len(pending.queue) < left_before or pending.is_late
    assert left == added
