"""The ring of unsettled deliveries, against a dict."""

from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.protocol.amqp10.connection.connection import Connection
from ambermq.protocol.amqp10.connection.connection_role import ConnectionRole
from ambermq.protocol.amqp10.limits import ConnectionLimits
from ambermq.protocol.amqp10.link.link import Link
from ambermq.protocol.amqp10.link.sender import Sender
from ambermq.protocol.amqp10.serial_number import MASK, distance
from ambermq.protocol.amqp10.session.session import Session
from ambermq.protocol.amqp10.session.unsettled import RUN_COUNT_MAX, DeliveryRing
from tests.protocol.peers import FIRST_ID

LINKS: list[Link] = [
    Sender(Session(Connection(ConnectionRole.SERVER, ConnectionLimits(), now_ms=0), 0, 0), f"link {n}", n)
    for n in range(2)
]

append = st.tuples(st.just("append"), st.integers(0, 1), st.integers(1, 5))
take = st.tuples(st.sampled_from(("take", "find", "report")), st.integers(-3, 40), st.integers(0, 20))
whole = st.tuples(st.just("take"), st.just(-FIRST_ID), st.just(MASK))
drop = st.tuples(st.just("drop"), st.integers(0, 1), st.just(0))


@settings(max_examples=300, deadline=None)
@given(st.lists(st.one_of(append, append, take, whole, drop), max_size=30))
def test_ring_is_a_dict(steps: list[tuple[str, int, int]]) -> None:
    """A ring holds what a dict would, whatever is appended, taken, found, reported and dropped; it reports once."""
    ring = DeliveryRing()
    reported: set[int] = set()
    model: dict[int, tuple[Link, int]] = {}
    next_id = FIRST_ID
    for token, (what, number, count) in enumerate(steps):
        if what == "append":
            tokens = [token * 100 + index for index in range(count)]
            ring.append(LINKS[number], next_id, count, tokens)
            for index in range(count):
                model[(next_id + index) & MASK] = (LINKS[number], tokens[index])
            next_id = (next_id + count) & MASK
        elif what == "drop":
            ring.drop(LINKS[number])
            model = {key: value for key, value in model.items() if value[0] is not LINKS[number]}
        else:
            first = (FIRST_ID + number) & MASK
            named = {key: model[key] for key in model if (key - first) & MASK <= count}
            runs = getattr(ring, what)(first, (first + count) & MASK)
            if what == "report":
                named = {key: value for key, value in named.items() if key not in reported}
                reported.update(named)
            got = {
                (run.first_id + index) & MASK: (run.link, token)
                for run in runs
                for index, token in enumerate(run.tokens())
            }
            assert got == named
            assert all(run.count == len(run.tokens()) for run in runs)
            if what == "take":
                model = {key: value for key, value in model.items() if key not in named}
        assert ring.count == len(model)
        assert all(0 < run.count <= RUN_COUNT_MAX for run in ring._runs)


@settings(max_examples=100, deadline=None)
@given(st.permutations(range(8)), st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=4))
def test_deliveries_may_end_out_of_order(order: list[int], takes: list[tuple[int, int]]) -> None:
    """Deliveries of many frames end in any order, and are held in the order of their ids."""
    ring = DeliveryRing()
    for index in order:
        ring.append(LINKS[index % 2], (FIRST_ID + index) & MASK, 1)
    held = set(range(8))
    for start, length in takes:
        runs = ring.take((FIRST_ID + start) & MASK, (FIRST_ID + start + length) & MASK)
        got = [distance(FIRST_ID, key) for run in runs for key in run.tokens()]
        assert got == sorted(held & set(range(start, start + length + 1)))
        held -= set(got)
    assert ring.count == len(held)


def test_links_that_held_nothing_cost_nothing() -> None:
    """Dropping a link that never held anything leaves the list of runs as it is."""
    ring = DeliveryRing()
    ring.append(LINKS[0], 0, 1)
    runs = ring._runs
    ring.drop(LINKS[1])
    assert ring._runs is runs
    ring.drop(LINKS[0])
    assert (ring.count, ring.find(0, 0)) == (0, [])


def test_runs_stay_bounded() -> None:
    """However long one link goes on, taking from the middle splits a short run, and nothing is lost."""
    ring = DeliveryRing()
    for index in range(5000):
        ring.append(LINKS[0], index, 1, [index])
    assert [run.count for run in ring._runs] == [1024] * 4 + [904]
    assert [run.tokens() for run in ring.take(2500, 2500)] == [[2500]]
    taken = [token for run in ring.take(0, 4999) for token in run.tokens()]
    assert taken == [index for index in range(5000) if index != 2500]


def test_a_link_that_goes_takes_its_deliveries_alone() -> None:
    """Reported ones too; those of the other links still count."""
    ring = DeliveryRing()
    ring.append(LINKS[0], 0, 2, [1, 2])
    ring.append(LINKS[1], 2, 3, [3, 4, 5])
    assert len(ring.report(0, 3)) == 2
    ring.drop(LINKS[0])
    assert ring.count == 3
    assert sorted(token for run in ring.take(0, 9) for token in run.tokens()) == [3, 4, 5]


def test_what_is_found_ends_within_a_run() -> None:
    """Of the run behind the first one too; what is found stays held."""
    ring = DeliveryRing()
    ring.append(LINKS[0], FIRST_ID, 3, [1, 2, 3])
    ring.append(LINKS[1], FIRST_ID + 3 & MASK, 5, [4, 5, 6, 7, 8])
    ring.append(LINKS[0], FIRST_ID + 8 & MASK, 2, [9, 10])
    for first in range(10):
        for last in range(first, 10):
            found = ring.find(FIRST_ID + first & MASK, FIRST_ID + last & MASK)
            assert [token for run in found for token in run.tokens()] == list(range(first + 1, last + 2))
    assert ring.count == 10


def test_a_delivery_with_an_id_that_is_free_again_has_its_own_token() -> None:
    """The tail of the run was taken: its token is not that of the next one."""
    ring = DeliveryRing()
    ring.append(LINKS[0], 0, 3, [1, 2, 3])
    assert [run.tokens() for run in ring.take(2, 2)] == [[3]]
    ring.append(LINKS[0], 2, 2, [4, 5])
    assert [token for run in ring.take(0, 3) for token in run.tokens()] == [1, 2, 4, 5]


def test_distance_wraps() -> None:
    """Serial numbers: the distance is signed and wraps."""
    assert distance(0xFFFFFFFF, 0) == 1
    assert distance(0, 0xFFFFFFFF) == -1
    assert distance(FIRST_ID, 2) == 5
    assert distance(0, 0x80000000) == -0x80000000
