"""Which of the youngest offsets need not wait for the sync."""

from hypothesis import given
from hypothesis import strategies as st

from ambermq.engine.loop.volatile_ranges import VolatileRanges

RUNS = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4)), max_size=12)


@given(runs=RUNS, durable_end=st.integers(0, 60), asked=st.lists(st.integers(0, 80), max_size=3))
def test_ranges_are_a_set_of_offsets(runs: list[tuple[int, int]], durable_end: int, asked: list[int]) -> None:
    """It covers what was added and not passed by the durable end, whole ranges at a time, and nothing else."""
    ranges, offsets, first = VolatileRanges(), set[int](), 0
    for gap, count in runs:
        first += gap
        ranges.add(first, count)
        offsets.update(range(first, first + count))
        first += count
    assert ranges.covers(asked) == offsets.issuperset(asked)
    assert {offset for offset in range(first + 2) if ranges.covers([offset])} == offsets
    ranges.forget_below(durable_end)
    young = [offset for offset in asked if offset >= durable_end]
    assert ranges.covers(young) == offsets.issuperset(young)
    ranges.forget_below(first)
    assert not ranges.ends
    assert not ranges.covers([0])
