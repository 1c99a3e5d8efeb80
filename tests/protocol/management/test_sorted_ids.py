"""Pages tile: one after the other they are all there is, in order, each once."""

from collections.abc import Sequence
from itertools import count, pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.engine.commands import AttachMember, Command, DeclareMuxer, DeclareQueue, DeleteMuxer, DeleteQueue, Inspect
from ambermq.engine.model.muxer import MuxerKind
from ambermq.engine.settings.queue_settings import Settings
from ambermq.engine.time_budget import MatchUnfinished, TimeBudget
from ambermq.protocol.management import sorted_ids
from ambermq.protocol.management.attachments import ATTACHMENT_OPERATIONS
from ambermq.protocol.management.muxers import MUXER_OPERATIONS
from ambermq.protocol.management.paging import page_of
from ambermq.protocol.management.queues import QUEUE_OPERATIONS
from ambermq.protocol.management.sorted_ids import SortedIds
from ambermq.snapshot.persistent_map import PersistentMap
from tests.engine.world import World

_NAMES = st.sampled_from(("a", "b", "c", "d", "e"))
_COMMANDS = st.one_of(
    st.builds(DeclareQueue, st.just("key"), _NAMES, st.just(Settings())),
    st.builds(DeclareMuxer, st.just("key"), _NAMES, st.just(MuxerKind.SIMPLE)),
    st.builds(AttachMember, st.just("key"), _NAMES, _NAMES),
    st.builds(DeleteQueue, st.just("key"), _NAMES),
    st.builds(DeleteMuxer, st.just("key"), _NAMES),
)
_QUERIES = {
    "queues": QUEUE_OPERATIONS["QUERY"],
    "muxers": MUXER_OPERATIONS["QUERY"],
    "attachments": ATTACHMENT_OPERATIONS["QUERY"],
}


def _ids(world: World, what: str) -> list[int]:
    match what:
        case "queues":
            return sorted(world.state.queues)
        case "muxers":
            return sorted(world.state.muxers)
        case _:
            muxers = [muxer for _, muxer in sorted(world.state.muxers.items())]
            return [one for muxer in muxers for one in sorted(muxer.attachments)]


@pytest.fixture(params=["at once", "in parts"])
def budget(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> TimeBudget:
    """The time of a tick: with parts it is over at each second check, and each part has two ids."""
    if request.param == "at once":
        return TimeBudget()
    monkeypatch.setattr(sorted_ids, "_RUN", 2)
    return TimeBudget(count(step=1_000_000).__next__)


@pytest.mark.parametrize("what", _QUERIES)
def test_pages_tile(what: str, budget: TimeBudget) -> None:
    """Whatever has changed between two listings, and however large their pages are."""

    @settings(max_examples=60, deadline=None, database=None)
    @given(st.lists(st.tuples(st.lists(_COMMANDS, max_size=8), st.integers(1, 5)), min_size=1, max_size=4))
    def law(stages: list[tuple[list[Command], int]]) -> None:
        world, orders = World(), SortedIds(budget)
        for commands, size in stages:
            for command in commands:
                world.do(command)
            expected = _ids(world, what)
            found: list[int] = []
            for offset in range(0, len(expected) + 1, size):
                page = _page(world, orders, what, offset=offset, count=size)
                assert page["total"] == len(expected)
                found += [row[0] for row in page["results"]]
            assert found == expected
            assert _page(world, orders, what, offset=len(expected) + 3, count=2)["results"] == []

    law()


def _page(world: World, orders: SortedIds, what: str, **asked: int) -> dict[str, Any]:
    gateway = SimpleNamespace(age_us=lambda _queue: None)
    request = SimpleNamespace(orders=orders, peer=SimpleNamespace(gateway=gateway))
    command = _QUERIES[what](request, asked, {"attributeNames": ["id"]}, 1000)
    assert type(command) is Inspect
    while True:
        try:
            page: dict[str, Any] = command.read(world.state)
        except MatchUnfinished:
            assert orders._budget.end_ns is not None
            orders._budget.end_ns = None
        else:
            return page


def test_an_order_is_remembered_until_the_wiring_changes() -> None:
    """Publishing changes none, declaring does."""
    world, orders = World(), SortedIds()
    producer = world.producer("q")
    before = [orders.queues(world.state), orders.muxers(world.state)]
    world.publish(producer, 10)
    assert orders.queues(world.state) is before[0]
    assert orders.muxers(world.state) is before[1]
    world.do(DeclareQueue("key", "r", Settings()))
    assert list(orders.queues(world.state)) == _ids(world, "queues")


@pytest.mark.parametrize("ids", [range(100), [*range(0, 1000, 10)], [number**3 for number in range(100)]])
def test_a_large_map_is_sorted_in_small_parts(ids: Sequence[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each part reads or merges about as many ids as its limit; together they are all ids in order."""
    monkeypatch.setattr(sorted_ids, "_RUN", 10)
    budget = TimeBudget(count(step=1_000_000).__next__)
    table = PersistentMap[int, None](dict.fromkeys(ids))
    order, merged, ticks = sorted_ids._Order(), [0], 0
    found: Sequence[int] = ()
    while not found:
        budget.end_ns, ticks = None, ticks + 1
        try:
            found = order.of(table, table, budget)
        except MatchUnfinished:
            assert order._sort is not None
            merged.append(len(order._sort.ids))
    assert list(found) == sorted(ids)
    assert ticks >= 10
    assert max(after - before for before, after in pairwise(merged)) <= 60
    assert order.of(table, table, budget) is found


def test_a_page_has_few_values() -> None:
    """Its rows are fewer if they have more attributes; the client asks for the next page after them."""
    rows = [{"a": number} for number in range(5000)]
    narrow, wide = (page_of(rows, 5000, ["a"] * width, ("a",)) for width in (1, 16))
    assert (len(narrow["results"]), len(wide["results"])) == (4096, 256)
    assert narrow["total"] == wide["total"] == 5000
