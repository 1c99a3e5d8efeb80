"""The demand: consumers attach and detach in any order, and the turns of the others stay."""

import weakref

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.engine.dispatch.demand import Demand, Want
from ambermq.engine.dispatch.selector_scan import SelectorScan
from ambermq.engine.selectors.selector import parse_selector


@given(moves=st.lists(st.tuples(st.booleans(), st.integers(0, 30), st.booleans()), max_size=80))
@settings(deadline=None)
def test_the_turns_are_those_of_the_remaining_consumers(moves: list[tuple[bool, int, bool]]) -> None:
    """In their order; a consumer that ended has no credit, and a queue without consumers is not visited."""
    demand = Demand()
    plain, selecting = list[int](), list[int]()
    scan = SelectorScan(parse_selector("a = 1", bytes_max=100))
    for comes, number, selects in moves:
        known = selecting if selects else plain
        consumer = number * 2 + selects
        if comes and consumer not in known:
            demand.add(Want(consumer, 7, "link", credit=5, draining=True, scan=scan if selects else None))
            known.append(consumer)
        elif not comes:
            want = demand.remove(consumer)
            assert (want is not None) is (consumer in known)
            known[:] = [one for one in known if one != consumer]
        for ring, left in ((demand.rings.get(7, ()), plain), (demand.scanning.get(7, ()), selecting)):
            assert [want.consumer for want in ring if want.credit] == left
            assert not any(want.credit or want.draining for want in ring if want.is_gone)
            assert len(ring) <= max(2 * len(left), 1)
        demand.dirty.clear()
        demand.touch(7)
        assert bool(demand.dirty) is bool(plain or selecting)


def test_the_end_of_many_consumers_needs_no_search_for_each() -> None:
    """A ring is made anew when half of it has gone, so for a thousand it is a dozen times, whatever their order."""
    demand = Demand()
    for consumer in range(1000):
        demand.add(Want(consumer, 7, "link", credit=1))
    rings = []
    for consumer in reversed(range(1000)):
        demand.remove(consumer)
        ring = demand.rings.get(7)
        if not rings or ring is not rings[-1]:
            rings.append(ring)
    assert len(rings) <= 12
    assert 7 not in demand.rings


@pytest.mark.parametrize("selects", [False, True])
def test_a_consumer_that_has_ended_holds_no_link(selects: bool) -> None:
    """It stays in the ring of its queue for a time: thousands of them held the connections of their links."""
    demand, links = Demand(), [_Link() for _ in range(20)]
    for number, link in enumerate(links):
        scan = SelectorScan(parse_selector("a = 1", bytes_max=100)) if selects else None
        demand.add(Want(number, 1, link, scan=scan))
    seen = [weakref.ref(link) for link in links[:5]]
    del link, links[:5]
    for number in range(5):
        demand.remove(number)
    ring = (demand.scanning if selects else demand.rings)[1]
    assert len(ring) == 20
    assert [ref() for ref in seen] == [None] * 5


class _Link:
    """A link that can be referred to weakly."""
